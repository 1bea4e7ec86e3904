/* Built against the installed package; exits with 0 if the library answers. */
#include <stdio.h>
#include <tatcell.h>

int main(void) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    uint64_t retry = 0;
    int32_t rc = tatcell_limit_init(&limit, 1, 1000000000, 1);
    if (rc != 0 || tatcell_version() != TATCELL_VERSION || tatcell_abi_version() != TATCELL_ABI_VERSION) return 1;
    if (tatcell_cell_check(&cell, &limit, 0, 1, &retry) != TATCELL_PASS) return 2;
    if (tatcell_cell_check(&cell, &limit, 0, 1, &retry) != TATCELL_NON_CONFORMING || retry != 1000000000) return 3;
    puts("conforming, then not");
    return 0;
}
