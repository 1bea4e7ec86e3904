// cpp_shaper.cpp - tatcell.hpp: shapers, groups and leaky queues answer as the C functions.
#include "tatcell.hpp"

#include "check.h"

using namespace std::chrono_literals;
using tatcell::code;
using tatcell::instant;
using tatcell::limit_spec;
using tatcell::link;
using tatcell::ticks;

static constexpr auto start = instant(0) + ticks(1h);
static constexpr ticks slot{1 << 24};  // 16.8 ms

TEST(shapers_give_handles_out_at_their_departures) {
    static tatcell::shaper_memory<64, 4> memory;
    tatcell::shaper shaper;
    tatcell::cell cell;
    tatcell::limit ten;
    EXPECT(shaper.next() == code::err_handle);
    EXPECT(ten.init(limit_spec(10, 1s, 1).max_delay(200ms)) && shaper.init(memory, slot, start));
    EXPECT(shaper.next() == code::end && shaper.take() == code::end);
    const link one(cell, ten);
    for (std::uint64_t i = 0; i < 3; i++) EXPECT(shaper.submit(start, one, i).departs_at() == start + i * 100ms);
    const auto late = shaper.submit(start, one, 3);
    EXPECT(late == code::non_conforming && late.retry_in() == 100ms);
    EXPECT(shaper.insert(start, {9, start + 50ms, 5}) && shaper.insert(start, {9, start}) == code::err_full);
    const auto info = shaper.info();
    EXPECT(info && info->waiting == 4 && info->capacity == 4 && info->granularity == slot.count());
    tatcell::waiting due[8];
    EQ(*shaper.release(start + 99ms, due), 2);
    EXPECT(due[0].handle == 0 && due[1].handle == 9 && due[1].level == 5 && due[1].departs_at() == start + 50ms);
    EXPECT(*shaper.next() == start + 100ms && shaper.take()->handle == 1);
    EQ(*shaper.release(start + 1s, due, 1), 1);
    EQ(due[0].handle, 2);
    tatcell::limit far;
    EXPECT(far.init(limit_spec(10, 1s, 1).max_delay(2s)));
    EXPECT(shaper.submit(start, link(cell, far), 1) == code::err_too_far);
    EXPECT(shaper.init(memory, ticks(1000), start) == code::err_wheel);
    EQ(tatcell::shaper::bytes(64, 4), sizeof memory);
}

TEST(levels_and_chains_are_shaped) {
    static tatcell::shaper_memory<64, 8> memory;
    tatcell::shaper shaper;
    tatcell::cell flow, port;
    tatcell::limit fast, slow;
    EXPECT(fast.init(limit_spec(10, 1s, 1).max_delay(900ms)) && slow.init(limit_spec(5, 1s, 1).max_delay(900ms)));
    EXPECT(shaper.init(memory, slot, start));
    for (std::uint64_t i = 0; i < 3; i++) EXPECT(shaper.submit(start, link(flow, fast), i));
    tatcell::waiting due[1];
    std::uint64_t sent = 0;
    for (auto now = shaper.next(); now; now = shaper.next()) {
        EQ(*shaper.release(*now, due), 1);
        if (due[0].level == 0) {
            EXPECT(shaper.forward(*now, due[0], link(port, slow)));
            continue;
        }
        EXPECT(due[0].handle == sent && *now == start + sent * 200ms);
        sent++;
    }
    EQ(sent, 3);
    tatcell::cell a, b;
    const link links[] = {{a, fast}, {b, slow}};
    tatcell::chain chain(links);
    tatcell::permit permits[2];
    chain.permits(permits);
    EXPECT(shaper.submit(start + 1s, chain, 1) && permits[1].stored != 0);
    EXPECT(shaper.submit(start + 1s, chain, 2).departs_at() == start + 1s + 200ms);
    EXPECT(tatcell::abi_fits());
}

TEST(groups_leave_in_the_order_of_their_eligibility) {
    static tatcell::shaper_memory<64, 8> memory;
    tatcell::shaper shaper;
    tatcell::group group;
    tatcell::cell one, two;
    tatcell::limit bytes;
    EXPECT(bytes.init(limit_spec(1, ticks(1), 3000).max_delay(ticks(9000))));
    const link frame(one, bytes, 1500), other(two, bytes, 1500);
    const std::uint64_t arrivals[] = {0, 0, 0, 5000}, wanted[] = {0, 0, 1500, 5000};
    for (int i = 0; i < 4; i++) EQ(group.reserve(instant(arrivals[i]), frame).departure, wanted[i]);
    EXPECT(shaper.init(memory, ticks(256), instant(4000)));
    EXPECT(shaper.submit(instant(4000), other, group, 7).departs_at() == instant(5000));
    EQ(group.get()->word, 5000);
}

TEST(leaky_queues_give_payloads_out_when_due) {
    std::uint64_t memory[2 * 3];
    tatcell::leaky_queue queue;
    tatcell::limit ten, window;
    EXPECT(queue.pop(start) == code::err_handle);
    EXPECT(ten.init(limit_spec(10, 1s, 1).max_delay(100ms)) && window.init_window(5, 1s));
    EXPECT(queue.init(memory, window, start) == code::err_algorithm && queue.init(memory, ten, start));
    EXPECT(*queue.push(start, 1) == start && *queue.push(start, 2) == start + 100ms);
    EXPECT(queue.push(start, 3) == code::non_conforming && queue.push(start, 3, 2) == code::never);
    EXPECT(*queue.pop(start) == 1 && queue.pop(start) == code::end && *queue.next() == start + 100ms);
    EXPECT(*queue.size() == 1 && *queue.take() == 2 && queue.take() == code::end && queue.next() == code::end);
    EXPECT(ten.init(limit_spec(10, 1s, 9)) && queue.init(memory, ten, start));
    for (std::uint64_t i = 0; i < 3; i++) EXPECT(queue.push(start, i));
    EXPECT(queue.push(start, 3) == code::err_full);
    EQ(tatcell::leaky_queue::bytes(3), sizeof memory);
}

int main() {
    RUN(shapers_give_handles_out_at_their_departures);
    RUN(levels_and_chains_are_shaped);
    RUN(groups_leave_in_the_order_of_their_eligibility);
    RUN(leaky_queues_give_payloads_out_when_due);
    return check_end();
}
