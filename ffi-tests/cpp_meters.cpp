// cpp_meters.cpp - tatcell.hpp: meters answer as the C functions, without exceptions and RTTI.
#include "tatcell.hpp"

#include <type_traits>

#include "check.h"

using namespace std::chrono_literals;
using tatcell::code;
using tatcell::colour;
using tatcell::instant;
using tatcell::meter_spec;

TEST(a_fresh_meter_gives_the_colours_of_dpdks_table) {
    const meter_spec specs[] = {meter_spec::rfc2697(46000000, 2048, 4096),
                                meter_spec::rfc2698(46000000, 2048, 69000000, 4096),
                                meter_spec::rfc4115(46000000, 2048, 69000000, 4096),
                                meter_spec::rfc4115(46000000, 2048, 69000000, 4096).coupled()};
    static constexpr std::uint64_t sizes[] = {2047, 2049, 4095, 4097};
    static constexpr colour g = colour::green, y = colour::yellow, r = colour::red;
    static constexpr colour table[3][4] = {{g, y, y, r}, {y, y, y, r}, {r, r, r, r}};
    for (const meter_spec &spec : specs) {
        tatcell::meter_params params;
        EXPECT(params.init(spec));
        for (std::uint32_t pre = 0; pre < 3; pre++) {
            for (int i = 0; i < 4; i++) {
                const auto came = static_cast<colour>(pre);
                tatcell::meter meter, own;
                const auto bytes = static_cast<unsigned long long>(sizes[i]);
                NOTE("kind %u, %llu bytes that came %u", spec.get()->kind, bytes, pre);
                const auto looked = meter.ref().peek(params, instant(1000000000), sizes[i], came);
                const auto marked = meter.check(params, instant(1000000000), sizes[i], came);
                const auto owned = own.ref().check_exclusive(params, instant(1000000000), sizes[i], came);
                EXPECT(marked.colour == table[pre][i] && bool(marked) == (marked.colour != r) && !marked.failed());
                EXPECT(looked.colour == marked.colour && looked.value() == marked.value());
                EXPECT(owned.colour == marked.colour && owned.value() == marked.value());
                EXPECT(meter.ref().get()->word == own.ref().get()->word);
            }
        }
    }
}

TEST(specifications_say_every_option_of_the_structure) {
    constexpr meter_spec plain = meter_spec::rfc2697(3, 4, 5);
    static_assert(plain.get()->kind == TATCELL_METER_RFC2697 && plain.get()->cir == 3 && plain.get()->cbs == 4);
    static_assert(plain.get()->rate2 == 0 && plain.get()->burst2 == 5 && plain.get()->tick_hz == 1000000000);
    static_assert(plain.get()->flags == 0 && plain.get()->span == 0 && plain.get()->skew == 0);
    auto spec = meter_spec::rfc4115(3, 4, 5, 6, tatcell::frequency(1000)).coupled().span(7s).skew(8ns);
    const tatcell_meter_spec_t &raw = *spec.get();
    EXPECT(raw.size == sizeof raw && raw.flags == TATCELL_METER_COUPLED && raw.kind == TATCELL_METER_RFC4115);
    EXPECT(raw.cir == 3 && raw.cbs == 4 && raw.rate2 == 5 && raw.burst2 == 6 && raw.tick_hz == 1000);
    EXPECT(raw.span == 7000000000 && raw.skew == 8);
    EXPECT(spec.skew(0s).get()->skew == TATCELL_SKEW_NONE);
    EXPECT(meter_spec::rfc2698(1, 2, 3, 4).get()->kind == TATCELL_METER_RFC2698);
}

TEST(errors_are_values) {
    tatcell::meter_params params;
    tatcell::meter meter;
    const auto marked = meter.check(params, instant(0), 1);
    EXPECT(!marked && marked.failed() && marked == code::err_limit && marked.colour == colour::red);
    EXPECT(params.info() == code::err_limit);
    EXPECT(meter.ref().sweep(params, instant(0)) == code::err_limit);
    EXPECT(params.init(meter_spec::rfc2698(2, 1, 1, 1)) == code::err_peak);
    EXPECT(params.init(meter_spec::rfc4115(0, 0, 0, 0)) == code::err_rate);
    EXPECT(params.init(meter_spec::rfc2697(1, 1, 1, tatcell::frequency(0))) == code::err_period);
    EXPECT(params.init(meter_spec::rfc2697(1000000, 1500, 1500).span(tatcell::never)) == code::err_short_span);
    EXPECT(params.init(meter_spec::rfc2697(1000000, 1500, 1500)));
    EXPECT(meter.check(params, instant(0), 1, static_cast<colour>(3)) == code::err_option);
    EXPECT(meter.check(params, instant(0), 1501) == code::never);
    static_assert(!std::is_copy_constructible_v<tatcell::meter>);
}

TEST(a_rested_meter_is_swept_and_a_reset_one_is_full) {
    tatcell::meter_params params;
    tatcell::meter meter;
    EXPECT(params.init(meter_spec::rfc2697(1000000, 1500, 1500)));
    const auto info = params.info();
    EXPECT(info && info->kind == TATCELL_METER_RFC2697 && info->cbs == 1500 && info->span >= 8000000000);
    EXPECT(meter.check(params, instant(1), 1500) && meter.check(params, instant(1), 1500).colour == colour::yellow);
    EXPECT(meter.check(params, instant(1), 1) == code::non_conforming);
    const auto early = meter.ref().sweep(params, instant(1));
    EXPECT(early && !*early);
    const auto late = meter.ref().sweep(params, instant(1) + tatcell::ticks(info->horizon + info->skew));
    EXPECT(late && *late && meter.ref().get()->word == 0);
    EXPECT(meter.check(params, instant(1), 1500) && meter.ref().reset() && meter.ref().get()->word == 0);
}

TEST(keys_of_a_table_are_marked_by_two_limits) {
    static tatcell::table_memory<100> memory;
    static constexpr std::uint8_t secret[16] = {1, 2, 3};
    const tatcell::limit_spec committed(46000000, 1s, 2048), second(69000000, 1s, 4096);
    tatcell::table table;
    tatcell::table_limit slow, fast;
    EXPECT(table.init(memory, tatcell::table_options(second).slowest(committed).seed(secret)));
    EXPECT(slow.init(table, committed) && fast.init(table, second));
    for (const auto &mark : {tatcell::mark::rfc2698(slow, fast), tatcell::mark::rfc4115(slow, fast)}) {
        const auto kind = mark.get()->kind;
        EXPECT(table.mark(mark, instant(1), kind, 2047).colour == colour::green);
        const auto hash = table.hash(kind);
        const auto marked = table.mark(mark, instant(1), *hash, 2047);
        EXPECT(marked && marked.colour == colour::yellow);
        EQ(table.peek(slow, instant(1), *hash, 0).remaining, 1);
        EQ(table.peek(fast, instant(1), (*hash).second(), 0).remaining, kind == TATCELL_METER_RFC2698 ? 2 : 2049);
        EXPECT(table.mark(mark, instant(1), *hash, 4097) == code::never);
        EXPECT(table.mark(mark, instant(1), *hash, 1, colour::red) == code::non_conforming);
        const std::uint32_t flows[] = {kind, 7, kind}, bytes[] = {1, 2049, 4096};
        std::uint8_t colours[3] = {77, 77, 77};
        std::uint64_t counts[3]{};
        tatcell::burst burst, next;
        EXPECT(table.mark_burst(instant(1), burst.keys(flows).costs(bytes), mark, colours, nullptr, counts, &next));
        EXPECT(colours[0] == TATCELL_GREEN && colours[2] == TATCELL_RED && burst.pass() == 3);
        EXPECT(colours[1] == TATCELL_YELLOW && counts[0] == 1 && counts[1] == 1 && counts[2] == 1);
        EXPECT(table.reset(instant(1), 7u) && table.reset(instant(1), (*table.hash(7u)).second()));
    }
    EXPECT(table.mark(tatcell::mark::rfc2698(fast, slow), instant(1), 7u, 1) == code::err_peak);
    const auto bad = static_cast<colour>(3);
    EXPECT(table.mark(tatcell::mark::rfc4115(fast, slow), instant(1), 7u, 1, bad) == code::err_option);
}

int main() {
    RUN(a_fresh_meter_gives_the_colours_of_dpdks_table);
    RUN(specifications_say_every_option_of_the_structure);
    RUN(errors_are_values);
    RUN(a_rested_meter_is_swept_and_a_reset_one_is_full);
    RUN(keys_of_a_table_are_marked_by_two_limits);
    return check_end();
}
