/* shaper.c - shapers, groups and queues from C: departures and order, hierarchies, 802.1Qcr, both bounds of a queue,
 * and bad arguments, which change nothing. */
#include "kit.h"

enum { SLOTS = 64, HANDLES = 16, G = 16, HORIZON = 63 * G };

static uint64_t memory[TATCELL_SHAPER_BYTES(SLOTS, HANDLES) / 8];
static tatcell_shaper_t shaper;
static tatcell_cell_t cells[3];
static tatcell_limit_t limit, slow;
static tatcell_decision_t d;
static tatcell_waiting_t due[HANDLES];
static kit_table k;

static tatcell_limit_spec_t shaped(uint64_t period, uint64_t burst, uint64_t delay) {
    tatcell_limit_spec_t s = kit_spec(1, period, burst);
    s.max_delay = delay;
    return s;
}

static void setup(void) {
    tatcell_limit_spec_t fast = shaped(100, 1, 500), rare = shaped(150, 1, 500);
    memset(cells, 0, sizeof cells);
    memset(due, 0, sizeof due);
    memset(&d, 0, sizeof d);
    d.size = sizeof d;
    EQ(tatcell_limit_init_spec(&limit, &fast), 0);
    EQ(tatcell_limit_init_spec(&slow, &rare), 0);
    memset(memory, 0xa5, sizeof memory);
    EQ(tatcell_shaper_init(&shaper, memory, sizeof memory, SLOTS, G, 0), 0);
}

static tatcell_link_t of(tatcell_cell_t *cell, const tatcell_limit_t *l) {
    tatcell_link_t link = TATCELL_LINK_INIT;
    link.cell = cell, link.limit = l, link.cost = 1;
    return link;
}

static uint32_t release(uint64_t now, uint32_t most) {
    uint32_t count = 77;
    return tatcell_shaper_release(&shaper, now, due, most, &count) == 0 ? count : 99;
}

static uint64_t waiting(void) {
    tatcell_shaper_info_t info = TATCELL_SHAPER_INFO_INIT;
    return tatcell_shaper_info(&shaper, &info) == 0 ? info.waiting : UINT64_MAX;
}

TEST(requests_wait_for_their_departure_and_come_out_in_order) {
    DO(setup());
    tatcell_shaper_info_t info = TATCELL_SHAPER_INFO_INIT;
    uint64_t next = 77;
    EQ(tatcell_shaper_next(&shaper, &next), TATCELL_END);
    EQ(next, 77);
    tatcell_link_t a = of(&cells[0], &limit), b = of(&cells[1], &limit);
    for (uint64_t i = 0; i < 6; i++) {
        EQ(tatcell_shaper_submit(&shaper, 0, &a, NULL, i, &d), 0);
        EQ(d.departure, i * 100);
        EXPECT(d.permit.stored != 0);
    }
    EQ(tatcell_shaper_submit(&shaper, 0, &a, NULL, 6, &d), TATCELL_NON_CONFORMING);
    EQ(d.retry_after, 100);
    a.cost = 2;
    EQ(tatcell_shaper_submit(&shaper, 0, &a, NULL, 6, &d), TATCELL_NEVER);
    EQ(tatcell_shaper_submit(&shaper, 0, &b, NULL, 100, &d), 0);
    EQ(tatcell_shaper_info(&shaper, &info), 0);
    EQ(info.waiting, 7);
    EQ(info.capacity, HANDLES);
    EQ(info.granularity, G);
    EQ(info.horizon, HORIZON);
    EQ(release(0, 0), 0);
    EQ(release(0, 1), 1); /* bounded: the rest stays */
    EQ(due[0].handle, 0);
    EQ(release(99, HANDLES), 1);
    EQ(due[0].handle, 100);
    EQ(tatcell_shaper_next(&shaper, &next), 0);
    EQ(next, 100);
    EQ(release(330, HANDLES), 3);
    for (uint64_t i = 0; i < 3; i++) {
        EQ(due[i].handle, i + 1);
        EQ(due[i].departure, (i + 1) * 100);
        EQ(due[i].level, 0);
    }
    EQ(tatcell_shaper_take(&shaper, due), 0); /* due or not */
    EQ(due[0].handle, 4);
    EQ(tatcell_shaper_take(&shaper, due), 0);
    EQ(tatcell_shaper_take(&shaper, due), TATCELL_END);
    EQ(waiting(), 0);
    due[0].handle = 8, due[0].departure = 1000, due[0].level = 3;
    EQ(tatcell_shaper_insert(&shaper, 400, due), 0);
    EQ(release(999, 1), 0);
    EQ(release(1000, 1), 1);
    EQ(due[0].handle, 8);
    EQ(due[0].level, 3);
}

TEST(keys_of_a_table_are_shaped_by_key_and_by_hash) {
    DO(setup());
    EQ(kit_make(&k, shaped(100, 1, 500), 64, NULL), 0);
    tatcell_link_t key = TATCELL_LINK_INIT, hash = TATCELL_LINK_INIT;
    key.table = hash.table = &k.table, key.limit = hash.limit = &k.limit, key.cost = hash.cost = 1;
    key.key = "user", key.key_len = 4;
    hash.flags = TATCELL_LINK_HASH, hash.hash = kit_hash(&k, "user");
    EQ(tatcell_shaper_submit(&shaper, 0, &key, NULL, 1, &d), 0);
    EQ(tatcell_shaper_submit(&shaper, 0, &hash, NULL, 2, &d), 0);
    EQ(d.departure, 100);
    EQ(release(100, HANDLES), 2);
    kit_free(&k);
}

TEST(levels_ask_each_limit_when_a_request_gets_there) {
    DO(setup());
    tatcell_limit_spec_t spec = shaped(150, 1, 900);
    tatcell_link_t flows[2] = {of(&cells[0], &limit), of(&cells[1], &limit)}, port = of(&cells[2], &slow);
    EQ(tatcell_limit_init_spec(&slow, &spec), 0);
    uint64_t now, sent[8][2];
    size_t out = 0;
    for (uint64_t i = 0; i < 6; i++) EQ(tatcell_shaper_submit(&shaper, 0, &flows[i % 2], NULL, i, &d), 0);
    while (tatcell_shaper_next(&shaper, &now) == 0) {
        EQ(release(now, 1), 1);
        if (due[0].level == 0) {
            EQ(tatcell_shaper_forward(&shaper, now, &due[0], &port, &d), 0);
        } else {
            EQ(due[0].level, 1);
            sent[out][0] = due[0].handle, sent[out++][1] = now;
        }
    }
    EQ(out, 6);
    for (uint64_t i = 0; i < 6; i++) {
        EQ(sent[i][0], i);
        EQ(sent[i][1], i * 150);
    }
}

TEST(a_chain_departs_at_the_latest_of_its_links) {
    DO(setup());
    tatcell_link_t links[2] = {of(&cells[0], &limit), of(&cells[1], &slow)};
    tatcell_permit_t permits[2];
    tatcell_decision_t each[2];
    tatcell_counters_t counters = TATCELL_COUNTERS_INIT;
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = links, chain.link_size = sizeof *links, chain.count = 2, chain.permits = permits;
    chain.decisions = each, chain.decision_size = sizeof *each, chain.counters = &counters;
    for (uint64_t i = 0; i < 4; i++) {
        EQ(tatcell_shaper_submit_chain(&shaper, 0, &chain, i, &d), 0);
        EQ(d.departure, i * 150);
        EQ(each[0].departure, i * 100);
        EXPECT(permits[0].stored != 0 && permits[1].stored != 0);
    }
    EQ(tatcell_shaper_submit_chain(&shaper, 0, &chain, 9, &d), TATCELL_NON_CONFORMING);
    EQ(d.policy, 1);
    EQ(d.retry_after, 100);
    EQ(permits[0].stored, 0);
    EQ(counters.conforming, 4);
    EQ(counters.non_conforming, 1);
    EQ(waiting(), 4);
    chain.count = 0;
    EQ(tatcell_shaper_submit_chain(&shaper, 0, &chain, 9, &d), TATCELL_ERR_LINKS);
}

/* CIR = 1 byte a tick, CBS = 3000, frames of 1500 at 0, 0, 0, 5000 (802.1Qcr). */
TEST(groups_give_the_eligibility_times_of_802_1qcr) {
    static const uint64_t arrivals[] = {0, 0, 0, 5000}, wanted[] = {0, 0, 1500, 5000};
    DO(setup());
    tatcell_limit_t bytes;
    tatcell_limit_spec_t spec = shaped(1, 3000, 900);
    tatcell_group_t group = TATCELL_GROUP_INIT;
    EQ(tatcell_group_size(), sizeof group);
    EQ(tatcell_limit_init_spec(&bytes, &spec), 0);
    tatcell_link_t frame = of(&cells[0], &bytes), other = of(&cells[1], &bytes);
    frame.cost = other.cost = 1500;
    for (int i = 0; i < 2; i++) {
        EQ(tatcell_shaper_submit(&shaper, arrivals[i], &frame, &group, 7, &d), 0);
        EQ(d.departure, wanted[i]);
    }
    /* 900 ticks are too few for the third; the group stays. */
    EQ(tatcell_group_reserve(&group, 0, &frame, &d), TATCELL_NON_CONFORMING);
    EQ(d.retry_after, 600);
    EQ(group.word, 0);
    spec.max_delay = 9000;
    EQ(tatcell_limit_init_spec(&bytes, &spec), 0);
    for (int i = 2; i < 4; i++) {
        EQ(tatcell_group_reserve(&group, arrivals[i], &frame, &d), 0);
        EQ(d.departure, wanted[i]);
        EQ(group.word, wanted[i]);
    }
    EQ(tatcell_group_reserve(&group, 4000, &other, &d), 0); /* alone it would leave at once */
    EQ(d.departure, 5000);
    EQ(tatcell_group_reserve(NULL, 0, &frame, &d), TATCELL_ERR_NULL);
    EQ(tatcell_group_reserve((tatcell_group_t *)(void *)((char *)&group + 4), 0, &frame, &d), TATCELL_ERR_ALIGN);
    EQ(tatcell_group_reserve(&group, 0, NULL, &d), TATCELL_ERR_NULL);
    EQ(tatcell_group_reserve(&group, 0, &frame, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_limit_init_window(&bytes, 3000, 1000), 0);
    EQ(tatcell_group_reserve(&group, 0, &frame, &d), TATCELL_ERR_ALGORITHM);
    EQ(group.word, 5000);
}

static tatcell_shaper_t kept;
static uint64_t kept_memory[sizeof memory / 8];
static tatcell_cell_t kept_cells[3];

static void keep(void) {
    kept = shaper;
    memcpy(kept_memory, memory, sizeof memory);
    memcpy(kept_cells, cells, sizeof cells);
}

static int changed(void) {
    return memcmp(&kept, &shaper, sizeof kept) != 0 || memcmp(kept_memory, memory, sizeof memory) != 0 ||
           memcmp(kept_cells, cells, sizeof cells) != 0;
}

#define REFUSES(code, call) \
    do { \
        keep(); \
        EQ(call, code); \
        EXPECT(!changed()); \
    } while (0)
#define OFF(p) ((void *)((char *)(p) + 4))

TEST(bad_shapers_are_refused) {
    DO(setup());
    EQ(tatcell_shaper_size(), TATCELL_SHAPER_SIZE);
    EQ(tatcell_shaper_bytes(SLOTS, HANDLES), sizeof memory);
    EQ(TATCELL_SHAPER_BYTES(4096, 100000), tatcell_shaper_bytes(4096, 100000));
#define INIT(code, shaper, memory, bytes, slots, g) \
    REFUSES(code, tatcell_shaper_init(shaper, memory, bytes, slots, g, 0))
    INIT(TATCELL_ERR_NULL, NULL, memory, sizeof memory, SLOTS, G);
    INIT(TATCELL_ERR_NULL, &shaper, NULL, sizeof memory, SLOTS, G);
    INIT(TATCELL_ERR_ALIGN, (tatcell_shaper_t *)OFF(&shaper), memory, sizeof memory, SLOTS, G);
    INIT(TATCELL_ERR_ALIGN, &shaper, OFF(memory), sizeof memory, SLOTS, G);
    INIT(TATCELL_ERR_WHEEL, &shaper, memory, sizeof memory, 63, G);
    INIT(TATCELL_ERR_WHEEL, &shaper, memory, sizeof memory, 0, G);
    INIT(TATCELL_ERR_WHEEL, &shaper, memory, sizeof memory, 8192, G);
    INIT(TATCELL_ERR_WHEEL, &shaper, memory, sizeof memory, SLOTS, 0);
    INIT(TATCELL_ERR_WHEEL, &shaper, memory, sizeof memory, SLOTS, 1000);
    INIT(TATCELL_ERR_WHEEL, &shaper, memory, sizeof memory, SLOTS, UINT64_C(1) << 60);
    INIT(TATCELL_ERR_TOO_SMALL, &shaper, memory, tatcell_shaper_bytes(SLOTS, 1) - 8, SLOTS, G);
    INIT(TATCELL_ERR_TOO_LARGE, &shaper, memory, SIZE_MAX, SLOTS, G);
    static union { tatcell_shaper_t shaper; uint64_t words[sizeof memory / 8]; } both;
    INIT(TATCELL_ERR_OVERLAP, &both.shaper, &both, sizeof both, SLOTS, G);
}

TEST(bad_calls_change_nothing) {
    DO(setup());
    static tatcell_shaper_t zero;
    tatcell_link_t a = of(&cells[0], &limit), bad = a;
    tatcell_limit_t far, window;
    tatcell_limit_spec_t spec = shaped(100, 1, HORIZON + 1);
    tatcell_decision_t unset;
    uint64_t next = 0;
    uint32_t count = 77;
    memset(&unset, 0, sizeof unset);
    EQ(tatcell_limit_init_spec(&far, &spec), 0);
    EQ(tatcell_limit_init_window(&window, 5, 1000), 0);
    EQ(tatcell_shaper_submit(&shaper, 0, &a, NULL, 1, &d), 0);
#define SUBMIT(code, shaper, link, group, out) REFUSES(code, tatcell_shaper_submit(shaper, 0, link, group, 2, out))
    SUBMIT(TATCELL_ERR_NULL, NULL, &a, NULL, &d);
    SUBMIT(TATCELL_ERR_NULL, &shaper, NULL, NULL, &d);
    SUBMIT(TATCELL_ERR_NULL, &shaper, &a, NULL, NULL);
    SUBMIT(TATCELL_ERR_ALIGN, (tatcell_shaper_t *)OFF(&shaper), &a, NULL, &d);
    SUBMIT(TATCELL_ERR_ALIGN, &shaper, &a, (tatcell_group_t *)OFF(&cells[2]), &d);
    SUBMIT(TATCELL_ERR_HANDLE, &zero, &a, NULL, &d);
    SUBMIT(TATCELL_ERR_SIZE, &shaper, &a, NULL, &unset);
    SUBMIT(TATCELL_ERR_OVERLAP, &shaper, &a, NULL, (tatcell_decision_t *)(void *)&memory[8]);
    SUBMIT(TATCELL_ERR_OVERLAP, &shaper, &a, NULL, (tatcell_decision_t *)(void *)&shaper);
    bad.limit = &far;
    SUBMIT(TATCELL_ERR_TOO_FAR, &shaper, &bad, NULL, &d);
    bad.limit = &window;
    SUBMIT(TATCELL_ERR_ALGORITHM, &shaper, &bad, NULL, &d);
    bad = a, bad.cell = NULL;
    SUBMIT(TATCELL_ERR_NULL, &shaper, &bad, NULL, &d);
    bad = a, bad.flags = 8;
    SUBMIT(TATCELL_ERR_OPTION, &shaper, &bad, NULL, &d);
    bad = a, bad.size = 0;
    SUBMIT(TATCELL_ERR_SIZE, &shaper, &bad, NULL, &d);
    REFUSES(TATCELL_ERR_BEHIND, tatcell_shaper_submit(&shaper, HORIZON, &a, NULL, 2, &d));
    REFUSES(TATCELL_ERR_NULL, tatcell_shaper_forward(&shaper, 0, NULL, &a, &d));
    REFUSES(TATCELL_ERR_NULL, tatcell_shaper_insert(&shaper, 0, NULL));
    due[0].departure = 64 * G;
    REFUSES(TATCELL_ERR_TOO_FAR, tatcell_shaper_insert(&shaper, 0, due));
    due[0].departure = 0;
    while (waiting() < HANDLES) EQ(tatcell_shaper_insert(&shaper, 0, due), 0);
    REFUSES(TATCELL_ERR_FULL, tatcell_shaper_insert(&shaper, 0, due));
    SUBMIT(TATCELL_ERR_FULL, &shaper, &a, NULL, &d);
    REFUSES(TATCELL_ERR_NULL, tatcell_shaper_release(&shaper, 0, NULL, 1, &count));
    REFUSES(TATCELL_ERR_NULL, tatcell_shaper_release(&shaper, 0, due, 1, NULL));
    REFUSES(TATCELL_ERR_ALIGN, tatcell_shaper_release(&shaper, 0, (tatcell_waiting_t *)OFF(due), 1, &count));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_shaper_release(&shaper, 0, (tatcell_waiting_t *)(void *)memory, 1, &count));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_shaper_release(&zero, 0, due, 1, &count));
    EQ(count, 77);
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_shaper_take(&shaper, (tatcell_waiting_t *)(void *)memory));
    REFUSES(TATCELL_ERR_NULL, tatcell_shaper_take(&shaper, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_shaper_next(&shaper, NULL));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_shaper_next(&zero, &next));
    REFUSES(TATCELL_ERR_NULL, tatcell_shaper_info(&shaper, NULL));
    EQ(release(0, HANDLES), HANDLES);
}

TEST(a_queue_has_both_bounds_and_gives_payloads_when_due) {
    enum { PAYLOADS = 4 };
    static uint64_t room[TATCELL_LEAKY_QUEUE_BYTES(PAYLOADS) / 8];
    static tatcell_leaky_queue_t queue, zero;
    uint64_t departure = 77, retry = 77, handle = 77;
    size_t count = 77, most = 77;
    tatcell_limit_t deep;
    tatcell_limit_spec_t spec = shaped(100, 1, 2000);
    EQ(tatcell_limit_init_spec(&deep, &spec), 0);
    spec.max_delay = 200;
    EQ(tatcell_limit_init_spec(&limit, &spec), 0);
    EQ(tatcell_leaky_queue_size(), sizeof queue);
    EQ(tatcell_leaky_queue_bytes(PAYLOADS), sizeof room);
    EQ(tatcell_leaky_queue_init(&queue, room, sizeof room, &limit, 0), 0);
    for (uint64_t i = 0; i < 3; i++) {
        EQ(tatcell_leaky_queue_push(&queue, 0, 1, 10 + i, &departure, &retry), 0);
        EQ(departure, i * 100);
        EQ(retry, 0);
    }
    EQ(tatcell_leaky_queue_push(&queue, 0, 1, 13, &departure, &retry), TATCELL_NON_CONFORMING);
    EQ(retry, 100);
    EQ(departure, 200); /* left alone */
    EQ(tatcell_leaky_queue_push(&queue, 0, 2, 13, NULL, &retry), TATCELL_NEVER);
    EQ(retry, UINT64_MAX);
    EQ(tatcell_leaky_queue_count(&queue, &count, &most), 0);
    EQ(count, 3);
    EQ(most, PAYLOADS);
    EQ(tatcell_leaky_queue_pop(&queue, 0, &handle), 0);
    EQ(handle, 10);
    EQ(tatcell_leaky_queue_pop(&queue, 99, &handle), TATCELL_END);
    EQ(tatcell_leaky_queue_next(&queue, &departure), 0);
    EQ(departure, 100);
    EQ(tatcell_leaky_queue_pop(&queue, 100, &handle), 0);
    EQ(handle, 11);
    EQ(tatcell_leaky_queue_take(&queue, &handle), 0);
    EQ(handle, 12);
    EQ(tatcell_leaky_queue_take(&queue, &handle), TATCELL_END);
    EQ(tatcell_leaky_queue_next(&queue, &departure), TATCELL_END);
    /* The memory is the shorter bound here. */
    EQ(tatcell_leaky_queue_init(&queue, room, sizeof room, &deep, 0), 0);
    for (uint64_t i = 0; i < PAYLOADS; i++) EQ(tatcell_leaky_queue_push(&queue, 0, 1, i, NULL, NULL), 0);
    EQ(tatcell_leaky_queue_push(&queue, 0, 1, 9, NULL, NULL), TATCELL_ERR_FULL);
    EQ(tatcell_leaky_queue_pop(&queue, 0, &handle), 0);
    EQ(tatcell_leaky_queue_push(&queue, 0, 1, 9, &departure, NULL), 0);
    EQ(departure, 400); /* the refused one took no place */

    tatcell_limit_t window;
    EQ(tatcell_limit_init_window(&window, 5, 1000), 0);
    const tatcell_leaky_queue_t before = queue;
#define QUEUE(code, call) \
    do { \
        EQ(call, code); \
        EXPECT(memcmp(&before, &queue, sizeof queue) == 0); \
    } while (0)
    QUEUE(TATCELL_ERR_NULL, tatcell_leaky_queue_init(NULL, room, sizeof room, &deep, 0));
    QUEUE(TATCELL_ERR_NULL, tatcell_leaky_queue_init(&queue, NULL, sizeof room, &deep, 0));
    QUEUE(TATCELL_ERR_NULL, tatcell_leaky_queue_init(&queue, room, sizeof room, NULL, 0));
    QUEUE(TATCELL_ERR_ALIGN, tatcell_leaky_queue_init(&queue, OFF(room), sizeof room, &deep, 0));
    QUEUE(TATCELL_ERR_TOO_SMALL, tatcell_leaky_queue_init(&queue, room, 8, &deep, 0));
    QUEUE(TATCELL_ERR_TOO_LARGE, tatcell_leaky_queue_init(&queue, room, SIZE_MAX, &deep, 0));
    QUEUE(TATCELL_ERR_ALGORITHM, tatcell_leaky_queue_init(&queue, room, sizeof room, &window, 0));
    QUEUE(TATCELL_ERR_OVERLAP, tatcell_leaky_queue_init(&queue, &queue, sizeof queue, &deep, 0));
    memset(&window, 0, sizeof window);
    QUEUE(TATCELL_ERR_LIMIT, tatcell_leaky_queue_init(&queue, room, sizeof room, &window, 0));
    QUEUE(TATCELL_ERR_HANDLE, tatcell_leaky_queue_push(&zero, 0, 1, 0, NULL, NULL));
    QUEUE(TATCELL_ERR_ALIGN, tatcell_leaky_queue_push(&queue, 0, 1, 0, (uint64_t *)OFF(room), NULL));
    QUEUE(TATCELL_ERR_NULL, tatcell_leaky_queue_pop(&queue, 0, NULL));
    QUEUE(TATCELL_ERR_HANDLE, tatcell_leaky_queue_pop(&zero, 0, &handle));
    QUEUE(TATCELL_ERR_NULL, tatcell_leaky_queue_take(NULL, &handle));
    QUEUE(TATCELL_ERR_NULL, tatcell_leaky_queue_next(&queue, NULL));
    QUEUE(TATCELL_ERR_HANDLE, tatcell_leaky_queue_count(&zero, &count, NULL));
}

int main(void) {
    RUN(requests_wait_for_their_departure_and_come_out_in_order);
    RUN(keys_of_a_table_are_shaped_by_key_and_by_hash);
    RUN(levels_ask_each_limit_when_a_request_gets_there);
    RUN(a_chain_departs_at_the_latest_of_its_links);
    RUN(groups_give_the_eligibility_times_of_802_1qcr);
    RUN(bad_shapers_are_refused);
    RUN(bad_calls_change_nothing);
    RUN(a_queue_has_both_bounds_and_gives_payloads_when_due);
    return check_end();
}
