// cpp.cpp - tatcell.hpp: codes, time, limits, cells and leases answer as the C functions, without exceptions and RTTI.
#include "tatcell.hpp"

#include <array>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.h"

using namespace std::chrono_literals;
using tatcell::code;
using tatcell::instant;
using tatcell::ticks;

// ---- Codes ----

static constexpr int first_code = -128, codes = 160;

// How the compiler spells a value of the enumeration: by its name, or by a number where it has none.
template <code C>
static constexpr std::string_view spelling() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("C = ") + 4);
    return text.substr(0, text.find_first_of(";]"));
}

template <int... N>
static constexpr std::array<std::string_view, codes> spellings(std::integer_sequence<int, N...>) {
    return {spelling<static_cast<code>(first_code + N)>()...};
}

static std::string enumerator(int number) {
    static constexpr auto all = spellings(std::make_integer_sequence<int, codes>());
    constexpr std::string_view scope = "tatcell::code::";
    const std::string_view text = all.at(static_cast<std::size_t>(number - first_code));
    return text.substr(0, scope.size()) == scope ? std::string(text.substr(scope.size())) : std::string();
}

// The lines of a file beside the headers.
static std::vector<std::string> lines_of(const char *name) {
    std::string path = __FILE__;
    const std::size_t slash = path.rfind('/');
    path = (slash == std::string::npos ? std::string(".") : path.substr(0, slash)) + "/../include/" + name;
    std::vector<std::string> lines;
    std::FILE *file = std::fopen(path.c_str(), "r");
    if (file == nullptr) return lines;
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) lines.emplace_back(line);
    std::fclose(file);
    return lines;
}

// The codes of tatcell.h: what its sections of verdicts and of codes define.
static std::array<std::string, codes> defined_codes() {
    std::array<std::string, codes> names;
    char name[64];
    bool inside = false;
    for (const std::string &line : lines_of("tatcell.h")) {
        if (line.compare(0, 8, "/* ==== ") == 0)
            inside = line.find(" Verdicts ") != std::string::npos || line.find(" Codes ") != std::string::npos;
        int number = 0;
        if (!inside || std::sscanf(line.c_str(), "#define TATCELL_%63[A-Z0-9_] %d", name, &number) != 2) continue;
        if (number < first_code || number >= first_code + codes) continue;
        for (char *c = name; *c != 0; c++) *c = static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
        names.at(static_cast<std::size_t>(number - first_code)) = name;
    }
    return names;
}

TEST(every_code_of_the_header_is_an_enumerator_of_its_name_and_no_other_is) {
    const auto defined = defined_codes();
    int found = 0;
    for (int n = first_code; n < first_code + codes; n++) {
        const std::string &name = defined.at(static_cast<std::size_t>(n - first_code));
        NOTE("%d: the header has '%s', the enumeration '%s'", n, name.c_str(), enumerator(n).c_str());
        EXPECT(enumerator(n) == name);
        found += name.empty() ? 0 : 1;
    }
    NOTE("%d codes in tatcell.h", found);
    EXPECT(found >= 41);
}

// Where C has a form without counters beside one with them, the wrapper calls the latter. What it computes at compile
// time other tests compare.
static constexpr std::string_view at_compile_time[] = {"tatcell_skew_none", "tatcell_table_bytes",
                                                       "tatcell_host_ticks_to_ns", "tatcell_host_ticks_from_ns"};

TEST(every_function_of_the_library_is_called_by_the_wrapper) {
    std::string wrapper;
    for (const std::string &line : lines_of("tatcell.hpp")) {
        if (line.find("//") != line.find_first_not_of(' ')) wrapper += line;
    }
    const auto calls = [&wrapper](const std::string &name) {
        const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
        std::size_t at = wrapper.find(name);
        while (at != std::string::npos && is_letter(wrapper[at + name.size()])) at = wrapper.find(name, at + 1);
        return at != std::string::npos;
    };
    int found = 0;
    char name[64];
    for (const std::string &line : lines_of("tatcell.map")) {
        if (std::sscanf(line.c_str(), " %63[a-z0-9_];", name) != 1 || std::strncmp(name, "tatcell_", 8) != 0) continue;
        NOTE("%s", name);
        found++;
        std::string counting = name;
        const std::size_t hash = counting.rfind("_hash");
        counting.insert(hash != std::string::npos && hash + 5 == counting.size() ? hash : counting.size(), "_ex");
        bool constant = false;
        for (const std::string_view c : at_compile_time) constant = constant || c == name;
        EXPECT(calls(name) || calls(counting) || constant);
    }
    NOTE("%d functions in tatcell.map", found);
    EXPECT(found >= 88);
}

TEST(codes_have_the_names_and_texts_of_the_library) {
    EXPECT(std::string_view(tatcell::name(code::err_folder)) == "TATCELL_ERR_FOLDER");
    for (int n = first_code; n < first_code + codes; n++) {
        const std::string_view known = tatcell_strerror_name(n);
        NOTE("%d", n);
        EXPECT((known != "unknown") == !enumerator(n).empty());
        EXPECT(known == tatcell::name(static_cast<code>(n)) && known == tatcell::result(n).name());
        EXPECT(std::string_view(tatcell_strerror(n)) == tatcell::text(static_cast<code>(n)));
        EXPECT(tatcell::result(n).failed() == (n < 0) && bool(tatcell::result(n)) == (n == 0));
    }
}

TEST(errors_are_values) {
    tatcell::limit limit;
    tatcell::cell cell;
    auto rc = cell.check(limit, instant(0));
    EXPECT(!rc && rc.failed() && rc == code::err_limit && rc.value() == code::err_limit);
    EXPECT(limit.init(0, 1s, 5) == code::err_rate);
    EXPECT(limit.init(1, 0s, 5) == code::err_period);
    EXPECT(limit.init(1, -1s, 5) == code::err_period);
    EXPECT(limit.init(1, 1s, 0) == code::err_burst);
    EXPECT(std::string_view(limit.init(1, 1s, 0).text()) == "the burst is 0: give at least 1 unit");
    EXPECT(limit.info() == code::err_limit && limit.info()->burst == 0);
    const tatcell::decision d = cell.check_ex(limit, instant(0));
    EXPECT(!d && d.failed() && d == code::err_limit && d.status() == code::err_limit && d.remaining == 0);
    EXPECT(tatcell::version() == TATCELL_VERSION && tatcell::abi_fits());
}

TEST(errors_and_refusals_have_types_of_their_own) {
    tatcell::limit limit;
    tatcell::cell cell;
    const auto failed = cell.check(limit, instant(0));
    EXPECT(failed.error() && *failed.error() == code::err_limit && !failed.refusal() && !failed.refused());
    EXPECT(std::string_view(failed.error()->name()) == "TATCELL_ERR_LIMIT" && failed.error()->text() == failed.text());
    EXPECT(limit.init(1, 1s, 1) && !limit.init(1, 1s, 1).error());
    const auto passed = cell.check(limit, instant(0));
    EXPECT(passed && !passed.error() && !passed.refusal() && !passed.refused());
    const auto refused = cell.check(limit, instant(0));
    EXPECT(refused.refused() && refused.refusal() == tatcell::refusal::non_conforming && !refused.error());
    EXPECT(cell.check_ex(limit, instant(0), 2).refusal() == tatcell::refusal::never);
    const auto d = cell.check_ex(tatcell::limit(), instant(0));
    EXPECT(d.error() && d.error()->value() == code::err_limit && !d.refusal() && !d.refused());
    EXPECT(tatcell::result(code::contended).refusal() == tatcell::refusal::contended);
    EXPECT(!tatcell::result(code::end).refusal() && !tatcell::result(code::end).error());
    static_assert(!std::is_convertible_v<tatcell::error, tatcell::refusal>);
    static_assert(!std::is_convertible_v<tatcell::refusal, tatcell::error>);
}

// ---- Time ----

TEST(durations_of_any_kind_count_nanoseconds_rounded_up) {
    static_assert(ticks(1s).count() == 1000000000);
    static_assert(ticks(1500us) == 1500000ns && ticks(1s) > 999ms && ticks(1s) <= 1s && ticks(1s) != 2s);
    static_assert(ticks(std::chrono::duration<double>(0.07)).count() == 70000000, "to the nearest");
    static_assert(ticks(std::chrono::duration<std::int64_t, std::pico>(1001)).count() == 2, "up");
    static_assert(ticks(-1s).count() == 0 && ticks(std::chrono::duration<double>(-0.5)).count() == 0);
    static_assert(ticks(std::chrono::hours::max()) == tatcell::never, "not past the end");
    static_assert(ticks(std::chrono::duration<float>(1e30f)) == tatcell::never);
    static_assert(ticks(std::chrono::duration<std::uint64_t, std::nano>(UINT64_MAX)) == tatcell::never);
    static_assert(tatcell::never.ns() == std::chrono::nanoseconds::max());
    static_assert(ticks(42).ns() == 42ns);
    static_assert(!std::is_convertible_v<int, ticks> && !std::is_convertible_v<std::uint64_t, ticks>, "spelled out");
}

TEST(time_points_of_any_clock_are_instants_and_bare_numbers_are_not) {
    static_assert(instant(std::chrono::system_clock::time_point(1us)).count() == 1000);
    static_assert(instant(42).count() == 42);
    static_assert(!std::is_convertible_v<int, instant> && !std::is_convertible_v<std::uint64_t, instant>);
    static_assert(!std::is_convertible_v<ticks, instant> && !std::is_convertible_v<instant, ticks>);
    static_assert(instant(5) + ticks(7) == instant(12) && instant(12) - instant(5) == ticks(7));
    static_assert(instant(5) - instant(12) == ticks(0), "never below");
    static_assert(instant(5) + tatcell::never == instant(UINT64_MAX), "never past the end");
    const std::chrono::steady_clock::time_point t(1h);
    EXPECT(t + ticks(1s) == t + 1s && instant(t) < t + 1ns);
}

TEST(frequencies_convert_as_the_host_functions_do) {
    constexpr tatcell::frequency ghz3(3000000000);
    static_assert(ghz3.to_ticks(1ms).count() == 3000000 && ghz3.to_ns(ticks(10)) == 4ns);
    static_assert(tatcell::frequency(0).to_ns(ticks(1)) == std::chrono::nanoseconds::max());
    unsigned long long random = 7;
    for (int i = 0; i < 20000; i++) {
        const std::uint64_t hz = check_random(&random) >> (check_random(&random) & 63);
        const std::uint64_t n = check_random(&random) >> (check_random(&random) & 63);
        const tatcell::frequency f(hz);
        NOTE("%" PRIu64 " Hz, %" PRIu64, hz, n);
        EXPECT(f.to_ns(ticks(n)) == ticks(tatcell_host_ticks_to_ns(n, hz)).ns());
        const std::chrono::duration<std::uint64_t, std::nano> d(n);
        EXPECT(f.to_ticks(d).count() == tatcell_host_ticks_from_ns(n, hz));
    }
}

// ---- Limits ----

TEST(limits_of_a_frequency_equal_those_of_a_period) {
    constexpr tatcell::frequency mhz(1000000);
    tatcell::limit by_rate, by_spec, by_period;
    EXPECT(by_rate.init(10, mhz, 3) && by_spec.init(tatcell::limit_spec(10, mhz, 3)));
    EXPECT(by_period.init(10, mhz.to_ticks(1s), 3));
    for (const tatcell::limit *l : {&by_rate, &by_spec, &by_period}) {
        const auto info = l->info();
        EXPECT(info && info->units == 10 && info->period == 1000000 && info->burst == 3 && info->bits == 64);
        tatcell::cell cell;
        EXPECT(cell.check(*l, instant(0), 3));
        EXPECT(mhz.to_ns(cell.check(*l, instant(0)).retry_after) == 100ms);
    }
}

TEST(specifications_say_every_option_of_the_structure) {
    const auto spec = tatcell::limit_spec(1, 1s, 9)
                          .soft(2).max_room(3).max_delay(4s).max_debt(5).penalty(6).skew(7s).resolution(-8).epoch(9)
                          .shadow().heal().strict_refunds();
    const tatcell_limit_spec_t &raw = *spec.get();
    EQ(raw.size, sizeof raw);
    EQ(raw.flags, TATCELL_LIMIT_RESOLUTION | TATCELL_LIMIT_SHADOW | TATCELL_LIMIT_HEAL | TATCELL_LIMIT_STRICT_REFUNDS);
    EXPECT(raw.units == 1 && raw.period == 1000000000 && raw.burst == 9 && raw.soft == 2 && raw.max_room == 3);
    EXPECT(raw.max_delay == 4000000000 && raw.max_debt == 5 && raw.penalty == 6 && raw.skew == 7000000000);
    EXPECT(raw.resolution == -8 && raw.epoch == 9);
    EXPECT(tatcell::limit_spec(1, 1s, 9).skew(0s).get()->skew == tatcell_skew_none());
    const tatcell_limit_spec_t blank = TATCELL_LIMIT_SPEC_INIT;
    EXPECT(std::memcmp(tatcell::limit_spec(0, ticks(0), 0).get(), &blank, sizeof blank) == 0);
}

TEST(buckets_and_windows_have_their_own_names) {
    const auto token = tatcell::limit_spec::token_bucket(7, 1s, 20);
    const auto leaky = tatcell::limit_spec::leaky_bucket(7, 1s, 20);
    const tatcell::limit_spec plain(7, 1s, 20);
    EXPECT(std::memcmp(token.get(), plain.get(), sizeof *plain.get()) == 0);
    EXPECT(std::memcmp(leaky.get(), plain.get(), sizeof *plain.get()) == 0);
    tatcell::limit limit;
    tatcell::cell cell;
    EXPECT(limit.init(token));
    const auto taken = cell.check_ex(limit, instant(0), 5);
    EXPECT(taken && taken.tokens() == 15 && taken.level() == 5);

    tatcell::limit same;
    EXPECT(same.init_token_bucket(7, 1s, 20) && std::memcmp(same.get(), limit.get(), TATCELL_LIMIT_SIZE) == 0);
    EXPECT(same.init_leaky_bucket(7, 1s, 20) && std::memcmp(same.get(), limit.get(), TATCELL_LIMIT_SIZE) == 0);
    EXPECT(same.init_window(3, 1s) && limit.init(tatcell::limit_spec::fixed_window(3, 1s)));
    EXPECT(std::memcmp(same.get(), limit.get(), TATCELL_LIMIT_SIZE) == 0);

    EXPECT(limit.init(tatcell::limit_spec::fixed_window(3, 1s).aligned(250ms)));
    tatcell::cell window;
    EXPECT(window.check(limit, instant(0), 3));
    const auto refused = window.check(limit, instant(0));
    EXPECT(refused == code::non_conforming && refused.retry_after == 250ms);
    EXPECT(limit.info()->algorithm == TATCELL_ALGORITHM_FIXED_WINDOW);
    EXPECT(limit.init(tatcell::limit_spec::fixed_window(3, 1s).aligned(1s)) == code::err_phase);
    EXPECT(limit.init(tatcell::limit_spec::fixed_window(3, 1s).penalty(1)) == code::err_algorithm);
}

TEST(sliding_counters_and_quotas_have_their_own_names) {
    tatcell::limit limit, same;
    EXPECT(same.init_sliding(100, 1s) && limit.init(tatcell::limit_spec::sliding_counter(100, 1s)));
    EXPECT(std::memcmp(same.get(), limit.get(), TATCELL_LIMIT_SIZE) == 0);
    tatcell::cell sliding;
    EXPECT(sliding.check(limit, instant(0), 100));
    const auto weighed = sliding.check_ex(limit, instant(1'250'000'000), 5);
    EXPECT(weighed && weighed.remaining == 20);

    EXPECT(same.init_quota_linear(10, 1s) && limit.init(tatcell::limit_spec::quota_linear(10, 1s)));
    EXPECT(std::memcmp(same.get(), limit.get(), TATCELL_LIMIT_SIZE) == 0);
    tatcell::cell smooth;
    EXPECT(smooth.check(limit, instant(0), 1) && smooth.check(limit, instant(0), 9));
    const auto refused = smooth.check(limit, instant(0), 2);
    EXPECT(refused == code::non_conforming && refused.retry_after == 1100ms);
    EXPECT(limit.init(tatcell::limit_spec::quota_linear(10, 1s).max_debt(1)) == code::err_algorithm);
}

TEST(decaying_levels_halve) {
    tatcell::limit limit, same;
    EXPECT(limit.init(tatcell::limit_spec::decay(100, 10s)) && same.init_decay(100, 10s));
    EXPECT(std::memcmp(same.get(), limit.get(), TATCELL_LIMIT_SIZE) == 0);
    tatcell::cell level;
    EXPECT(level.check(limit, instant(0), 100) && !level.check(limit, instant(0)));
    EXPECT(level.ref().peek(limit, instant(ticks(10s).count() + 1000)).remaining == 50);
    EXPECT(limit.info()->algorithm == TATCELL_ALGORITHM_DECAY);
    EXPECT(same.init_decay(100, ticks(9999)) == code::err_represent);
}

TEST(limits_tell_their_numbers) {
    tatcell::limit limit;
    EXPECT(limit.init(tatcell::limit_spec(3, 1s, 4).strict_refunds()));
    const auto info = limit.info();
    EXPECT(info && info->flags == TATCELL_LIMIT_STRICT_REFUNDS && info->rate_error_ppb < 15000);
    const auto numbers = limit.numbers();
    EXPECT(numbers && numbers->emission_q == info->emission_q && numbers->burst == 4);
    EXPECT(limit.init_unlimited() && limit.info()->burst == UINT64_MAX);
    tatcell::cell cell;
    EXPECT(cell.check(limit, instant(0), UINT64_MAX));
    EXPECT(limit.init(tatcell::limit_spec(1, 1s, 2).soft(3)) == code::err_soft);
}

// ---- Cells ----

TEST(cell_admits_its_burst_and_says_when_to_come_back) {
    tatcell::limit limit;
    EXPECT(limit.init(1, 1s, 5));
    static tatcell::cell cell;
    const std::chrono::steady_clock::time_point now(1h);
    for (int i = 0; i < 5; i++) EXPECT(cell.check(limit, now));
    auto answer = cell.check(limit, now);
    EXPECT(!answer && answer == code::non_conforming && !answer.failed());
    EXPECT(answer.retry_after == 1s && answer.retry_after.ns() == 1s);
    EXPECT(!cell.check(limit, now + 1s - 1ns));
    EXPECT(cell.check(limit, now + answer.retry_after));
    auto never = cell.check(limit, now, 6);
    EXPECT(never == code::never && never.retry_after == tatcell::never);
    EXPECT(cell.check(limit, now, std::uint64_t{1} << 40) == code::never);
}

TEST(decisions_have_times_and_flags) {
    tatcell::limit limit;
    EXPECT(limit.init(tatcell::limit_spec(1, 1s, 4).soft(2).max_room(1).max_delay(5s).max_debt(9)));
    tatcell::cell cell;
    tatcell::cell_ref ref = cell;
    tatcell::counters counters;
    EXPECT(!ref.check_ex(limit, instant(0), 2, 0, &counters).soft());
    auto d = cell.check_ex(limit, instant(0), 2, 0, &counters);
    EXPECT(d && d.soft() && !d.elastic() && !d.shadow() && d.tracked_as() == tatcell::tracking::tracked);
    EXPECT(d.burst == 4 && d.remaining == 0 && d.retry_in() == 0s && d.next_unit_in() == 1s && d.reset_in() == 4s);
    EXPECT(d.departs_at() == instant(0) && d.permit.stored != 0);
    EXPECT(ref.check_ex(limit, instant(0), 1, 1, &counters).elastic());
    EXPECT(counters.conforming == 3 && counters.soft == 2);
    EXPECT(ref.peek(limit, instant(0)).retry_in() == 2s);
    const auto never = ref.peek(limit, instant(0), 5);
    EXPECT(never == code::never && never.retry_in() == tatcell::never);
    tatcell::limit shadow;
    EXPECT(shadow.init(tatcell::limit_spec(1, 1s, 4).shadow()));
    EXPECT(ref.check_ex(shadow, instant(0)).shadow());
}

TEST(reservations_leave_later_and_can_be_given_back) {
    tatcell::limit limit;
    EXPECT(limit.init(tatcell::limit_spec(1, 1s, 1).max_delay(2s).max_debt(9)));
    tatcell::cell cell;
    tatcell::cell_ref ref = cell;
    const instant now(1h / 1ns);
    EXPECT(ref.reserve(limit, now).departs_at() == now);
    const auto second = ref.reserve(limit, now);
    EXPECT(second && second.departs_at() == now + 1s);
    EXPECT(ref.reserve(limit, now));
    const auto late = ref.reserve(limit, now);
    EXPECT(!late && late == code::non_conforming && late.retry_in() == 1s && late.departs_at() == instant(0));
    const auto credited = ref.refund(limit, now, second.permit);
    EXPECT(credited && *credited == 1s);
    EXPECT(ref.reserve(limit, now).departs_at() == now + 2s);
    EXPECT(ref.charge(limit, now, 100).reset_in() == 10s);
    EXPECT(ref.charge(limit, now + 2s, 100).units == 2);
    const auto back = ref.refund_ex(limit, now, second.permit);
    EXPECT(back && back.units == 1);
}

TEST(a_change_keeps_what_is_asked) {
    const instant now(ticks(1h).count());
    tatcell::limit slow, fast;
    EXPECT(slow.init(1, 1s, 40) && fast.init(2, 1s, 40));
    const std::pair<tatcell::change_how, std::uint64_t> left[] = {
        {tatcell::change_how::keep_time, 20}, {tatcell::change_how::keep_units, 30}, {tatcell::change_how::reset, 40}};
    for (const auto &[how, remaining] : left) {
        tatcell::cell cell;
        EXPECT(cell.check(slow, now, 10));
        EXPECT(cell.ref().change(slow, fast, now, how));
        EQ(cell.ref().peek(fast, now).remaining, remaining);
    }
    tatcell::cell cell;
    EXPECT(cell.check(slow, now, 40) && cell.ref().reset());
    EXPECT(cell.ref().peek(slow, now).remaining == 40);
}

TEST(a_saved_cell_comes_back_under_its_limit) {
    const instant now(ticks(1h).count());
    tatcell::limit slow, fast;
    EXPECT(slow.init(1, 1s, 40) && fast.init(2, 1s, 40));
    tatcell::cell cell, back;
    EXPECT(cell.check(slow, now, 10));
    const auto image = cell.ref().save(slow, now);
    EXPECT(image && *back.ref().restore(slow, *image) == now && back.ref().peek(slow, now).remaining == 30);
    EXPECT(back.ref().restore(fast, *image) == code::err_other_limit);
    EXPECT(back.ref().restore(slow, *image, static_cast<std::int64_t>(ticks(1h).count())));
    EXPECT(back.ref().peek(slow, now + ticks(1h)).remaining == 30);
    EXPECT(*back.ref().restore(slow, tatcell::cell_image{}) == instant(0) && back.ref().get()->word == 0);
    tatcell::limit32 small;
    tatcell::cell32 one;
    EXPECT(small.init(1, 1ms, 3) && one.check(small, instant(5)));
    EXPECT(*one.ref().restore(small, *one.ref().save(small, instant(5))) == instant(5));
}

TEST(cells_of_both_widths_have_limits_of_their_own) {
    tatcell::limit32 limit;
    EXPECT(limit.init(tatcell::limit_spec(1, 1ms, 3).max_delay(1ms)));
    EXPECT(limit.init(1, tatcell::frequency(1000), 3) && limit.info()->bits == 32);
    EXPECT(limit.init_unlimited() && limit.init(1, 1ms, 3));
    tatcell_cell32_t raw = TATCELL_CELL32_INIT;
    tatcell::cell32_ref ref(raw);
    EXPECT(ref.check(limit, instant(0), 3));
    EXPECT(!ref.check(limit, instant(0)));
    EXPECT(raw.word != 0 && ref.get() == &raw);
    tatcell::cell32 own;
    EXPECT(own.check(limit, instant(0)));
    EXPECT(own.check_ex(limit, instant(0)).remaining == 1 && own.ref().peek(limit, instant(0)).remaining == 1);
    EXPECT(own.ref().charge(limit, instant(0), 1) && own.ref().reserve(limit, instant(0)) == code::non_conforming);
    tatcell::limit32 other;
    EXPECT(other.init(2, 1ms, 3));
    const auto d = ref.check_ex(limit, instant(ticks(3ms).count()));
    EXPECT(d && *ref.refund(limit, instant(ticks(3ms).count()), d.permit) == 1ms);
    EXPECT(ref.change(limit, other, instant(ticks(3ms).count()), tatcell::change_how::reset) && ref.reset());
    static_assert(std::is_same_v<tatcell::cell32::cost_type, std::uint32_t>);
    static_assert(std::is_same_v<tatcell::cell::cost_type, std::uint64_t>);
    static_assert(!std::is_convertible_v<tatcell::limit, tatcell::limit32>);
    static_assert(!std::is_copy_constructible_v<tatcell::cell> && !std::is_copy_constructible_v<tatcell::lease>);
    static_assert(std::is_trivially_copyable_v<tatcell::cell_ref> && std::is_trivially_destructible_v<tatcell::cell>);
}

TEST(exclusive_checks_answer_as_shared_ones) {
    tatcell::limit limit;
    EXPECT(limit.init(1, 1s, 2));
    tatcell::cell shared, own;
    for (std::uint64_t i = 0; i < 8; i++) {
        const instant now(ticks(400ms).count() * i);
        const auto a = shared.check(limit, now), b = own.ref().check_exclusive(limit, now);
        EXPECT(a == b.value() && a.retry_after == b.retry_after);
    }
    EXPECT(shared.ref().get()->word == own.ref().get()->word);
}

TEST(counters_sum) {
    tatcell::counters a, b;
    EXPECT(a.conforming == 0 && a.inserted == 0);
    a.conforming = 1, b.conforming = 2, b.inserted = 4;
    a += b;
    EXPECT(a.conforming == 3 && a.inserted == 4 && b.conforming == 2);
    a += a;
    EXPECT(a.conforming == 6 && (a + b).conforming == 8);
}

TEST(leases_of_one_cell_admit_its_burst_together) {
    tatcell::limit limit;
    EXPECT(limit.init(1, 1s, 32));
    tatcell::cell cell;
    tatcell::lease one(4), other;
    other.batch(8);
    const instant now(ticks(1s).count());
    EXPECT(one.check(cell, limit, now) && *one.held(cell, limit, now) == 1);
    EXPECT(other.check(cell, limit, now) && *other.held(cell, limit, now) == 1);
    EXPECT(*other.give_back(cell, limit, now) == 1s && *other.held(cell, limit, now) == 0);
    int passed = 0;
    tatcell::answer last = one.check(cell, limit, now, 0);
    for (int i = 0; i < 64; i++) {
        last = (i % 2 == 0 ? one : other).check(cell, limit, now);
        passed += last ? 1 : 0;
    }
    EQ(passed, 30);
    EXPECT(last == code::non_conforming && last.retry_after == 1s);
    EXPECT(one.get()->batch == 4 && other.get()->batch == 8);
    EXPECT(one.check(cell, tatcell::limit(), now) == code::err_limit);
}

TEST(sliding_logs_admit_the_units_of_every_window) {
    tatcell_cell_t stamps[2] = {};
    tatcell::sliding_log log, none;
    EXPECT(log.init(stamps, 2, 1s) && none.init(stamps, 0, 1s) == code::err_rate);
    const instant now(5000000000);
    const tatcell::decision first = log.check_ex(now);
    EXPECT(first && first.remaining == 1);
    EXPECT(log.check_exclusive(now + ticks(400ms)));
    const tatcell::answer refused = log.check(now + ticks(500ms));
    EXPECT(refused == code::non_conforming && refused.retry_after == 500ms);
    EXPECT(*log.refund(now + ticks(500ms), first.permit) == 1 && log.peek(now + ticks(500ms)).remaining == 1);
    EXPECT(log.reset() && log.peek(now).remaining == 2);
    EXPECT(log.init(stamps, 2, 1s, ticks(0)) && log.check(now) && log.peek(instant(now.count() - 1)).remaining == 2);
    EXPECT(none.check(now) == code::err_handle && none.get() != nullptr);
}

// ---- Refusals and HTTP ----

TEST(a_log_gate_writes_one_line_an_interval_and_tells_of_the_others) {
    tatcell::log_gate gate;
    const auto first = gate.check(instant(0), 1s);
    EXPECT(first && *first == 0);
    for (int i = 0; i < 7; i++) EXPECT(gate.check(instant(500000000), 1s) == code::non_conforming);
    const auto next = gate.check(instant(2000000000), 1s);
    EXPECT(next && *next == 7);
    EXPECT(!gate.check(1s, instant(2000000000)));
    const auto taken = gate.take();
    EXPECT(taken && *taken == 1);
    EQ(*gate.take(), 0);
}

TEST(a_log_gate_of_keys_knows_whose_lines_it_left_out) {
    tatcell::key_log_gate gate;
    const tatcell::key_hash mallory(1), bob(257);
    const auto first = gate.check(instant(0), bob, 1s);
    EXPECT(first && first->count == 0 && first->tag == 0);
    for (int i = 0; i < 437; i++) EXPECT(gate.check(instant(1), mallory, 1s) == code::non_conforming);
    const auto rest = gate.take();
    EXPECT(rest && rest->count == 437 && rest->is_of(mallory) && !rest->is_of(bob));
    EXPECT(gate.get()->word != 0);
}

TEST(slip_flags_every_nth_refusal) {
    tatcell::slip shared, mine;
    for (int i = 0; i < 9; i++) {
        EXPECT(static_cast<bool>(shared.check(3)) == (i % 3 == 0));
        EXPECT(static_cast<bool>(mine.check_exclusive(3)) == (i % 3 == 0));
        EXPECT(!shared.check(0));
    }
}

TEST(http_fields_are_those_of_the_c_functions) {
    const tatcell::frequency clock(1000);
    tatcell::limit l;
    tatcell::cell c;
    EXPECT(l.init(2, ticks(1000), 10));
    const tatcell::decision d = c.check_ex(l, instant(0), 7);
    const std::uint8_t user[] = {'A', 'p', 'p', '-', '9', '9', '9'};
    const tatcell::http_policy policies[] = {
        tatcell::http_policy("burst").limit(l).decision(d),
        tatcell::http_policy("bytes").quota(65536, ticks(60000)).unit("content-bytes").partition(user),
    };
    const tatcell::http_fields fields(clock, policies), one(clock, policies[0]);
    char text[200], small[8];
    const auto policy = fields.value(tatcell::http_field::ratelimit_policy, text);
    EXPECT(policy && *policy == std::strlen(text));
    EXPECT(std::string_view(text) ==
           "\"burst\";q=10;w=5, \"bytes\";q=65536;qu=\"content-bytes\";w=60;pk=:QXBwLTk5OQ==:");
    const auto both = one.lines(tatcell::http_field::ratelimit | tatcell::http_field::retry_after, text);
    EXPECT(both && std::string_view(text) == "RateLimit: \"burst\";r=3;t=4\r\n");
    const auto cut = one.value(tatcell::http_field::ratelimit, small);
    EXPECT(cut && *cut == 15 && std::string_view(small) == "\"burst\"");
    const tatcell::http_policy two_lines("a\n");
    const auto bad = tatcell::http_fields(clock, two_lines).value(tatcell::http_field::ratelimit, small);
    EXPECT(bad.failed() && bad == code::err_http_name && *bad == 0);
    EXPECT(tatcell::http_fields(tatcell::frequency(0), policies).lines(tatcell::http_field::all, text) ==
           code::err_frequency);
    EXPECT(*tatcell::http_fields(clock, nullptr, 0).lines(tatcell::http_field::all, text) == 0);
}

TEST(metrics_are_those_of_the_c_function) {
    const std::string name = "pages and more";
    tatcell::counters counters;
    counters.conforming = 7;
    const tatcell_stats_t stats TATCELL_STATS_INIT;
    const tatcell_table_info_t info TATCELL_TABLE_INFO_INIT;
    const std::vector<tatcell::table_metrics> tables{
        tatcell::table_metrics(std::string_view(name).substr(0, 5)).counters(counters).stats(stats),
        tatcell::table_metrics(name).info(info)};
    char text[4096], want[sizeof text];
    const auto made = tatcell::metrics_text(tables, tatcell::metrics_format::openmetrics, text);
    EXPECT(made && *made == std::strlen(text));
    EXPECT(std::strstr(text, "tatcell_requests_total{table=\"pages\",verdict=\"conforming\"} 7\n") != nullptr);
    EXPECT(std::strstr(text, "tatcell_table_info{table=\"pages and more\",") != nullptr);
    const auto *first = tables[0].get();
    const std::int32_t length = tatcell_metrics_text(first, 2, TATCELL_METRICS_OPENMETRICS, want, sizeof want);
    EXPECT(static_cast<std::size_t>(length) == *made && std::strcmp(text, want) == 0);
    const tatcell::table_metrics one[] = {tatcell::table_metrics("pages").counters(counters)};
    char small[10];
    const auto cut = tatcell::metrics_text(one, tatcell::metrics_format::prometheus, small);
    EXPECT(cut && *cut > sizeof small && std::strlen(small) == sizeof small - 1);
    const tatcell::table_metrics two_lines[] = {tatcell::table_metrics("a\n")};
    EXPECT(tatcell::metrics_text(two_lines, tatcell::metrics_format::prometheus, small) == code::err_http_name);
}

TEST(http_fields_take_views_and_containers) {
    const tatcell::frequency clock(1000);
    const std::string names = "burst and more";
    const std::vector<tatcell::http_policy> policies{
        tatcell::http_policy(std::string_view(names).substr(0, 5)).quota(10, 5us).unit(std::string_view("u", 1)),
        tatcell::http_policy(names).quota(1, ticks(0)), tatcell::http_policy(std::string_view()).quota(2, ticks(0))};
    std::array<char, 100> text;
    const auto written = tatcell::http_fields(clock, policies).value(tatcell::http_field::ratelimit_policy, text);
    EXPECT(written && std::string_view(text.data()) ==
                          "\"burst\";q=10;qu=\"u\";w=5, \"burst and more\";q=1, \"\";q=2");
    const auto one = tatcell::http_fields(clock, tatcell::http_policy("a").quota(1, ticks(0)));
    EXPECT(one.lines(tatcell::http_field::ratelimit_policy, text.data(), text.size()));
    EXPECT(std::string_view(text.data()) == "RateLimit-Policy: \"a\";q=1\r\n");
    const std::vector<tatcell::http_policy> many(9, policies[0]);
    EXPECT(tatcell::http_fields(clock, many).value(tatcell::http_field::all, text) == code::err_option);
    EXPECT(tatcell::http_fields(clock, many).lines(tatcell::http_field::all, text) == code::err_policies);
    const char *none = nullptr;
    const tatcell::http_policy nameless(none);
    EXPECT(tatcell::http_fields(clock, nameless).lines(tatcell::http_field::all, text) == code::err_null);
#ifdef __cpp_lib_span
    const tatcell::http_fields fields(clock, std::span(policies).first(1));
    EXPECT(*fields.value(tatcell::http_field::ratelimit_policy, std::span(text).subspan(1, 9)) == 23);
    EXPECT(std::string_view(text.data() + 1) == "\"burst\";");
#endif
}

int main() {
    RUN(every_code_of_the_header_is_an_enumerator_of_its_name_and_no_other_is);
    RUN(every_function_of_the_library_is_called_by_the_wrapper);
    RUN(codes_have_the_names_and_texts_of_the_library);
    RUN(errors_are_values);
    RUN(errors_and_refusals_have_types_of_their_own);
    RUN(durations_of_any_kind_count_nanoseconds_rounded_up);
    RUN(time_points_of_any_clock_are_instants_and_bare_numbers_are_not);
    RUN(frequencies_convert_as_the_host_functions_do);
    RUN(limits_of_a_frequency_equal_those_of_a_period);
    RUN(specifications_say_every_option_of_the_structure);
    RUN(buckets_and_windows_have_their_own_names);
    RUN(sliding_counters_and_quotas_have_their_own_names);
    RUN(decaying_levels_halve);
    RUN(limits_tell_their_numbers);
    RUN(cell_admits_its_burst_and_says_when_to_come_back);
    RUN(decisions_have_times_and_flags);
    RUN(reservations_leave_later_and_can_be_given_back);
    RUN(a_change_keeps_what_is_asked);
    RUN(a_saved_cell_comes_back_under_its_limit);
    RUN(cells_of_both_widths_have_limits_of_their_own);
    RUN(exclusive_checks_answer_as_shared_ones);
    RUN(counters_sum);
    RUN(leases_of_one_cell_admit_its_burst_together);
    RUN(sliding_logs_admit_the_units_of_every_window);
    RUN(a_log_gate_writes_one_line_an_interval_and_tells_of_the_others);
    RUN(a_log_gate_of_keys_knows_whose_lines_it_left_out);
    RUN(slip_flags_every_nth_refusal);
    RUN(http_fields_are_those_of_the_c_functions);
    RUN(metrics_are_those_of_the_c_function);
    RUN(http_fields_take_views_and_containers);
    return check_end();
}
