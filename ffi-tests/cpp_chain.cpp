// cpp_chain.cpp - tatcell.hpp: chains and ladders answer as the C functions.
#include "tatcell.hpp"

#include <array>
#include <vector>

#include <netinet/in.h>

#include "check.h"

using namespace std::chrono_literals;
using tatcell::code;
using tatcell::instant;
using tatcell::limit_spec;
using tatcell::ticks;

static constexpr std::uint8_t secret[16] = {1, 2, 3};
static constexpr auto start = instant(0) + ticks(1h);

TEST(chains_charge_all_limits_or_none) {
    tatcell::cell second, minute;
    tatcell::limit five, hundred;
    EXPECT(five.init(5, 1s, 5) && hundred.init(100, 60s, 7));
    const tatcell::link links[] = {{second, five}, {minute, hundred}};
    const tatcell::chain chain(links);
    for (int i = 0; i < 5; i++) EXPECT(chain.check(start));
    const auto refused = chain.check(start);
    EXPECT(refused == code::non_conforming && refused.policy == 0 && refused.retry_in() == 200ms);
    EQ(minute.ref().peek(hundred, start, 0).remaining, 2);
    EXPECT(chain.peek(start + refused.retry_in()) && !chain.peek(start + (refused.retry_in().ns() - 1ns)));
}

TEST(prepared_chains_take_keys_hashes_and_bursts) {
    static tatcell::table_memory<100> memory;
    tatcell::table table;
    tatcell::table_limit per_user;
    tatcell::cell cell;
    tatcell::limit all;
    const limit_spec spec(1, 1s, 3);
    EXPECT(table.init(memory, tatcell::table_options(spec).seed(secret)) && per_user.init(table, spec));
    EXPECT(all.init(1, 1s, 6));
    tatcell::prepared_chain prepared;
    {
        const tatcell::link links[] = {{table, per_user, ""}, {cell, all}};
        const tatcell::chain chain(links);
        EXPECT(prepared.init(chain));
    }
    const tatcell::chain_key keys[] = {"alice", {}};
    const std::uint64_t hashes[] = {table.hash("alice")->value(), 0}, costs[] = {1, 2};
    EXPECT(prepared.admit(start, keys) && prepared.check(start, keys).remaining == 1);
    EXPECT(prepared.check_hash(start, hashes, costs).remaining == 0);
    EXPECT(prepared.admit(start, keys) == code::non_conforming);
    EXPECT(cell.ref().peek(all, start).remaining == 2);
    const char users[3][4] = {{'b', 'o', 'b', '1'}, {'b', 'o', 'b', '2'}, {'b', 'o', 'b', '3'}};
    const tatcell::chain_key first[] = {{tatcell::key(users[0], 4), 4}, {}};
    std::uint64_t retries[3];
    tatcell::chain_burst burst;
    EXPECT(prepared.check(start, burst.keys(first, 3).retry_after(retries)));
    EXPECT(burst.pass() == 3 && burst[1] && !burst[2] && burst.size() == 3);
    EXPECT(retries[1] == 0 && ticks(retries[2]) == 1s);
    EXPECT(prepared.check(start, burst.hashes(hashes, 1).costs(costs)) && burst.pass() == 0);
    EXPECT(prepared.check(start, burst.hashes(hashes, 65)) == code::err_count);
}

TEST(chains_take_arrays_vectors_and_spans) {
    tatcell::cell a, b;
    tatcell::limit one, two;
    EXPECT(one.init(1, 1s, 5) && two.init(1, 1s, 2));
    const std::array<tatcell::link, 2> array{{{a, one}, {b, two}}};
    std::vector<tatcell::link> vector{{a, one}, {b, two}};
    EXPECT(tatcell::chain(array).check(start) && tatcell::chain(vector).check(start));
    EXPECT(tatcell::chain(vector).check(start).policy == 1);
#ifdef __cpp_lib_span
    EXPECT(tatcell::chain(std::span(vector).first(1)).check(start));
    EXPECT(tatcell::chain(std::span<const tatcell::link>(array)).check(start) == code::non_conforming);
    EXPECT(a.ref().peek(one, start).remaining == 2);
#endif
    vector.insert(vector.end(), 7, {a, one});
    EXPECT(tatcell::chain(vector).check(start) == code::err_links);
}

TEST(chains_of_cells_and_keys_give_back_by_their_permits) {
    static tatcell::table_memory<100> memory;
    tatcell::table table;
    tatcell::table_limit per_user;
    tatcell::cell32 small;
    tatcell::limit32 slow;
    const limit_spec spec(1, 1s, 3);
    EXPECT(table.init(memory, tatcell::table_options(spec).seed(secret)) && per_user.init(table, spec));
    EXPECT(slow.init(1, ticks(1000), 2));
    const auto hash = table.hash("user");
    const tatcell::link links[] = {{table, per_user, "user", 2}, {small, slow}, {table, per_user, *hash}};
    tatcell::permit permits[3];
    tatcell::decision each[3];
    tatcell::counters counters;
    tatcell::chain chain(links);
    chain.permits(permits).decisions(each).counters(&counters);
    const auto passed = chain.check(start);
    EXPECT(passed && each[0].cost == 3 && each[0].remaining == 0 && each[2].permit.stored == 0);
    EXPECT(counters.conforming == 1 && counters.inserted == 1 && permits[0].stored != 0);
    EXPECT(chain.refund(start) && permits[0].stored == 0);
    EXPECT(table.peek(per_user, start, "user", 2) && small.ref().peek(slow, start, 2));
}

TEST(reservations_of_chains_depart_at_the_latest) {
    tatcell::cell a, b;
    tatcell::limit fast, slow;
    EXPECT(fast.init(limit_spec(10, 1s, 1).max_delay(1s)) && slow.init(limit_spec(1, 1s, 1).max_delay(1s)));
    const tatcell::link links[] = {{a, fast}, {b, slow}};
    const tatcell::chain chain(links);
    EXPECT(chain.reserve(start).departs_at() == start);
    EXPECT(chain.reserve(start).departs_at() == start + 1s);
    const auto late = chain.reserve(start);
    EXPECT(late == code::non_conforming && late.policy == 1 && late.retry_in() == 1s);
}

TEST(errors_of_chains_have_their_codes) {
    tatcell::cell a;
    tatcell::limit one, two;
    EXPECT(one.init(1, 1s, 1) && two.init(2, 1s, 1));
    const tatcell::link same[] = {{a, one}, {a, two}};
    EXPECT(tatcell::chain(same).check(start) == code::err_two_limits);
    EXPECT(tatcell::chain(same, 0).check(start) == code::err_links);
    const tatcell::link many[9] = {{a, one}, {a, one}, {a, one}, {a, one}, {a, one}, {a, one}, {a, one}, {a, one},
                                   {a, one}};
    EXPECT(tatcell::chain(many).check(start) == code::err_links);
    const tatcell::link costs[] = {{a, one, 1}, {a, one, UINT64_MAX}};
    EXPECT(tatcell::chain(costs).check(start) == code::err_cost);
    tatcell::link random(a, one);
    random.extra(2);
    EXPECT(tatcell::chain(&random, 1).check(start));
}

TEST(ladders_hold_the_prefixes_of_an_address) {
    static tatcell::table_memory<1000> memory;
    const limit_spec one(10, 1s, 5);
    const tatcell::ladder_spec rungs;
    const auto options = rungs.options(one);
    tatcell::table table;
    tatcell::ladder ladder;
    EXPECT(options && table.init(memory, tatcell::table_options(*options).seed(secret)));
    EXPECT(ladder.init(table, one, rungs));
    in6_addr host{};
    host.s6_addr[0] = 0x20, host.s6_addr[1] = 1;
    int passed = 0;
    for (int i = 0; i < 30; i++) {
        host.s6_addr[15] = static_cast<std::uint8_t>(i);
        passed += ladder.check(table, start, host) ? 1 : 0;
    }
    EQ(passed, 10);
    const auto refused = ladder.peek(table, start, host);
    const auto tier = ladder.rung(host, refused.policy);
    EXPECT(refused == code::non_conforming && tier && tier->bits == 64 && tier->multiplier == 2);
    EXPECT(ladder.rung(host, 5) == code::end);
    in_addr v4{};
    tatcell::permit permits[tatcell::chain::max];
    tatcell::counters counters;
    EXPECT(ladder.check(table, start, v4, 5, permits, &counters) && !ladder.peek(table, start, v4));
    EXPECT(counters.inserted == 4 && permits[3].stored != 0 && permits[4].stored == 0);
    EXPECT(ladder.refund(table, start, v4, permits) && ladder.peek(table, start, v4, 4));
    EXPECT(ladder.check(table, start, tatcell::address("123", 3)) == code::err_address);
    const std::array<std::uint8_t, 16> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
    const auto canonical = tatcell::address(mapped).canonical();
    EXPECT(canonical && canonical->size == 4 && canonical->bytes[0] == 192 && canonical->bytes[3] == 1);
    EXPECT(tatcell::address(*canonical).size() == 4 && tatcell::address("123", 3).canonical() == code::err_address);
}

TEST(chains_have_room_and_are_charged_after_the_fact) {
    tatcell::cell a, b;
    tatcell::limit limit;
    EXPECT(limit.init(limit_spec(1, 1s, 2).max_room(3).max_debt(8)));
    tatcell::link links[] = {{a, limit, 2}, {b, limit, 2}};
    tatcell::counters each[2];
    auto chain = tatcell::chain(links).link_counters(each);
    EXPECT(chain.check(start) && !chain.check(start));
    EXPECT(each[0].conforming == 1 && each[1].non_conforming == 1);
    links[0].room(2), links[1].room(2);
    EXPECT(chain.check(start) && !chain.check(start));
    EXPECT(chain.reserve(start) == code::err_option);
    EXPECT(chain.charge(start) && a.ref().peek(limit, start, 0).reset_in() == 6s);
}

TEST(bursts_of_addresses_ask_overrides_first) {
    static tatcell::table_memory<1000> memory, of_bans;
    const limit_spec one(10, 1s, 5);
    const auto options = tatcell::ladder_spec().options(one);
    tatcell::table table, bans;
    tatcell::ladder ladder;
    EXPECT(options && table.init(memory, tatcell::table_options(*options).seed(secret)));
    EXPECT(bans.init(of_bans, tatcell::table_options::overrides(1h).seed(secret)));
    EXPECT(ladder.init(table, one));
    const std::array<std::uint8_t, 4> hosts[] = {{192, 0, 2, 1}, {192, 0, 2, 2}, {192, 0, 2, 1}, {198, 51, 100, 1}};
    EXPECT(bans.ban_address(start, hosts[3], 24, 64, start + 1min));
    EXPECT(bans.exempt_address(start, hosts[1], 32, 128, start + 1min));
    tatcell::prefix_lengths asked;
    static constexpr std::uint8_t asked_bits[] = {32, 24};
    asked.v4(asked_bits);
    tatcell::ladder_burst burst;
    tatcell::decision each[4];
    tatcell::permit permits[4 * tatcell::chain::max];
    tatcell::counters all, tiers[tatcell::chain::max];
    const std::uint32_t costs[] = {5, 50, 1, 1}, rooms[] = {0, 0, 0, 0};
    burst.addresses(hosts).overrides(bans, asked).costs(costs).rooms(rooms).decisions(each).permits(permits);
    burst.counters(&all).tier_counters(tiers);
    EXPECT(ladder.check(table, start, burst));
    EQ(burst.pass(), 0b0011);
    EXPECT(burst.size() == 4 && burst[1] && !burst[3] && each[3].retry_in() == 1min);
    EXPECT(all.conforming == 2 && tiers[0].conforming == 1 && tiers[0].non_conforming == 1);
    EXPECT(ladder.refund(table, start, hosts[0], permits));
    const void *const pointers[] = {&hosts[0]};
    const std::size_t lengths[] = {sizeof hosts[0]};
    EXPECT(ladder.charge(table, start, burst.addresses(pointers, lengths, 1)) && burst[0]);
    EXPECT(ladder.check(table, start, burst.addresses(hosts, 65)) == code::err_count);
}

TEST(custom_ladders_are_checked) {
    constexpr tatcell_rung_t v4[] = {{32, 1}, {16, 10}}, wrong[] = {{16, 1}, {32, 10}};
    const limit_spec one(10, 1s, 5);
    EXPECT(tatcell::ladder_spec().v4(v4).options(one));
    EXPECT(tatcell::ladder_spec().v4(wrong).options(one) == code::err_ladder);
    EXPECT(tatcell::ladder_spec().v6(wrong).v4(v4).options(one) == code::err_ladder);
    EXPECT(tatcell::ladder_spec().v6({{128, 1}, {64, 3}, {48, 9}, {40, 9}, {32, 9}, {24, 9}, {16, 9}, {8, 9}, {4, 9}})
               .options(one) == code::err_ladder);
    auto made = tatcell::ladder_spec().v4({{32, 1}, {16, 10}});
    const tatcell::ladder_spec copy = made;
    made = tatcell::ladder_spec();
    EXPECT(made.get()->v4_count == 0 && made.get()->v4 == nullptr);
    EXPECT(copy.get()->v4_count == 2 && copy.get()->v4[1].multiplier == 10 && copy.options(one));
}

TEST(pairs_charge_both_limits_of_each_key_or_none) {
    static tatcell::table_memory<1000> memory;
    const limit_spec packets(100, 1s, 10), bytes(100000, 1s, 4000);
    tatcell::table table;
    tatcell::table_limit first, second;
    EXPECT(table.init(memory, tatcell::table_options(bytes).slowest(packets).seed(secret)));
    EXPECT(first.init(table, packets) && second.init(table, bytes));
    const std::uint32_t sources[] = {7, 7, 7, 8}, sizes[] = {1500, 1500, 1500, 1500};
    tatcell::burst burst, next;
    EXPECT(table.check_pairs(start, burst.limit(first).keys(sources), second, sizes, &next.limit(first)));
    EQ(burst.pass(), 0xb);
    const auto hash = table.hash(7u);
    EQ(table.peek(first, start, *hash, 0).remaining, 8);
    EQ(table.peek(second, start, (*hash).second(), 0).remaining, 1000);
    EXPECT(table.check_pairs(start, burst, second, sizes, &burst) == code::err_option);
}

TEST(addresses_are_banned_however_they_are_written) {
    static tatcell::table_memory<64> memory;
    tatcell::table table;
    EXPECT(table.init(memory, tatcell::table_options::overrides(1h).seed(secret)));
    const std::array<std::uint8_t, 4> v4{192, 0, 2, 1};
    const std::array<std::uint8_t, 16> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
    static constexpr std::uint8_t v4_bits[] = {24, 32}, v6_bits[] = {64, 128};
    const auto asked = tatcell::prefix_lengths().v4(v4_bits).v6(v6_bits);
    EXPECT(table.ban_address(start, mapped, 24, 64, start + 10min));
    const auto by_24 = table.overridden_address(start, v4, asked);
    EXPECT(by_24 && by_24->kind == tatcell::override_kind::ban && by_24->bits == 24);
    EXPECT(table.overridden_address(start, v4, {})->kind == tatcell::override_kind::none);
    EXPECT(table.exempt_address(start, v4, 32, 64, start + 10min));
    EXPECT(table.overridden_address(start, mapped, {})->kind == tatcell::override_kind::exempt);
    EXPECT(table.lift_address(start, mapped, 32, 64) && table.lift_address(start, v4, 32, 64) == code::end);
    EXPECT(table.ban_address(start, mapped, 96, 96, start + 10min) == code::err_prefix);
    const auto network = tatcell::address(mapped).network(120);
    EXPECT(network && network->size == 4 && network->bits == 24 && network->bytes[0] == 192);
    EXPECT(tatcell::address(mapped).network(96) == code::err_prefix);
    const auto prefix = tatcell::address(mapped).prefix(24, 56);
    EXPECT(prefix && prefix->size == 5 && prefix->bytes[0] == 4 && prefix->bytes[4] == 2);
    EQ(table.hash(*prefix)->value(), table.prefix_hash(v4, 24, 56)->value());
    EXPECT(table.prefix_hash(v4, 33, 56) == code::err_prefix);
}

TEST(keys_are_banned_and_exempt_until_a_time) {
    static tatcell::table_memory<100> memory;
    tatcell::table table;
    EXPECT(table.init(memory, tatcell::table_options::overrides(24h).seed(secret)));
    const auto hash = table.hash("mallory");
    EXPECT(table.ban(start, "mallory", start + 10min) && !table.ban(start, "mallory", start));
    EXPECT(table.ban(start, "mallory", start) == code::err_until);
    const auto state = table.overridden(start + 4min, *hash);
    EXPECT(state && state->kind == tatcell::override_kind::ban && state->left >= ticks(6min));
    EXPECT(table.overridden(start, "alice")->kind == tatcell::override_kind::none);
    tatcell::cell cell;
    tatcell::limit one;
    EXPECT(one.init(1, 1s, 1));
    for (const auto &link : {tatcell::link::overrides(table, "mallory"), tatcell::link::overrides(table, *hash)}) {
        const tatcell::link links[] = {link, {cell, one}};
        const tatcell::chain chain(links);
        const auto refused = chain.check(start);
        EXPECT(refused == code::non_conforming && refused.banned() && refused.retry_in() >= ticks(10min));
        EXPECT(table.exempt(start, *hash, start + 10min));
        EXPECT(chain.check(start).exempt() && chain.check(start) && !chain.check(start).banned());
        EXPECT(table.ban(start, *hash, start + 10min));
    }
    EXPECT(cell.ref().peek(one, start).remaining == 1);
    EXPECT(table.exempt(start, "mallory", start + 10min) && table.lift(start, "mallory"));
    EXPECT(table.lift(start, *hash) == code::end);
    tatcell::table_limit limit;
    EXPECT(limit.init(table, limit_spec(1, 1s, 1)) == code::err_algorithm);
}

int main() {
    RUN(chains_charge_all_limits_or_none);
    RUN(prepared_chains_take_keys_hashes_and_bursts);
    RUN(chains_take_arrays_vectors_and_spans);
    RUN(chains_of_cells_and_keys_give_back_by_their_permits);
    RUN(reservations_of_chains_depart_at_the_latest);
    RUN(errors_of_chains_have_their_codes);
    RUN(ladders_hold_the_prefixes_of_an_address);
    RUN(chains_have_room_and_are_charged_after_the_fact);
    RUN(bursts_of_addresses_ask_overrides_first);
    RUN(custom_ladders_are_checked);
    RUN(pairs_charge_both_limits_of_each_key_or_none);
    RUN(addresses_are_banned_however_they_are_written);
    RUN(keys_are_banned_and_exempt_until_a_time);
    return check_end();
}
