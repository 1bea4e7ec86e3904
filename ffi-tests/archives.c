/* archives.c - this archive and a second Rust archive (other/, with std) in one program. */
#include "kit.h"

extern uint32_t other_sum(uint32_t n);

TEST(two_rust_archives_link_and_run_in_one_program) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    EQ(tatcell_limit_init(&limit, 1, SECOND, 1), 0);
    EQ(tatcell_cell_check(&cell, &limit, 0, 1, NULL), 0);
    EQ(tatcell_cell_check(&cell, &limit, 0, 1, NULL), TATCELL_NON_CONFORMING);
    EQ(other_sum(10), 55);
}

int main(void) {
    RUN(two_rust_archives_link_and_run_in_one_program);
    return check_end();
}
