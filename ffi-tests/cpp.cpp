// cpp.cpp - tatcell.hpp: the views answer as the C functions, without exceptions and RTTI.
#include "tatcell.hpp"

#include <array>
#include <string>
#include <vector>

#include "check.h"

using namespace std::chrono_literals;
using tatcell::code;
using tatcell::instant;

static const std::uint8_t seed[16] = {1, 2, 3};

TEST(cell_admits_its_burst_and_says_when_to_come_back) {
    tatcell::limit limit;
    EXPECT(limit.init(1, 1s, 5));
    static tatcell::cell cell;
    const std::chrono::steady_clock::time_point now(1h);
    for (int i = 0; i < 5; i++) EXPECT(cell.check(limit, now));
    auto answer = cell.check(limit, now);
    EXPECT(!answer && answer == code::non_conforming && !answer.failed());
    EXPECT(answer.retry_after == 1s);
    EXPECT(!cell.check(limit, now + 1s - 1ns));
    EXPECT(cell.check(limit, now + answer.retry_after));
    auto never = cell.check(limit, now, 6);
    EXPECT(never == code::never && never.retry_after == tatcell::never);
}

TEST(any_clock_and_duration_counts_nanoseconds) {
    static_assert(tatcell::ticks(1s) == 1000000000);
    static_assert(tatcell::ticks(std::chrono::duration<double>(0.5)) == 500000000);
    static_assert(tatcell::ticks(-1s) == 0);
    static_assert(instant(std::chrono::system_clock::time_point(1us)).count() == 1000);
    static_assert(instant(42).count() == 42);
    static_assert(!std::is_convertible_v<int, instant>, "raw ticks are spelled out");
}

TEST(errors_are_values) {
    tatcell::limit limit;
    tatcell::cell cell;
    auto rc = cell.check(limit, instant(0));
    EXPECT(!rc && rc.failed() && rc == code::err_limit);
    EXPECT(limit.init(0, 1s, 5) == code::err_rate);
    EXPECT(limit.init(1, 0s, 5) == code::err_period);
    EXPECT(limit.init(1, -1s, 5) == code::err_period);
    EXPECT(limit.init(1, 1s, 0) == code::err_burst);
    EXPECT(std::string_view(limit.init(1, 1s, 0).text()) == "burst is zero");
    tatcell::table table;
    tatcell::table_limit of_table;
    EXPECT(table.check(of_table, instant(0), "key") == code::err_handle);
    EXPECT(tatcell::decision(cell.ref().check_ex(limit, instant(0))).status() == code::err_limit);
}

TEST(decisions_have_durations_and_flags) {
    tatcell::spec spec(1, 1s, 4);
    spec.soft = 2;
    spec.max_room = 1;
    spec.max_delay = tatcell::ticks(5s);
    spec.max_debt = 9;
    tatcell::limit limit;
    EXPECT(limit.init(spec));
    tatcell::cell cell;
    tatcell::cell_ref ref = cell;
    EXPECT(!ref.check_ex(limit, instant(0), 2).soft());
    auto d = ref.check_ex(limit, instant(0), 2);
    EXPECT(d && d.soft() && !d.elastic() && !d.shadow());
    EXPECT(d.remaining == 0 && d.reset_in() == 4s && d.next_unit_in() == 1s && d.retry_in() == 0s);
    EXPECT(ref.check_ex(limit, instant(0), 1, 1).elastic());
    EXPECT(ref.peek(limit, instant(0)).retry_in() == 2s);
    auto r = ref.reserve(limit, instant(0));
    EXPECT(r && r.departure == tatcell::ticks(2s));
    EXPECT(ref.refund(limit, instant(0), r.proof));
    EXPECT(ref.charge(limit, instant(0), 100).reset_in() == 13s);
    tatcell::limit twice;
    EXPECT(twice.init(2, 1s, 40));
    EXPECT(ref.change_limit(limit, twice, instant(0), tatcell::change::keep_tokens));
    EXPECT(ref.peek(twice, instant(0)).remaining == 27);
    EXPECT(ref.reset());
    EXPECT(ref.peek(twice, instant(0)).remaining == 40);
}

TEST(cells_of_both_widths_have_limits_of_their_own) {
    tatcell::limit32 limit;
    EXPECT(limit.init(1, 1ms, 3));
    tatcell_cell32_t raw = TATCELL_CELL32_INIT;
    tatcell::cell32_ref ref(raw);
    EXPECT(ref.check(limit, instant(0), 3));
    EXPECT(!ref.check(limit, instant(0)));
    EXPECT(raw.word != 0);
    tatcell::cell32 own;
    EXPECT(own.check(limit, instant(0)));
    static_assert(!std::is_convertible_v<tatcell::limit, tatcell::limit32>);
    static_assert(!std::is_copy_constructible_v<tatcell::cell>);
    static_assert(std::is_trivially_copyable_v<tatcell::cell_ref>);
}

struct address {
    std::uint32_t ip;
    std::uint16_t port, vlan;
};

static tatcell::table_memory<1000> memory;

static void make(tatcell::table &table, tatcell::table_limit &limit, const tatcell::spec &spec) {
    EXPECT(table.init(memory, tatcell::options(spec, seed)));
    EXPECT(table.limit(spec, limit));
}

TEST(table_takes_keys_of_any_type_without_padding) {
    tatcell::table table;
    tatcell::table_limit limit;
    DO(make(table, limit, tatcell::spec(1, 1s, 1)));
    EXPECT(memory.bytes == tatcell_table_bytes(1000));
    const instant now(0);
    const address a{0xc0000201, 53, 7};
    const std::array<std::uint8_t, 16> v6{0x20, 1};
    const std::string text = "text";
    const std::uint8_t raw[4] = {'t', 'e', 'x', 't'};
    EXPECT(table.check(limit, now, a));
    EXPECT(!table.check(limit, now, a));
    EXPECT(!table.check(limit, now, tatcell::key(&a, sizeof a)));
    EXPECT(table.check(limit, now, v6));
    EXPECT(!table.check(limit, now, std::vector<std::uint8_t>(v6.begin(), v6.end())));
    EXPECT(table.check(limit, now, text));
    EXPECT(!table.check(limit, now, "text"));
    EXPECT(!table.check(limit, now, std::string_view("text!", 4)));
    EXPECT(!table.check(limit, now, raw));
    EXPECT(table.check(limit, now, std::string_view()));
    EXPECT(table.check(limit, now, std::uint32_t(7)));
    std::uint64_t hash = 0;
    EXPECT(table.hash("text", hash));
    EXPECT(!table.check_hash(limit, now, hash));
    EXPECT(table.peek(limit, now, hash).retry_in() == 1s);
    auto d = table.check_ex(limit, instant(tatcell::ticks(1s)), hash);
    EXPECT(d);
    EXPECT(table.refund(limit, instant(tatcell::ticks(1s)), hash, d.permit));
    EXPECT(table.check_hash(limit, instant(tatcell::ticks(1s) + 2), hash));
}

TEST(bursts_give_a_bit_per_key) {
    tatcell::table table;
    tatcell::table_limit limit;
    DO(make(table, limit, tatcell::spec(1, 1s, 2)));
    const std::uint32_t keys[] = {1, 2, 1, 1, 2, 2};
    auto r = table.check_burst(limit, instant(0), keys, 6);
    EXPECT(r && r.pass == 0b010111 && r[0] && !r[3]);
    std::uint32_t many[65] = {};
    EXPECT(table.check_burst(limit, instant(0), many, 65) == code::err_count);
    EXPECT(table.check_burst(limit, instant(0), many, SIZE_MAX) == code::err_count);
    std::uint64_t hashes[6] = {}, next[6] = {};
    auto none = table.check_burst_ahead(limit, instant(0), hashes, 0, 0, keys, 6, next);
    EXPECT(none && none.pass == 0);
    auto later = instant(tatcell::ticks(10s));
    auto last = table.check_burst_ahead(limit, later, next, 6, none.pass, keys, 0, hashes);
    EXPECT(last && last.pass == 0b010111);
    EXPECT(table.check_burst_ahead(limit, later, next, 65, 0, keys, 6, hashes) == code::err_count);
#ifdef __cpp_lib_span
    std::vector<std::uint32_t> more{3, 3, 3};
    EXPECT(table.check_burst(limit, instant(0), std::span<const std::uint32_t>(more)).pass == 0b011);
    EXPECT(!table.check(limit, instant(0), std::span<const std::uint32_t>(more.data(), 1)));
#endif
}

TEST(another_handle_attaches_to_the_same_memory) {
    tatcell::table first, second;
    tatcell::table_limit limit;
    DO(make(first, limit, tatcell::spec(1, 1s, 1)));
    EXPECT(second.attach(memory.data, memory.bytes, seed));
    EXPECT(second.attach(memory.data, memory.bytes, nullptr) == code::err_seed);
    EXPECT(first.check(limit, instant(0), "a"));
    EXPECT(!second.check(limit, instant(0), "a"));
    EXPECT(tatcell_table_reset_key(second.get(), 0, 1) == 0);
    tatcell::spec spec(1, 1s, 1);
    EXPECT(first.init(memory, tatcell::options(spec)));
    EXPECT(first.limit(spec, limit));
    EXPECT(first.check(limit, instant(0), "a") == code::err_hash);
    EXPECT(first.check_hash(limit, instant(0), 123));
#ifdef __cpp_lib_span
    alignas(64) static std::byte bytes[192];
    EXPECT(first.init(std::span<std::byte>(bytes), tatcell::options(spec, seed)));
#endif
}

int main() {
    RUN(cell_admits_its_burst_and_says_when_to_come_back);
    RUN(any_clock_and_duration_counts_nanoseconds);
    RUN(errors_are_values);
    RUN(decisions_have_durations_and_flags);
    RUN(cells_of_both_widths_have_limits_of_their_own);
    RUN(table_takes_keys_of_any_type_without_padding);
    RUN(bursts_give_a_bit_per_key);
    RUN(another_handle_attaches_to_the_same_memory);
    return check_failures != 0;
}
