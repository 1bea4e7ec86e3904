/* refusals.c - log lines that are counted instead of written, every n-th refusal, and bad arguments of both. */
#include "kit.h"

TEST(one_line_an_interval_is_written_and_tells_of_the_others) {
    tatcell_log_t gate = TATCELL_LOG_INIT;
    uint32_t more = 77;
    for (uint64_t second = 0; second < 10; second++) {
        NOTE("second %d", (int)second);
        /* Rounding makes an interval a little longer, never shorter. */
        uint64_t now = second * (SECOND + SECOND / 256);
        EQ(tatcell_log_line(&gate, now, SECOND, &more), TATCELL_PASS);
        EQ(more, second ? 999 : 0);
        for (int i = 0; i < 999; i++)
            EQ(tatcell_log_line(&gate, now + (uint64_t)i * (SECOND / 999), SECOND, &more), TATCELL_NON_CONFORMING);
        EQ(more, 0);
    }
    EQ(tatcell_log_take(&gate, &more), 0);
    EQ(more, 999);
    EQ(tatcell_log_take(&gate, &more), 0);
    EQ(more, 0);
    EQ(tatcell_log_line(&gate, 20 * SECOND, SECOND, NULL), TATCELL_PASS);
    EQ(tatcell_log_line(&gate, 20 * SECOND, SECOND, NULL), TATCELL_NON_CONFORMING);
}

/* The first release took the interval before the clock. */
TEST(the_old_order_of_the_arguments_is_still_taken) {
    tatcell_log_t gate = TATCELL_LOG_INIT, old = TATCELL_LOG_INIT;
    uint32_t more = 0, before = 0;
    for (uint64_t now = 7; now < 60; now += 3) {
        EQ(tatcell_log_check(&old, 10, now, &before), tatcell_log_line(&gate, now, 10, &more));
        EXPECT(before == more && old.word == gate.word);
    }
}

TEST(every_nth_refusal_is_flagged) {
    for (uint32_t n = 0; n <= 5; n++) {
        NOTE("n = %u", n);
        tatcell_slip_t slip = TATCELL_SLIP_INIT, mine = TATCELL_SLIP_INIT;
        for (uint32_t i = 0; i < 60; i++) {
            int32_t want = n && i % n == 0 ? TATCELL_PASS : TATCELL_NON_CONFORMING;
            EQ(tatcell_slip_check(&slip, n), want);
            EQ(tatcell_slip_check_exclusive(&mine, n), want);
        }
        EQ(slip.word, n ? 60 : 0);
        EQ(mine.word, n ? 60 : 0);
    }
}

TEST(bad_arguments_change_nothing) {
    tatcell_log_t gate[2] = {TATCELL_LOG_INIT, TATCELL_LOG_INIT};
    tatcell_slip_t slip[2] = {TATCELL_SLIP_INIT, TATCELL_SLIP_INIT};
    tatcell_log_t *odd_gate = (tatcell_log_t *)(void *)((char *)gate + 4);
    tatcell_slip_t *odd_slip = (tatcell_slip_t *)(void *)((char *)slip + 4);
    uint32_t more = 77;
    uint32_t *odd = (uint32_t *)(void *)((char *)gate + 2);
    EQ(tatcell_log_line(NULL, 0, 1, &more), TATCELL_ERR_NULL);
    EQ(tatcell_log_line(odd_gate, 0, 1, &more), TATCELL_ERR_ALIGN);
    EQ(tatcell_log_line(gate, 0, 1, odd), TATCELL_ERR_ALIGN);
    EQ(tatcell_log_check(NULL, 1, 0, &more), TATCELL_ERR_NULL);
    EQ(tatcell_log_take(NULL, &more), TATCELL_ERR_NULL);
    EQ(tatcell_log_take(odd_gate, &more), TATCELL_ERR_ALIGN);
    EQ(tatcell_log_take(gate, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_slip_check(NULL, 1), TATCELL_ERR_NULL);
    EQ(tatcell_slip_check(odd_slip, 1), TATCELL_ERR_ALIGN);
    EQ(tatcell_slip_check_exclusive(NULL, 1), TATCELL_ERR_NULL);
    EQ(tatcell_slip_check_exclusive(odd_slip, 1), TATCELL_ERR_ALIGN);
    EQ(more, 77);
    EQ(gate[0].word | gate[1].word | slip[0].word | slip[1].word, 0);
}

/* Two keys of one gate: the count has the tag of its key, or none if it has several. */
TEST(a_gate_of_keys_says_whose_lines_it_left_out) {
    const uint64_t mallory = 1, bob = 257;
    tatcell_key_log_t gate = TATCELL_KEY_LOG_INIT;
    uint32_t more = 9, tag = 9;
    EXPECT(tatcell_key_log_tag(mallory) != tatcell_key_log_tag(bob) && tatcell_key_log_tag(0) != 0);
    EQ(tatcell_key_log_size(), TATCELL_KEY_LOG_SIZE);
    EQ(tatcell_key_log_line(&gate, 0, bob, SECOND, &more, &tag), TATCELL_PASS);
    EQ(more, 0);
    EQ(tag, 0);
    for (int i = 0; i < 437; i++)
        EQ(tatcell_key_log_line(&gate, 1, mallory, SECOND, &more, &tag), TATCELL_NON_CONFORMING);
    EQ(tatcell_key_log_take(&gate, &more, &tag), 0);
    EQ(more, 437);
    EQ(tag, tatcell_key_log_tag(mallory));
    EQ(tatcell_key_log_take(&gate, &more, &tag), 0);
    EQ(more, 0);
    EQ(tag, 0);
    EQ(tatcell_key_log_line(&gate, 2, mallory, SECOND, NULL, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_key_log_line(&gate, 2, bob, SECOND, &more, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_key_log_line(&gate, 3 * SECOND, bob, SECOND, &more, &tag), TATCELL_PASS);
    EQ(more, 2);
    EQ(tag, 0);
    tatcell_key_log_t two[2] = {TATCELL_KEY_LOG_INIT, TATCELL_KEY_LOG_INIT};
    tatcell_key_log_t *odd = (tatcell_key_log_t *)(void *)((char *)two + 4);
    uint32_t *odd_out = (uint32_t *)(void *)((char *)two + 1);
    EQ(tatcell_key_log_line(NULL, 0, 1, 1, &more, &tag), TATCELL_ERR_NULL);
    EQ(tatcell_key_log_line(odd, 0, 1, 1, &more, &tag), TATCELL_ERR_ALIGN);
    EQ(tatcell_key_log_line(two, 0, 1, 1, odd_out, &tag), TATCELL_ERR_ALIGN);
    EQ(tatcell_key_log_line(two, 0, 1, 1, &more, odd_out), TATCELL_ERR_ALIGN);
    EQ(tatcell_key_log_take(two, NULL, &tag), TATCELL_ERR_NULL);
    EQ(tatcell_key_log_take(NULL, &more, &tag), TATCELL_ERR_NULL);
    EQ(tatcell_key_log_take(two, &more, odd_out), TATCELL_ERR_ALIGN);
    EQ(two[0].word, 0);
}

int main(void) {
    RUN(one_line_an_interval_is_written_and_tells_of_the_others);
    RUN(the_old_order_of_the_arguments_is_still_taken);
    RUN(every_nth_refusal_is_flagged);
    RUN(bad_arguments_change_nothing);
    RUN(a_gate_of_keys_says_whose_lines_it_left_out);
    return check_end();
}
