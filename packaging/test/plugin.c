/* A shared object that links the archive: its own copy of the library, which no one else sees. */
#include <tatcell.h>

int plugin_admits(void);

int plugin_admits(void) {
    static tatcell_cell_t cell;
    tatcell_limit_t limit;
    int admitted = 0;
    if (tatcell_limit_init(&limit, 1, 1000000000, 3) != 0) return -1;
    for (int i = 0; i < 10; i++) admitted += tatcell_cell_check(&cell, &limit, 0, 1, NULL) == TATCELL_PASS;
    return admitted;
}
