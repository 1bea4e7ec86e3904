// cpp_tables.cpp - tatcell.hpp: keys, tables, bursts and the host answer as the C functions.
#include "tatcell.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

using namespace std::chrono_literals;
using tatcell::code;
using tatcell::instant;
using tatcell::key_hash;
using tatcell::limit_spec;
using tatcell::ticks;

static constexpr std::uint8_t secret[16] = {1, 2, 3};
static constexpr auto start = instant(0) + ticks(1h);
static tatcell::table_memory<1000> memory;

static void make(tatcell::table &table, tatcell::table_limit &limit, const limit_spec &spec) {
    EXPECT(table.init(memory, tatcell::table_options(spec).seed(secret)));
    EXPECT(limit.init(table, spec));
}

// ---- Keys and memory ----

struct address {
    std::uint32_t ip;
    std::uint16_t port, vlan;
};
struct padded {
    char c;
    int i;
};

TEST(objects_whose_bytes_are_not_their_value_are_no_keys) {
    using tatcell::detail::is_key;
    static_assert(is_key<address> && is_key<std::uint64_t> && is_key<std::array<char, 16>> && is_key<char[16]>);
    static_assert(!is_key<padded> && !is_key<double> && !is_key<int *> && !is_key<int padded::*>);
    static_assert(!is_key<std::unique_ptr<int>> && !is_key<std::list<int>> && !is_key<std::string>);
    static_assert(!std::is_convertible_v<std::uint64_t, key_hash>, "a number is a key, not its hash");
}

TEST(table_takes_keys_of_any_type_without_padding) {
    tatcell::table table;
    tatcell::table_limit limit;
    DO(make(table, limit, limit_spec(1, 1s, 1)));
    const address a{0xc0000201, 53, 7};
    const std::array<std::uint8_t, 16> v6{0x20, 1};
    const std::string text = "text";
    const std::uint8_t raw[4] = {'t', 'e', 'x', 't'};
    const char unterminated[4] = {'t', 'e', 'x', 't'};
    char buffer[16] = "text";
    EXPECT(table.check(limit, start, a));
    EXPECT(!table.check(limit, start, a));
    EXPECT(!table.check(limit, start, tatcell::key(&a, sizeof a)));
    EXPECT(table.check(limit, start, v6));
    EXPECT(!table.check(limit, start, std::vector<std::uint8_t>(v6.begin(), v6.end())));
    EXPECT(table.check(limit, start, text));
    EXPECT(!table.check(limit, start, "text"));
    EXPECT(!table.check(limit, start, std::string_view("text!", 4)));
    EXPECT(!table.check(limit, start, raw));
    EXPECT(!table.check(limit, start, unterminated));
    EXPECT(!table.check(limit, start, buffer));
    EXPECT(!table.check(limit, start, static_cast<const char *>(buffer)));
    EXPECT(table.check(limit, start, std::string_view()));
    EXPECT(table.check(limit, start, std::uint32_t(7)));
}

TEST(table_memory_has_the_size_that_the_library_names) {
    EXPECT(memory.bytes == tatcell_table_bytes(1000) && sizeof memory == tatcell_table_bytes(1000));
    const std::uint64_t slots[] = {0, 1, 15, 16, 17, 1000, UINT64_C(1) << 40, UINT64_MAX / 16, UINT64_MAX};
    for (const std::uint64_t n : slots) {
        NOTE("%llu", static_cast<unsigned long long>(n));
        EQ(tatcell::table_bytes(n), tatcell_table_bytes(n));
    }
    EXPECT(tatcell::table_bytes_for(1000, 1000) == tatcell_table_size_for(1000, 1000));
    EXPECT(tatcell::table_full_ppb(500000) == tatcell_table_full_ppb(500000));
    static_assert(std::is_trivially_destructible_v<tatcell::table> && alignof(tatcell::table_memory<1>) == 64);
}

// ---- Options ----

TEST(table_options_say_every_option_of_the_structure) {
    const auto options = tatcell::table_options(limit_spec(1, 1s, 2))
                             .slowest(limit_spec(1, 1min, 2)).seed(secret).hash(tatcell::hash_kind::aes)
                             .policy(tatcell::full_set::deny).tag_bits(16).skew(3s).claim_lifetime(4us)
                             .clock(tatcell::frequency(5)).resolution(-6).exclusive().zeroed();
    const tatcell_table_options_t raw = options.get();
    EQ(raw.size, sizeof raw);
    EXPECT(raw.flags == (TATCELL_TABLE_EXCLUSIVE | TATCELL_TABLE_RESOLUTION | TATCELL_TABLE_ZEROED));
    EXPECT(raw.policy == TATCELL_FULL_DENY);
    EXPECT(raw.hash == TATCELL_HASH_AES && raw.tag_bits == 16 && raw.resolution == -6 && raw.skew == 3000000000);
    EXPECT(raw.claim_lifetime == 4000 && raw.tick_hz == 5 && raw.reserved == nullptr);
    EXPECT(raw.fastest->period == 1000000000 && raw.slowest->period == 60000000000);
    EXPECT(std::memcmp(raw.seed, secret, 16) == 0);
    EXPECT(tatcell::table_options(limit_spec(1, 1s, 2)).get().seed == nullptr);
    const auto attach = tatcell::attach_options(secret).policy(tatcell::full_set::deny).exclusive()
                            .clock(tatcell::frequency(5));
    const tatcell_attach_options_t expected = attach.get();
    EXPECT(expected.size == sizeof expected && expected.policy == TATCELL_FULL_DENY && expected.tick_hz == 5);
    EXPECT(expected.flags == (TATCELL_TABLE_EXCLUSIVE | TATCELL_TABLE_POLICY));
    EXPECT(std::memcmp(expected.seed, secret, 16) == 0 && tatcell::attach_options().get().seed == nullptr);
    EXPECT(tatcell::hash_available(tatcell::hash_kind::siphash13));
    EXPECT(tatcell::hash_available(static_cast<tatcell::hash_kind>(9)) == code::err_option);
}

TEST(tables_tell_what_they_came_out_as) {
    const limit_spec spec(1, 1s, 2);
    tatcell::table table;
    const auto options = tatcell::table_options(spec).seed(secret).policy(tatcell::full_set::inherit).tag_bits(16)
                             .skew(2min).clock(tatcell::frequency(1000000000));
    EXPECT(table.info() == code::err_handle && table.stats(start) == code::err_handle);
    EXPECT(table.init(memory, options));
    const auto info = table.info();
    EXPECT(info && info->policy == TATCELL_FULL_INHERIT && info->tag_bits == 16 && info->slots == 1008);
    EXPECT(info->tick_hz == 1000000000 && ticks(info->skew) >= 2min && info->image_bytes == memory.bytes);
    const auto numbers = table.numbers();
    EXPECT(numbers && numbers->lines == info->lines && numbers->generation == info->generation);
    EXPECT(table.init(memory, tatcell::table_options(spec)) == code::err_seed);
    EXPECT(table.init({memory.data, 100}, options) == code::err_too_small);
    EXPECT(table.init({memory.data + 1, 512}, options) == code::err_align);
    EXPECT(table.init({nullptr, 512}, options) == code::err_null);
    tatcell::table_limit limit;
    EXPECT(limit.init(tatcell::table(), spec) == code::err_handle);
    EXPECT(limit.init(table, limit_spec(1000000000, 1s, 1)) == code::err_too_fast);
    EXPECT(limit.init(table, spec) && limit.info()->bits == 63 - 16);
    EXPECT(limit.init_unlimited(table) && table.check(limit, start, "exempt", UINT64_MAX));
}

// ---- One key ----

TEST(a_key_and_its_hash_answer_alike) {
    tatcell::table table;
    tatcell::table_limit limit;
    DO(make(table, limit, limit_spec(1, 1s, 4).max_delay(9s).max_debt(9).max_room(1)));
    EXPECT(table.hash("text") && tatcell::table().hash("text") == code::err_handle);
    const key_hash hash = *table.hash("text");
    tatcell::counters counters;
    EXPECT(table.check(limit, start, "text") && table.check(limit, start, hash));
    tatcell::counters counted;
    EXPECT(table.check_counted(limit, start, "text", counted) && table.check_counted(limit, start, hash, counted));
    EXPECT(!table.check_counted(limit, start, "text", counted) && !table.check_counted(limit, start, hash, counted, 2));
    EXPECT(counted.conforming == 2 && counted.non_conforming == 2);
    EXPECT(table.check_counted(limit, start, hash, counted).retry_after == 1s && table.reset(start, "text"));
    EXPECT(table.check(limit, start, "text") && table.check(limit, start, hash));
    auto d = table.check_ex(limit, start, "text", 1, 0, &counters);
    EXPECT(d && d.remaining == 1 && d.tracked_as() == tatcell::tracking::tracked);
    EXPECT(*table.refund(limit, start, "text", d.permit) == 1s);
    d = table.check_ex(limit, start, hash, 1, 0, &counters);
    EXPECT(d && d.remaining == 1 && *table.refund(limit, start, hash, d.permit) == 1s);
    d = table.check_ex(limit, start, hash);
    EXPECT(table.refund_ex(limit, start, "text", d.permit).units == 1 && d.units == 1);
    EXPECT(table.refund_ex(limit, start, hash, tatcell::permit{}).remaining == 2);
    EXPECT(table.refund_ex(tatcell::table_limit(), start, hash, d.permit) == code::err_limit);
    EXPECT(table.peek(limit, start, "text", 3).retry_in() == 1s && table.peek(limit, start, hash, 3).retry_in() == 1s);
    EXPECT(table.reserve(limit, start, "text", 3, &counters).departs_at() == start + 1s);
    EXPECT(table.reserve(limit, start, hash, 1, &counters).departs_at() == start + 2s);
    EXPECT(table.check_ex(limit, start, "text", 0).remaining == 0);
    EXPECT(table.charge(limit, start, "text", 1, &counters).reset_in() == 7s);
    EXPECT(table.charge(limit, start, hash, 1, &counters).reset_in() == 8s);
    EQ(counters.conforming, 6);
    EXPECT(table.check(limit, start, "text") == code::non_conforming && !table.check(limit, start, hash));
    EXPECT(table.reset(start, "text") && table.peek(limit, start, hash).remaining == 4);
    EXPECT(table.check(limit, start, "text", 4) && table.reset(start, hash));
    EXPECT(table.peek(limit, start, "text").remaining == 4);
    EXPECT(table.check(limit, start, "text", 4));
    EXPECT(table.check_ex(limit, start, "text", 1, 1).elastic() && !table.check_ex(limit, start, hash, 1, 1));
    EXPECT(table.check(limit, start, hash, 5) == code::never);
}

TEST(a_number_is_a_key_and_a_hash_is_spelled_out) {
    tatcell::table table;
    tatcell::table_limit limit;
    const limit_spec spec(1, 1s, 1);
    DO(make(table, limit, spec));
    EXPECT(table.check(limit, start, std::uint64_t{123}) && table.check(limit, start, key_hash(123)));
    EXPECT(table.init(memory, tatcell::table_options(spec).hash(tatcell::hash_kind::caller)));
    EXPECT(limit.init(table, spec));
    EXPECT(table.check(limit, start, std::uint64_t{123}) == code::err_hash);
    EXPECT(table.check(limit, start, key_hash(123)) && !table.check(limit, start, key_hash(123)));
}

TEST(limits_of_no_table_and_of_another_are_refused) {
    tatcell::table table, coarse;
    tatcell::table_limit limit, none, foreign;
    DO(make(table, limit, limit_spec(1, 1s, 1)));
    static tatcell::table_memory<16> other;
    const limit_spec hourly(1, 1h, 1);
    EXPECT(coarse.init(other, tatcell::table_options(hourly).seed(secret)) && foreign.init(coarse, hourly));
    EXPECT(table.check(none, start, "a") == code::err_limit);
    EXPECT(table.check(foreign, start, "a") == code::err_foreign);
    EXPECT(tatcell::table().check(limit, start, "a") == code::err_handle);
    static_assert(!std::is_convertible_v<tatcell::limit, tatcell::table_limit>, "cells have limits of their own");
}

// ---- Bursts ----

TEST(bursts_have_room_and_are_charged_after_the_fact) {
    tatcell::table table;
    tatcell::table_limit limit;
    DO(make(table, limit, limit_spec(1, 1s, 2).max_room(2).max_debt(8)));
    const std::uint32_t keys[] = {1, 2, 1, 1, 2, 2}, rooms[] = {0, 0, 1, 1, 0, 0}, costs[] = {5, 5, 5, 5, 5, 5};
    tatcell::burst burst, next;
    EXPECT(table.check_burst_room(start, burst.limit(limit).keys(keys), rooms, &next.limit(limit).keys(keys)));
    EXPECT(burst.pass() == 0b011111);
    EXPECT(table.check_burst_room(start, next, nullptr) && next.pass() == 0);
    EXPECT(table.charge_burst(start, burst.costs(costs)) && burst.pass() == 0b111111);
    EXPECT(table.peek(limit, start, 1u, 0).reset_in() == 10s);
    EXPECT(table.charge_burst(start, burst, &burst) == code::err_option);
}

TEST(bursts_give_a_bit_per_key) {
    tatcell::table table;
    tatcell::table_limit limit;
    DO(make(table, limit, limit_spec(1, 1s, 2)));
    const std::uint32_t keys[] = {1, 2, 1, 1, 2, 2};
    tatcell::burst burst;
    EXPECT(table.check_burst(start, burst.limit(limit).keys(keys)));
    EXPECT(burst.size() == 6 && burst.pass() == 0b010111 && burst[0] && !burst[3] && !burst[6]);
    std::uint32_t many[65] = {};
    EXPECT(table.check_burst(start, burst.keys(many)) == code::err_count);
    EXPECT(table.check_burst(start, burst.keys(many, SIZE_MAX)) == code::err_count);
    EXPECT(table.check_burst(start, burst.keys(many, 64)) && burst.pass() == 0b11);
    EXPECT(table.check_burst(start, burst.clear()) && burst.size() == 0 && burst.pass() == 0);
    tatcell::burst without;
    EXPECT(table.check_burst(start, without.keys(keys)) == code::err_null);
    EXPECT(tatcell::table().check_burst(start, burst.keys(keys)) == code::err_handle);
#ifdef __cpp_lib_span
    std::vector<std::uint32_t> more{3, 3, 3};
    EXPECT(table.check_burst(start, burst.keys(std::span(more))) && burst.pass() == 0b011);
    EXPECT(table.check_burst(start, burst.keys(std::span<const std::uint32_t, 3>(more))) && burst.pass() == 0);
    EXPECT(!table.check(limit, start, std::span<const std::uint32_t>(more.data(), 1)));
#endif
}

struct header {
    std::uint16_t length;
};
struct packet : header {
    char pad;
    std::uint32_t source;
    std::uint8_t v6[16];
};

TEST(keys_in_structures_at_pointers_and_as_hashes_are_the_same_keys) {
    tatcell::table table;
    tatcell::table_limit limit;
    DO(make(table, limit, limit_spec(1, 1s, 4)));
    packet packets[3] = {};
    packets[0].source = packets[2].source = 7, packets[1].source = 8;
    tatcell::burst burst;
    burst.limit(limit);
    EXPECT(table.check_burst(start, burst.keys(packets, 3, &packet::source)) && burst.pass() == 0b111);
    const void *pointers[3] = {&packets[0].source, &packets[1].source, &packets[2].source};
    EXPECT(table.check_burst(start, burst.key_pointers(pointers, 4, 3)) && burst.pass() == 0b111);
    EXPECT(table.peek(limit, start, std::uint32_t{7}).remaining == 0);
    EXPECT(table.peek(limit, start, std::uint32_t{8}).remaining == 2);
    const std::size_t lengths[3] = {4, 4, 3};
    EXPECT(table.check_burst(start, burst.key_pointers(pointers, lengths, 3)) && burst.pass() == 0b110);
    const std::uint64_t hashes[2] = {table.hash(std::uint32_t{7})->value(), table.hash(std::uint32_t{8})->value()};
    EXPECT(table.prefetch(hashes, 2) && table.prefetch(hashes, 65) == code::err_count);
    EXPECT(table.check_burst(start, burst.hashes(hashes, 2)) && burst.pass() == 0b10);
    EXPECT(table.check_burst(start, burst.keys(packets, 3, &packet::v6)) && burst.pass() == 0b111);
    EXPECT(table.peek(limit, start, packets[0].v6).remaining == 1);
    EXPECT(table.check_burst(start, burst.keys(packets, 3, &packet::length)) && burst.pass() == 0b111);
    const packet *none = nullptr;
    EXPECT(table.check_burst(start, burst.keys(none, 0, &packet::source)) && burst.pass() == 0);
}

TEST(bursts_take_costs_limits_decisions_and_counters) {
    tatcell::table table;
    tatcell::table_limit limit, large;
    DO(make(table, limit, limit_spec(1, 1s, 4)));
    EXPECT(large.init(table, limit_spec(1, 1s, 2)));
    const std::uint32_t keys[] = {1, 2, 3}, costs[] = {4, 5, 2};
    tatcell::decision decisions[3];
    tatcell::counters counters;
    tatcell::burst burst;
    burst.limit(limit).keys(keys).costs(costs).decisions(decisions).counters(&counters);
    EXPECT(table.check_burst(start, burst) && burst.pass() == 0b101);
    EXPECT(decisions[0].remaining == 0 && decisions[1] == code::never && decisions[2].remaining == 2);
    EXPECT(counters.conforming == 2 && counters.never == 1);
    const tatcell_limit_t *limits[] = {limit.get(), large.get(), large.get()};
    EXPECT(table.check_burst(start, burst.limits(limits).costs(nullptr)) && burst.pass() == 0b010);
    EXPECT(decisions[1].burst == 2 && decisions[1].remaining == 1 && decisions[2].retry_in() == 1s);
    EXPECT(table.check_burst(start, burst.limit(limit).decisions(nullptr).counters(nullptr)) && burst.pass() == 0b110);
    EQ(counters.conforming, 3);
}

TEST(new_keys_in_a_prepared_burst_are_hashed_again) {
    tatcell::table table;
    tatcell::table_limit limit;
    DO(make(table, limit, limit_spec(1, 1s, 1)));
    const std::uint32_t one[] = {1}, two[] = {2};
    tatcell::burst empty, burst;
    EXPECT(table.check_burst(start, empty, burst.limit(limit).keys(one)) && burst.get()->prepared != 0);
    EXPECT(table.check_burst(start, burst.keys(two)) && burst.pass() == 1);
    EXPECT(table.check(limit, start, one) && !table.check(limit, start, two));
    EXPECT(table.check_burst(start, burst, burst) == code::err_option);
}

// ---- Upkeep ----

TEST(another_handle_attaches_to_the_same_memory) {
    tatcell::table first, second;
    tatcell::table_limit limit;
    DO(make(first, limit, limit_spec(1, 1s, 1)));
    EXPECT(second.attach(memory, tatcell::attach_options(secret)));
    EXPECT(first.check(limit, start, "a") && !second.check(limit, start, "a"));
    EXPECT(second.attach(memory, tatcell::attach_options()) == code::err_seed);
    const std::array<std::uint8_t, 16> wrong{9};
    EXPECT(second.attach(memory, tatcell::attach_options(wrong)) == code::err_wrong_seed);
    const auto deny = tatcell::attach_options(secret).policy(tatcell::full_set::deny);
    EXPECT(second.attach(memory, deny) == code::err_mode);
    EXPECT(second.attach(memory, tatcell::attach_options(secret).exclusive()) == code::err_mode);
    static tatcell::table_memory<16> blank;
    EXPECT(second.attach(blank, tatcell::attach_options(secret)) == code::err_not_ready);
#ifdef __cpp_lib_span
    alignas(64) static std::byte bytes[256];
    EXPECT(second.init(std::span(bytes), tatcell::table_options(limit_spec(1, 1s, 1)).seed(secret).exclusive()));
#endif
}

TEST(a_restored_table_knows_its_debts_under_another_clock) {
    tatcell::table table, other;
    tatcell::table_limit limit;
    DO(make(table, limit, limit_spec(1, 1s, 3)));
    const auto d = table.check_ex(limit, start, "a", 3);
    alignas(8) static unsigned char image[sizeof memory];
    EXPECT(table.save(start, {image, 100}) == code::err_buffer);
    const auto used = table.save(start, {image, sizeof image});
    EXPECT(used && *used == memory.bytes);
    static tatcell::table_memory<1000> elsewhere;
    static tatcell::table_memory<16> small;
    const tatcell::attach_options options(secret);
    EXPECT(other.restore(small, {image, *used}, options) == code::err_wrong_size);
    const instant now(5);
    EXPECT(other.restore(elsewhere, {image, *used}, options, tatcell::clock_offset(now, start)));
    EXPECT(other.peek(limit, now, "a").retry_in() == 1s && other.peek(limit, now, "b").remaining == 3);
    EXPECT(other.refund(limit, now, "a", d.permit) && *other.refund(limit, now, "a", d.permit) == ticks(0));
    EXPECT(other.info()->generation == table.info()->generation + 1);
    static_assert(tatcell::clock_offset(instant(5), instant(9)).count() == -4);
    static_assert(tatcell::clock_offset().count() == 0 && tatcell::clock_offset(-7).count() == -7);
#ifdef __cpp_lib_span
    const auto view = std::as_bytes(std::span(image)).first(*used);
    EXPECT(other.restore(std::as_writable_bytes(std::span(elsewhere.data)), view, options));
#endif
}

TEST(a_migrated_table_knows_the_debts_of_the_old_one) {
    tatcell::table from, to;
    tatcell::table_limit limit;
    const limit_spec spec(1, 1s, 3);
    DO(make(from, limit, spec));
    EXPECT(from.check(limit, start, "a", 3));
    static tatcell::table_memory<2016> larger;
    const auto options = tatcell::table_options(spec).seed(secret);
    const auto foreseen = from.migrate_foresee(larger.bytes, options, start);
    EXPECT(foreseen && foreseen->copied >= 1 && (foreseen->dropped | foreseen->clamped | foreseen->opened) == 0);
    const auto migrated = to.migrate(larger, options, from, start);
    EXPECT(migrated && migrated->copied == foreseen->copied && migrated->dropped == 0);
    EXPECT(to.info()->slots == 2016 && limit.init(to, spec));
    EXPECT(to.peek(limit, start, "a").retry_in() == 1s && to.peek(limit, start, "b").remaining == 3);
    EXPECT(to.migrate(memory, options, from, start) == code::err_overlap);
    const std::array<std::uint8_t, 16> wrong{9};
    EXPECT(from.migrate_foresee(4096, tatcell::table_options(spec).seed(wrong), start) == code::err_wrong_seed);
}

TEST(a_key_or_a_table_keeps_its_units_when_the_limit_changes) {
    tatcell::table table;
    tatcell::table_limit slow, fast;
    const limit_spec hour(60, 1h, 60), faster(600, 1h, 600);
    const auto options = tatcell::table_options(faster).slowest(hour).seed(secret);
    EXPECT(table.init(memory, options) && slow.init(table, hour) && fast.init(table, faster));
    EXPECT(table.check(slow, start, "plan", 60));
    EXPECT(table.change(slow, fast, start, "plan", tatcell::change_how::keep_units));
    EXPECT(table.peek(fast, start, "plan").remaining == 540);
    const auto hash = table.hash("other");
    EXPECT(table.change(slow, fast, start, *hash, tatcell::change_how::reset));
    const auto one = tatcell::table_options(hour).seed(secret);
    EXPECT(table.init(memory, one) && slow.init(table, hour) && table.check(slow, start, "all", 60));
    const std::uint64_t generation = table.info()->generation;
    const auto next = tatcell::table_options(faster).seed(secret).keep_units(hour, faster);
    EXPECT(table.migrate_in_place(memory, generation, next, start)->copied == 1 && fast.init(table, faster));
    EXPECT(table.peek(fast, start, "all").remaining == 540);
    EXPECT(table.migrate_in_place(memory, generation, next, start) == code::err_mode);
}

TEST(live_slots_are_walked_counted_and_swept) {
    tatcell::table table;
    tatcell::table_limit limit;
    EXPECT(table.slots(start).begin() == table.slots(start).end());
    DO(make(table, limit, limit_spec(1, 1s, 4)));
    EXPECT(table.slots(start).begin() == table.slots(start).end() && table.next(start, 0) == code::end);
    for (std::uint32_t k = 1; k <= 3; k++) EXPECT(table.check(limit, start, k, k));
    std::uint64_t leads = 0;
    int slots = 0;
    for (const tatcell_slot_t &slot : table.slots(start)) leads += slot.reset_after, slots++;
    EXPECT(slots == 3 && ticks(leads) >= 6s && ticks(leads) <= 6s + 3ns);
    tatcell_slot_t top[2];
    const auto found = table.top(start, top, 2);
    EXPECT(found && *found == 2 && ticks(top[0].reset_after) >= 3s && ticks(top[1].reset_after) >= 2s);
    EXPECT(table.may_be(top[0], *table.hash(std::uint32_t{3})) && !table.may_be(top[0], *table.hash(std::uint32_t{1})));
    EXPECT(table.top(start, top, 65) == code::err_count);
    const auto range = table.slots(start);
    EQ(std::distance(range.begin(), range.end()), 3);
    auto i = range.begin();
    EXPECT(i->number == table.next(start, 0)->number && (*i++).number < i->number);
    const auto stats = table.stats(start);
    EXPECT(stats && stats->live == 3 && stats->slots == 1008);
    const auto later = start + 1h;
    EXPECT(table.stats(later)->expired == 3);
    const auto half = table.sweep(later, 0, 500);
    EXPECT(half && *half == 500 && *table.sweep(later, *half, 1000) == 0);
    EXPECT(table.stats(later)->expired == 0);
    EXPECT(tatcell::table().sweep(start, 0, 1) == code::err_handle);
    // By itself, and after a silence in which the word of a key has wrapped.
    tatcell_sweeper_t sweeper TATCELL_SWEEPER_INIT;
    const std::uint32_t key = 1;
    EXPECT(table.sweep_due(sweeper, later) && *table.peek_time(sweeper, later) == later);
    EXPECT(table.check(limit, later, key, 3) && !table.check(limit, later, key, 3));
    const auto silent = later + ticks(table.info()->span + table.info()->window);
    EXPECT(!table.check(limit, silent, key, 3));
    EXPECT(*table.peek_time(sweeper, silent) < silent && *table.peek_time(sweeper, silent) > later);
    EXPECT(table.sweep_due(sweeper, silent) && table.check(limit, silent, key, 3));
    EXPECT(tatcell::table().sweep_due(sweeper, start) == code::err_handle);
    EXPECT(tatcell::table().peek_time(sweeper, start) == code::err_handle);
}

// ---- Host ----

TEST(the_system_has_a_monotonic_clock) {
    namespace host = tatcell::host;
    std::int32_t error = 1;
    const auto a = host::now(host::clock::monotonic, &error);
    const auto b = host::now(host::clock::monotonic);
    EXPECT(a && b && error == 0 && *b >= *a && *a > instant(0));
    EXPECT(*host::resolution(host::clock::monotonic) > 0ns);
    EXPECT(host::now(static_cast<host::clock>(77)) == code::err_option);
}

TEST(a_guarded_clock_does_not_jump) {
    namespace host = tatcell::host;
    const instant first(ticks(490000h).count());
    const auto guard = host::clock_guard::start(first, 5s);
    EXPECT(guard && host::clock_guard().now(first) == code::err_option);
    const instant ahead = *guard->now(first + ticks(100h)), behind = *guard->now(instant(0));
    EXPECT(ahead >= first + ticks(5s) && ahead < first + ticks(1h));
    EXPECT(behind + ticks(5s) >= first && behind < first + ticks(1h));
}

TEST(a_calibrated_counter_measures_time) {
    namespace host = tatcell::host;
    EXPECT(host::calibrate(1h) == code::err_option);
    const auto found = host::calibrate(2ms);
    if (found == code::err_unsupported) SKIP("this processor has no counter of constant rate");
    EXPECT(found && found->rate.hz() > 1000000);
    const host::cycles before = host::counter();
    EXPECT(host::counter() >= before && found->rate.to_ns(host::counter() - before) < 1h);
    EXPECT(instant(before).count() == before.count());
}

TEST(a_counter_clock_reads_nanoseconds) {
    using tatcell::host::counter_clock;
    using tatcell::host::cycles;
    static_assert(counter_clock(tatcell::frequency(1000000000)).at(cycles(UINT64_MAX / 2)) == instant(UINT64_MAX / 2));
    static_assert(counter_clock(tatcell::frequency(0)).at(cycles(5)) == instant(0), "stands still");
    const std::uint64_t rates[] = {1, 24000000, 999999999, 2400000000, 5000000001, UINT64_C(1) << 40};
    unsigned long long random = 7;
    for (const std::uint64_t hz : rates) {
        NOTE("%llu Hz", static_cast<unsigned long long>(hz));
        const tatcell::frequency rate(hz);
        const counter_clock clock(rate);
        instant before = clock.at(cycles(0));
        EXPECT(before == instant(0) && clock.at(cycles(hz)) <= instant(1000000000));
        for (std::uint64_t n = 0, step = hz / 3 + 1; n < hz * 1000 && n < UINT64_MAX / 2; n += step) {
            const std::uint64_t at = n + check_random(&random) % step;
            const instant read = clock.at(cycles(at));
            const double exact = static_cast<double>(at) * 1e9 / static_cast<double>(hz);
            EXPECT(read >= before && static_cast<double>(read.count()) <= exact + 1);
            EXPECT(static_cast<double>(read.count()) >= exact * (1 - 1e-9 - 1e-18 * static_cast<double>(hz)) - 1);
            before = read;
        }
    }
    tatcell::cell cell;
    tatcell::limit limit;
    const counter_clock live(tatcell::frequency(3000000000));
    EXPECT(limit.init(1, 1h, 1) && cell.check(limit, live.now()) && !cell.check(limit, live.now()));
}

TEST(a_seed_of_the_system_is_another_each_time_and_no_seed_is_refused) {
    namespace host = tatcell::host;
    const auto a = host::random_seed(), b = host::random_seed();
    EXPECT(a && b && std::memcmp(a->data(), b->data(), 16) != 0);
    tatcell::table table;
    const tatcell::table_options options(limit_spec(1, 1s, 1));
    EXPECT(table.init(memory, tatcell::table_options(options).seed(*a)));
    EXPECT(table.attach(memory, tatcell::attach_options(*b)) == code::err_wrong_seed);
    EXPECT(table.init(memory, tatcell::table_options(options).seed({})) == code::err_seed);
    EXPECT(tatcell::seed().data() == nullptr);
    unsigned char bytes[300] = {};
    EXPECT(host::random({bytes, 256}) && !std::all_of(bytes, bytes + 256, [](unsigned char c) { return c == 0; }));
    EXPECT(host::random({bytes, 0}) == code::err_too_small && host::random({bytes, 257}) == code::err_too_large);
}

TEST(memory_of_the_system_holds_a_table) {
    namespace host = tatcell::host;
    host::memory mapped;
    tatcell::table table;
    const auto options =
        tatcell::table_options(limit_spec(1, 1s, 1)).seed(secret).clock(tatcell::table_clock::raw);
    EXPECT(mapped.map(0) == code::err_too_small && mapped.data() == nullptr);
    EXPECT(mapped.map(tatcell::table_bytes(1000)) && mapped.size() >= tatcell::table_bytes(1000));
    EXPECT(table.init(mapped, options) && mapped.pages() == host::pages::normal);
    EXPECT(mapped.huge_bytes() || mapped.huge_bytes() == code::err_unsupported);
    EXPECT(mapped.unmap() && mapped.data() == nullptr && mapped.unmap());
    static_assert(!std::is_copy_constructible_v<host::memory>);
    static_assert(std::is_nothrow_move_constructible_v<host::memory>);

    const std::string name = "/tatcell-cpp-" + std::to_string(getpid());
    host::memory creator, user;
    EXPECT(user.attach(name.c_str()) == code::err_absent);
    EXPECT(creator.create(name.c_str(), 4096) && table.init(creator, options));
    EXPECT(user.create(name.c_str(), 4096) == code::err_exists);
    tatcell::table other;
    const auto attached = user.attach(name.c_str());
    const auto same = other.attach(user, tatcell::attach_options(secret));
    host::memory looked;
    tatcell::table reader;
    EXPECT(looked.attach_read_only(name.c_str()) && reader.attach(looked, tatcell::attach_options().read_only()));
    EXPECT(reader.stats(instant(0))->live == 0 && reader.hash("key") == code::err_seed);
    EXPECT(reader.info()->clock == TATCELL_CLOCK_RAW);
    const std::string numbers = name + "-counters";
    host::shared_counters counting, looking;
    EXPECT(looking.attach(numbers.c_str()) == code::err_absent && counting.block(0) == nullptr);
    EXPECT(counting.open(numbers.c_str(), 2) && looking.attach(numbers.c_str()));
    counting.block(1)->conforming = 3;
    EXPECT(looking.sum() && looking.sum()->conforming == 3 && counting.block(2) == nullptr);
    host::shared_counters one, two;
    EXPECT(one.open_some(numbers.c_str(), 2, 1) == code::err_system && one.block(0) == nullptr);
    // An object that has them keeps them, until something else is assigned to it.
    EXPECT(counting.open(numbers.c_str(), 2) == code::err_system && counting.block(1)->conforming == 3);
    counting = host::shared_counters();
    EXPECT(counting.open(numbers.c_str(), 2) && counting.block(1)->conforming == 3);
    counting = host::shared_counters();
    const auto first = two.open_some(numbers.c_str(), 2, 1);
    EXPECT(first && *first == 0 && *one.open_some(numbers.c_str(), 2, 1) == 1 && one.block(1) != nullptr);
    EXPECT(host::memory::unlink(numbers.c_str()));
    EXPECT(host::memory::unlink(name.c_str()));
    EXPECT(attached && same && user.data() != creator.data() && user.size() == creator.size());
    EXPECT(host::memory::unlink(name.c_str()) == code::err_absent);
    EXPECT(user.unmap() && creator.unmap() && user.system_error() == 0);
    EXPECT(user.attach("relative") == code::err_name);
}

static bool is_mapped(void *page) {
    unsigned char resident = 0; // memcheck complains about msync of memory that is not mapped
    return mincore(page, 1, &resident) == 0;
}

TEST(memory_of_the_system_is_owned_and_moves) {
    namespace host = tatcell::host;
    void *first = nullptr, *second = nullptr;
    {
        host::memory a, b;
        EXPECT(a.map(4096) && b.map(4096));
        first = a.data(), second = b.data();
        tatcell::table table;
        tatcell::table_limit limit;
        const limit_spec spec(1, 1s, 1);
        EXPECT(table.init(a, tatcell::table_options(spec).seed(secret)) && limit.init(table, spec));
        host::memory moved(std::move(a));
        EXPECT(a.data() == nullptr && moved.data() == first && table.check(limit, start, "k"));
        a = std::move(moved);
        host::memory &self = a;
        a = std::move(self);
        EXPECT(a.data() == first && a.size() >= 4096 && !table.check(limit, start, "k"));
        b = std::move(a);
        EXPECT(b.data() == first && !is_mapped(second));
        EXPECT(b.map(0) == code::err_too_small && b.data() == first && is_mapped(first));
        EXPECT(b.map(8192) && !is_mapped(first));
        first = b.data();
    }
    EXPECT(!is_mapped(first));
    host::memory given;
    EXPECT(given.map(4096));
    const tatcell_host_memory_t raw = given.release();
    EXPECT(given.data() == nullptr && given.unmap() && is_mapped(raw.memory));
    { const host::memory taken(raw); }
    EXPECT(!is_mapped(raw.memory));
}

TEST(a_table_owns_its_memory_and_its_limit_is_read_from_text) {
    std::size_t position = 77;
    const auto spec = limit_spec::parse("10/s burst 20", &position);
    EXPECT(spec && position == 77);
    EXPECT(limit_spec::parse("10/fortnight", &position) == code::err_syntax && position == 3);
    EXPECT(limit_spec::parse({}, &position) == code::err_syntax && position == 0);
    EXPECT(limit_spec::parse("5/15min", nullptr, 1000)->get()->period == 900000);
    tatcell::host::owned_table a, b;
    EXPECT(a.open(*spec, 1000) && a.check(start, "k", 20) && a.check(start, "k").refused());
    void *const first = a.memory().data();
    b = std::move(a);
    EXPECT(b.memory().data() == first && b.check(start, "k").retry_after == ticks(100ms));
    EXPECT(b.open(*spec, 0) == code::err_too_small && b.check(start, "k").refused());
    EXPECT(b.open(*spec, SIZE_MAX) == code::err_too_large);
    EXPECT(b.open(limit_spec(0, 1s, 1), 10) == code::err_rate && b.check(start, "k").refused());
    EXPECT(b.open(*spec, 2000, tatcell::full_set::inherit) && !is_mapped(first) && b.check(start, "k", 20));
    EXPECT(b.table().info()->policy == TATCELL_FULL_INHERIT);
    // Nearly a span later the word has wrapped. A check sweeps first; a call on the table does not.
    const auto later = start + ticks(b.table().info()->span + b.table().info()->window - ticks(1s).count());
    EXPECT(!b.table().check(b.limit(), later, "k", 20) && b.check(later, "k", 20));
    EXPECT(b.sweep(later) && tatcell::host::owned_table().sweep(later) == code::err_handle);
    const auto fit = tatcell::table_options(limit_spec(10000000, 1s, 1)).slowest(limit_spec(1, 1s, 60)).fit();
    EXPECT(fit && fit->culprit == TATCELL_FIT_BURST && fit->tag_bits < 20);
}

int main() {
    RUN(objects_whose_bytes_are_not_their_value_are_no_keys);
    RUN(table_takes_keys_of_any_type_without_padding);
    RUN(table_memory_has_the_size_that_the_library_names);
    RUN(table_options_say_every_option_of_the_structure);
    RUN(tables_tell_what_they_came_out_as);
    RUN(a_key_and_its_hash_answer_alike);
    RUN(a_number_is_a_key_and_a_hash_is_spelled_out);
    RUN(limits_of_no_table_and_of_another_are_refused);
    RUN(bursts_have_room_and_are_charged_after_the_fact);
    RUN(bursts_give_a_bit_per_key);
    RUN(keys_in_structures_at_pointers_and_as_hashes_are_the_same_keys);
    RUN(bursts_take_costs_limits_decisions_and_counters);
    RUN(new_keys_in_a_prepared_burst_are_hashed_again);
    RUN(another_handle_attaches_to_the_same_memory);
    RUN(a_restored_table_knows_its_debts_under_another_clock);
    RUN(a_migrated_table_knows_the_debts_of_the_old_one);
    RUN(a_key_or_a_table_keeps_its_units_when_the_limit_changes);
    RUN(live_slots_are_walked_counted_and_swept);
    RUN(the_system_has_a_monotonic_clock);
    RUN(a_guarded_clock_does_not_jump);
    RUN(a_calibrated_counter_measures_time);
    RUN(a_counter_clock_reads_nanoseconds);
    RUN(a_seed_of_the_system_is_another_each_time_and_no_seed_is_refused);
    RUN(memory_of_the_system_holds_a_table);
    RUN(memory_of_the_system_is_owned_and_moves);
    RUN(a_table_owns_its_memory_and_its_limit_is_read_from_text);
    return check_end();
}
