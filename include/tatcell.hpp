// tatcell.hpp - tatcell.h and tatcell_host.h for C++17: rate limiting without heap, lock, clock or exceptions.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// CONTENTS   A program   Many keys   Model   Time   Storage   Temporaries   Errors   Threads
//            then  1 Codes  2 Time  3 Answers  4 Limits  5 Cells  6 Leases  7 Keys and memory  8 Table options
//            9 Bursts  10 Tables  11 Meters  12 Host  13 Refusals  14 HTTP  15 Chains  16 Prefixes  17 Shapers
//
// ---- A program ----
//
//   #include <cstdio>
//   #include <tatcell.hpp>
//
//   static tatcell::cell cell;                                 // zeroed storage is a fresh cell
//
//   int main() {
//       using namespace std::chrono_literals;
//       tatcell::limit limit;                                  // 1 a second, 5 at once
//       if (auto rc = limit.init(1, 1s, 5); !rc) return std::puts(rc.text()), 1;
//       const auto now = std::chrono::steady_clock::now();     // or another clock of std::chrono
//       for (int i = 1; i <= 6; i++) {
//           const auto answer = cell.check(limit, now);
//           std::printf("request %d: %s, retry after %lld ns\n", i, answer.text(),
//                       static_cast<long long>(answer.retry_after.ns().count()));
//       }
//       return 0;                                              // five pass, the sixth waits 1000000000 ns
//   }
//
// ---- Many keys ----
//
//   #include <cstdio>
//   #include <tatcell.hpp>
//
//   static tatcell::table_memory<4096> memory;                 // 8 bytes a key
//
//   int main() {
//       using namespace std::chrono_literals;
//       const auto seed = tatcell::host::random_seed();        // or 16 secret bytes of your own
//       const auto spec = tatcell::limit_spec(10, 1s, 2).max_delay(500ms);
//       tatcell::table table;
//       tatcell::table_limit limit;
//       auto rc = table.init(memory, tatcell::table_options(spec).seed(*seed));
//       if (rc) rc = limit.init(table, spec);
//       if (!rc) return std::puts(rc.text()), 1;
//
//       const auto now = std::chrono::steady_clock::now();
//       auto answer = table.check(limit, now, "192.0.2.1");    // text, integers, arrays, structs without padding
//       std::printf("one key: %s\n", answer.text());
//
//       const std::uint32_t addresses[] = {7, 8, 7, 7};        // many keys at one reading of the clock
//       tatcell::burst burst;
//       rc = table.check_burst(now, burst.limit(limit).keys(addresses));
//       std::printf("burst: %s, %d%d%d%d\n", rc.text(), burst[0], burst[1], burst[2], burst[3]);
//
//       const auto decision = table.reserve(limit, now, 7u);   // waits instead of being refused
//       std::printf("leaves after %lld ns\n", static_cast<long long>((decision.departs_at() - now).ns().count()));
//       return 0;                                              // burst 1110; leaves after 100000000 ns
//   }
//
// MODEL     tatcell.h is the reference. Each member here is one inline call of the C function that its comment names,
//           with the costs, threads and errors of that function.
// TIME      An `instant` is a reading of a clock. Every std::chrono time point converts to one, in nanoseconds. You
//           write out a reading of another clock: instant(n). A `ticks` is a span of time. Every std::chrono duration
//           converts to one, in nanoseconds. You write out other counts, ticks(n), or take them from a `frequency`. A
//           bare number converts to neither, and the processor's counter has a type of its own (host::cycles), so a
//           limit in seconds does not compile with a counter of cycles.
// STORAGE   You own all storage. Nothing here allocates, and only host::memory frees what it holds. A cell is its 8 (or
//           4) bytes. Options and specifications hold copies. These types point to what you give them, which must live
//           as long as they do: cell_ref, meter_ref, key, address, memory_ref, image_ref, burst, link, chain, mark,
//           http_policy, slot_range, and tables, sliding logs, shapers and leaky queues, which point to their memory.
// TEMPORARIES  A link, chain, mark, burst or policy does not compile with a temporary limit, key, table, text or
//           decision, which would be gone when it is used: give the temporary a name. clang also warns if a key or an
//           address outlives a temporary.
// ERRORS    Nothing throws, and RTTI is not needed. A result is true if the request passes or the call is done.
//           result::refusal() and result::error() have different types, so a refused request cannot be mistaken for
//           a failed call. A limit or table that was not initialised is an error, not undefined behaviour.
// THREADS   As for the C functions: any number of threads may use a cell, a limit or a shared table at once.
#ifndef TATCELL_HPP
#define TATCELL_HPP

#if !(__cplusplus >= 201703L) && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "tatcell.hpp needs C++17 (-std=c++17); with older compilers include tatcell.h"
#else

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif

#include "tatcell.h"
#if !defined(TATCELL_NO_HOST) && __has_include("tatcell_host.h")
#include "tatcell_host.h"
#endif

// Marks what a result or an object points into, so that clang warns if a temporary dies before it.
#if __has_cpp_attribute(clang::lifetimebound)
#define TATCELL_LIFETIMEBOUND [[clang::lifetimebound]]
#else
#define TATCELL_LIFETIMEBOUND
#endif

namespace tatcell {

// ==== 1 Codes =======================================================================================================

/// What a call can return. tatcell.h describes each code, and lists for each function the codes that it returns.
enum class code : std::int32_t {
    // Verdicts, and the end of an iteration.
    pass = TATCELL_PASS,
    non_conforming = TATCELL_NON_CONFORMING,
    never = TATCELL_NEVER,
    contended = TATCELL_CONTENDED,
    end = TATCELL_END,
    // Errors: the call changed nothing.
    err_null = TATCELL_ERR_NULL,
    err_align = TATCELL_ERR_ALIGN,
    err_size = TATCELL_ERR_SIZE,
    err_rate = TATCELL_ERR_RATE,
    err_period = TATCELL_ERR_PERIOD,
    err_burst = TATCELL_ERR_BURST,
    err_represent = TATCELL_ERR_REPRESENT,
    err_horizon = TATCELL_ERR_HORIZON,
    err_limit = TATCELL_ERR_LIMIT,
    err_foreign = TATCELL_ERR_FOREIGN,
    err_option = TATCELL_ERR_OPTION,
    err_seed = TATCELL_ERR_SEED,
    err_span = TATCELL_ERR_SPAN,
    err_handle = TATCELL_ERR_HANDLE,
    err_not_ready = TATCELL_ERR_NOT_READY,
    err_version = TATCELL_ERR_VERSION,
    err_geometry = TATCELL_ERR_GEOMETRY,
    err_wrong_seed = TATCELL_ERR_WRONG_SEED,
    err_mode = TATCELL_ERR_MODE,
    err_hash = TATCELL_ERR_HASH,
    err_count = TATCELL_ERR_COUNT,
    err_soft = TATCELL_ERR_SOFT,
    err_hash_unavailable = TATCELL_ERR_HASH_UNAVAILABLE,
    err_system = TATCELL_ERR_SYSTEM,
    err_unsupported = TATCELL_ERR_UNSUPPORTED,
    err_name = TATCELL_ERR_NAME,
    err_exists = TATCELL_ERR_EXISTS,
    err_absent = TATCELL_ERR_ABSENT,
    err_too_small = TATCELL_ERR_TOO_SMALL,
    err_too_large = TATCELL_ERR_TOO_LARGE,
    err_overlap = TATCELL_ERR_OVERLAP,
    err_key_length = TATCELL_ERR_KEY_LENGTH,
    err_buffer = TATCELL_ERR_BUFFER,
    err_too_fast = TATCELL_ERR_TOO_FAST,
    err_wrong_size = TATCELL_ERR_WRONG_SIZE,
    err_folder = TATCELL_ERR_FOLDER,
    err_algorithm = TATCELL_ERR_ALGORITHM,
    err_phase = TATCELL_ERR_PHASE,
    err_units = TATCELL_ERR_UNITS,
    err_inherit = TATCELL_ERR_INHERIT,
    err_until = TATCELL_ERR_UNTIL,
    err_full_set = TATCELL_ERR_FULL_SET,
    err_clash = TATCELL_ERR_CLASH,
    err_prefix = TATCELL_ERR_PREFIX,
    err_keep_window = TATCELL_ERR_KEEP_WINDOW,
    err_keep_count = TATCELL_ERR_KEEP_COUNT,
    err_image = TATCELL_ERR_IMAGE,
    err_other_limit = TATCELL_ERR_OTHER_LIMIT,
    err_http_name = TATCELL_ERR_HTTP_NAME,
    err_frequency = TATCELL_ERR_FREQUENCY,
    err_policies = TATCELL_ERR_POLICIES,
    err_syntax = TATCELL_ERR_SYNTAX,
    err_peak = TATCELL_ERR_PEAK,
    err_short_span = TATCELL_ERR_SHORT_SPAN,
    err_links = TATCELL_ERR_LINKS,
    err_two_limits = TATCELL_ERR_TWO_LIMITS,
    err_cost = TATCELL_ERR_COST,
    err_ladder = TATCELL_ERR_LADDER,
    err_address = TATCELL_ERR_ADDRESS,
    err_full = TATCELL_ERR_FULL,
    err_behind = TATCELL_ERR_BEHIND,
    err_wheel = TATCELL_ERR_WHEEL,
    err_too_far = TATCELL_ERR_TOO_FAR,
    err_not_plain = TATCELL_ERR_NOT_PLAIN,
};

/// Describes a code. The text is static and never null (tatcell_strerror).
inline const char *text(code c) noexcept { return tatcell_strerror(static_cast<std::int32_t>(c)); }
/// Gives the name of a code in tatcell.h, for instance "TATCELL_ERR_NULL" (tatcell_strerror_name).
inline const char *name(code c) noexcept { return tatcell_strerror_name(static_cast<std::int32_t>(c)); }

/// Why a request does not pass. The call itself worked.
enum class refusal : std::int32_t {
    non_conforming = TATCELL_NON_CONFORMING,  ///< not now: retry after the reported time
    never = TATCELL_NEVER,                    ///< the cost is above the burst: no wait helps
    contended = TATCELL_CONTENDED,            ///< other threads won every attempt: no verdict; ask again
};

/// Why a call failed: an error of the caller or of the system. The call changed nothing.
class error {
public:
    constexpr explicit error(code c) noexcept : code_(c) {}
    constexpr code value() const noexcept { return code_; }
    /// Describes the error. The text is static and never null.
    const char *text() const noexcept { return tatcell::text(code_); }
    /// Gives the name of the error in tatcell.h.
    const char *name() const noexcept { return tatcell::name(code_); }

    friend constexpr bool operator==(error a, code b) noexcept { return a.code_ == b; }
    friend constexpr bool operator!=(error a, code b) noexcept { return a.code_ != b; }

private:
    code code_;
};

/// What a call returned: true if the request passes, or if the call did what it was asked. It has four bytes, as in C.
///
///     const auto answer = cell.check(limit, now);
///     if (const auto e = answer.error()) return std::puts(e->text()), 1;   // a tatcell::error: repair the program
///     if (const auto why = answer.refusal()) drop(*why);                   // a tatcell::refusal: the limiter at work
class [[nodiscard]] result {
public:
    constexpr result(code c) noexcept : code_(c) {}
    /// Takes the number that a C function returned.
    constexpr explicit result(std::int32_t c) noexcept : code_(static_cast<code>(c)) {}

    constexpr explicit operator bool() const noexcept { return code_ == code::pass; }
    /// Says whether the call failed.
    constexpr bool failed() const noexcept { return static_cast<std::int32_t>(code_) < 0; }
    /// Says whether the request was refused: the call worked, and the request does not pass.
    constexpr bool refused() const noexcept { return code_ > code::pass && code_ < code::end; }
    /// The error of a call that failed, else nothing.
    constexpr std::optional<tatcell::error> error() const noexcept {
        return failed() ? std::optional<tatcell::error>(code_) : std::nullopt;
    }
    /// The reason of a refused request, else nothing.
    constexpr std::optional<tatcell::refusal> refusal() const noexcept {
        if (!refused()) return std::nullopt;
        return static_cast<tatcell::refusal>(code_);
    }
    constexpr code value() const noexcept { return code_; }
    /// Describes the code. The text is static and never null.
    const char *text() const noexcept { return tatcell::text(code_); }
    /// Gives the name of the code in tatcell.h.
    const char *name() const noexcept { return tatcell::name(code_); }

    friend constexpr bool operator==(result a, code b) noexcept { return a.code_ == b; }
    friend constexpr bool operator!=(result a, code b) noexcept { return a.code_ != b; }

private:
    code code_;
};

/// A result, and the value that the call gave. If the result is false, the value is the default: zeros, or the empty
/// structure.
template <class T>
class [[nodiscard]] outcome : public result {
public:
    constexpr outcome(std::int32_t c, const T &value) noexcept : result(c), value_(value) {}
    constexpr const T &operator*() const & noexcept TATCELL_LIFETIMEBOUND { return value_; }
    constexpr T operator*() && noexcept { return value_; }
    constexpr const T *operator->() const noexcept TATCELL_LIFETIMEBOUND { return &value_; }

private:
    T value_;
};

/// Version of the linked library: major * 10000 + minor * 100 + patch. The header's version is TATCELL_VERSION.
inline std::uint32_t version() noexcept { return tatcell_version(); }
/// Says whether the header and the linked library have the same ABI and sizes. Call it if the library is loaded at run
/// time.
inline bool abi_fits() noexcept {
    return tatcell_abi_version() == TATCELL_ABI_VERSION && tatcell_cell_size() == sizeof(tatcell_cell_t) &&
           tatcell_cell32_size() == sizeof(tatcell_cell32_t) && tatcell_lease_size() == sizeof(tatcell_lease_t) &&
           tatcell_sliding_log_size() == sizeof(tatcell_sliding_log_t) &&
           tatcell_limit_size() == sizeof(tatcell_limit_t) && tatcell_permit_size() == sizeof(tatcell_permit_t) &&
           tatcell_counters_size() == sizeof(tatcell_counters_t) && tatcell_slot_size() == sizeof(tatcell_slot_t) &&
           tatcell_meter_size() == sizeof(tatcell_meter_t) &&
           tatcell_meter_params_size() == sizeof(tatcell_meter_params_t) &&
           tatcell_table_handle_size() == sizeof(tatcell_table_t) && tatcell_log_size() == sizeof(tatcell_log_t) &&
           tatcell_key_log_size() == sizeof(tatcell_key_log_t) && tatcell_slip_size() == sizeof(tatcell_slip_t) &&
           tatcell_ladder_size() == sizeof(tatcell_ladder_t) &&
           tatcell_prepared_chain_size() == sizeof(tatcell_prepared_chain_t) &&
           tatcell_shaper_size() == sizeof(tatcell_shaper_t) && tatcell_group_size() == sizeof(tatcell_group_t) &&
           tatcell_leaky_queue_size() == sizeof(tatcell_leaky_queue_t);
}

// ==== 2 Time ========================================================================================================

namespace detail {

/// Computes a * b / c, rounded up; UINT64_MAX if that does not fit.
constexpr std::uint64_t scale_up(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    if (c == 0 || (a / c != 0 && b > most / (a / c))) return most;
    const std::uint64_t rest = a % c;
    std::uint64_t quotient = 0, left = 0;  // rest * b / c, bit by bit; it is below b because rest < c
    for (int bit = 63; bit >= 0; bit--) {
        const bool doubled = left >= c - left;
        left = doubled ? left - (c - left) : left + left;
        quotient = quotient * 2 + (doubled ? 1 : 0);
        if ((b >> bit & 1) == 0 || rest == 0) continue;
        const bool carry = left >= c - rest;
        left = carry ? left - (c - rest) : left + rest;
        quotient += carry ? 1 : 0;
    }
    quotient += left != 0 ? 1 : 0;
    const std::uint64_t whole = a / c * b;
    return quotient > most - whole ? most : whole + quotient;
}

/// Converts a duration to nanoseconds, 0 to UINT64_MAX. Integers round up, floating-point numbers to the nearest.
template <class Rep, class Period>
constexpr std::uint64_t nanoseconds(std::chrono::duration<Rep, Period> d) noexcept {
    if (!(d > d.zero())) return 0;
    if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
        const double ns = std::chrono::duration<double, std::nano>(d).count();
        constexpr double end = 18446744073709551616.0;
        return ns < end ? static_cast<std::uint64_t>(ns + 0.5) : std::numeric_limits<std::uint64_t>::max();
    } else {
        using in_ns = std::ratio_divide<Period, std::nano>;
        return scale_up(static_cast<std::uint64_t>(d.count()), in_ns::num, in_ns::den);
    }
}

/// Gives a class with count() the six comparisons. Either side may be a type that converts to the class.
template <class D>
struct ordered {
    friend constexpr bool operator==(D a, D b) noexcept { return a.count() == b.count(); }
    friend constexpr bool operator!=(D a, D b) noexcept { return a.count() != b.count(); }
    friend constexpr bool operator<(D a, D b) noexcept { return a.count() < b.count(); }
    friend constexpr bool operator<=(D a, D b) noexcept { return a.count() <= b.count(); }
    friend constexpr bool operator>(D a, D b) noexcept { return a.count() > b.count(); }
    friend constexpr bool operator>=(D a, D b) noexcept { return a.count() >= b.count(); }
};

}  // namespace detail

/// A span of time in ticks of the caller's clock. A std::chrono duration converts to nanoseconds, rounded up; a
/// negative one converts to 0. For another clock write ticks(n), or take the ticks from its frequency.
class ticks : detail::ordered<ticks> {
public:
    constexpr ticks() noexcept = default;
    constexpr explicit ticks(std::uint64_t count) noexcept : count_(count) {}
    template <class Rep, class Period>
    constexpr ticks(std::chrono::duration<Rep, Period> d) noexcept : count_(detail::nanoseconds(d)) {}
    constexpr std::uint64_t count() const noexcept { return count_; }
    /// Converts to a std::chrono duration if a tick is a nanosecond; at most 292 years. For another clock use
    /// frequency::to_ns.
    constexpr std::chrono::nanoseconds ns() const noexcept {
        constexpr auto most = std::chrono::nanoseconds::max();
        return count_ > static_cast<std::uint64_t>(most.count())
                   ? most
                   : std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(count_));
    }

private:
    std::uint64_t count_ = 0;
};

/// The retry time of a request that can never pass.
inline constexpr ticks never{std::numeric_limits<std::uint64_t>::max()};

/// A reading of the caller's clock. A std::chrono time point converts to the nanoseconds since its epoch. For a reading
/// of another clock write instant(n).
class instant : detail::ordered<instant> {
public:
    constexpr explicit instant(std::uint64_t count) noexcept : count_(count) {}
    template <class Clock, class Duration>
    constexpr instant(std::chrono::time_point<Clock, Duration> t) noexcept
        : count_(static_cast<std::uint64_t>(
              std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count())) {}
    constexpr std::uint64_t count() const noexcept { return count_; }

private:
    std::uint64_t count_;
};

/// The instant that much later, but never past the end of the count. Either side may be of std::chrono.
constexpr instant operator+(instant t, ticks d) noexcept {
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - t.count();
    return instant(t.count() + (d.count() < room ? d.count() : room));
}
/// The span from b to a; 0 if b is later.
constexpr ticks operator-(instant a, instant b) noexcept {
    return ticks(a.count() > b.count() ? a.count() - b.count() : 0);
}

/// The ticks per second of a clock that does not count nanoseconds. It converts durations to ticks and back.
class frequency {
public:
    constexpr explicit frequency(std::uint64_t ticks_per_second) noexcept : hz_(ticks_per_second) {}
    constexpr std::uint64_t hz() const noexcept { return hz_; }
    /// Converts a duration to ticks, rounded up, as tatcell_host_ticks_from_ns does.
    template <class Rep, class Period>
    constexpr ticks to_ticks(std::chrono::duration<Rep, Period> d) const noexcept {
        return ticks(detail::scale_up(ticks(d).count(), hz_, 1000000000));
    }
    /// Converts ticks to nanoseconds, rounded up, as tatcell_host_ticks_to_ns does. The result is at most 292 years,
    /// and always that if the frequency is 0.
    constexpr std::chrono::nanoseconds to_ns(ticks d) const noexcept {
        return ticks(detail::scale_up(d.count(), 1000000000, hz_)).ns();
    }

private:
    std::uint64_t hz_;
};

// ==== 3 Answers =====================================================================================================

/// The short answer: the verdict, and when to come back.
struct [[nodiscard]] answer : result {
    /// Ticks until the same cost passes: 0 if it passes or is contended, `never` if it never passes.
    ticks retry_after;
    constexpr answer(std::int32_t c, std::uint64_t retry) noexcept : result(c), retry_after(retry) {}
};

/// How a table accounted for a request.
enum class tracking : std::uint32_t {
    tracked = TATCELL_TRACKED,      ///< the key has its own slot; the answer is exact
    untracked = TATCELL_UNTRACKED,  ///< its set was full and the policy decided; nothing is stored
    inherited = TATCELL_INHERITED,  ///< its set was full: it took over the smallest debt, or was measured against it
    forgiven = TATCELL_FORGIVEN,    ///< its set was full: it took over a slot, and that debt was forgiven
};

/// Proof of what was charged, for a refund. It is all zero if nothing was charged.
using permit = tatcell_permit_t;

/// The full answer: the fields of tatcell_decision_t, and typed functions to read them.
struct [[nodiscard]] decision : tatcell_decision_t {
    constexpr decision() noexcept : tatcell_decision_t(TATCELL_DECISION_INIT) {}

    /// The verdict, or the error of the call.
    constexpr result status() const noexcept { return result(verdict); }
    constexpr operator result() const noexcept { return status(); }
    constexpr explicit operator bool() const noexcept { return verdict == TATCELL_PASS; }
    /// As result::failed, refused, error and refusal.
    constexpr bool failed() const noexcept { return status().failed(); }
    constexpr bool refused() const noexcept { return status().refused(); }
    constexpr std::optional<tatcell::error> error() const noexcept { return status().error(); }
    constexpr std::optional<tatcell::refusal> refusal() const noexcept { return status().refusal(); }
    const char *text() const noexcept { return status().text(); }
    friend constexpr bool operator==(const decision &a, code b) noexcept { return a.status() == b; }
    friend constexpr bool operator!=(const decision &a, code b) noexcept { return a.status() != b; }

    /// The request passes above the soft threshold.
    constexpr bool soft() const noexcept { return (flags & TATCELL_FLAG_SOFT) != 0; }
    /// The request passes, or leaves without a wait, only because the limit is in shadow mode (TATCELL_FLAG_SHADOW).
    constexpr bool shadow() const noexcept { return (flags & TATCELL_FLAG_SHADOW) != 0; }
    /// The request passes inside the elastic room of the call.
    constexpr bool elastic() const noexcept { return (flags & TATCELL_FLAG_ELASTIC) != 0; }
    /// The request is refused because its key is banned for retry_in(). Only a chain with a link of overrides,
    /// and a ladder_burst with overrides, set it.
    constexpr bool banned() const noexcept { return (flags & TATCELL_FLAG_BANNED) != 0; }
    /// The request passes because its key is exempt. It is not charged. Only a chain with a link of
    /// overrides, and a ladder_burst with overrides, set it.
    constexpr bool exempt() const noexcept { return (flags & TATCELL_FLAG_EXEMPT) != 0; }
    constexpr tatcell::tracking tracked_as() const noexcept { return static_cast<tatcell::tracking>(tracking); }
    /// Time until the same cost passes: 0 if it passes, `never` if it never does.
    constexpr ticks retry_in() const noexcept { return ticks(retry_after); }
    /// Time until one unit more remains; 0 if the burst is full.
    constexpr ticks next_unit_in() const noexcept { return ticks(next_unit); }
    /// Time until the whole burst is available again.
    constexpr ticks reset_in() const noexcept { return ticks(reset_after); }
    /// The tokens that are left, if you think of a token bucket: `remaining`.
    constexpr std::uint64_t tokens() const noexcept { return remaining; }
    /// The units in the bucket, rounded up, if you think of a leaky bucket: the burst less the remaining units.
    constexpr std::uint64_t level() const noexcept { return remaining < burst ? burst - remaining : 0; }
    /// When the request may leave: now, or later for a reservation; instant(0) if it does not pass.
    constexpr instant departs_at() const noexcept { return instant(departure); }
};
static_assert(sizeof(decision) == sizeof(tatcell_decision_t), "an array of one is an array of the other");

/// Counts decisions: the fields of tatcell_counters_t, starting at 0. Each thread has its own; add them up with +=.
struct counters : tatcell_counters_t {
    constexpr counters() noexcept : tatcell_counters_t(TATCELL_COUNTERS_INIT) {}
    /// Adds the counts of another thread (tatcell_counters_add). Nobody may count in either object during the call.
    counters &operator+=(const tatcell_counters_t &more) noexcept {
        const tatcell_counters_t copy = more;  // it may be this object
        static_cast<void>(tatcell_counters_add(this, &copy));
        return *this;
    }
    friend counters operator+(counters a, const tatcell_counters_t &b) noexcept { return a += b; }
};
static_assert(sizeof(counters) == TATCELL_COUNTERS_SIZE, "same layout");

namespace detail {

/// Calls a C function whose last argument gets the retry time.
template <class F, class... Args>
answer ask(F f, Args... args) noexcept {
    std::uint64_t retry = 0;
    const std::int32_t c = f(args..., &retry);
    return {c, retry};
}
/// Calls a C function whose last argument gets the decision.
template <class F, class... Args>
decision decide(F f, Args... args) noexcept {
    decision d;
    d.verdict = f(args..., &d);  // an error is only in the returned code
    return d;
}
/// Calls a C function whose last two arguments get the decision and the counts.
template <class F, class... Args>
decision count(tatcell_counters_t *counters, F f, Args... args) noexcept {
    decision d;
    d.verdict = f(args..., &d, counters);
    return d;
}
/// Calls a C function whose last argument gets a T.
template <class T, class F, class... Args>
outcome<T> fill(T blank, F f, Args... args) noexcept {
    const std::int32_t c = f(args..., &blank);
    return {c, blank};
}
/// Calls a C function whose last argument gets ticks.
template <class F, class... Args>
outcome<ticks> span_of(F f, Args... args) noexcept {
    std::uint64_t n = 0;
    const std::int32_t c = f(args..., &n);
    return {c, ticks(n)};
}

}  // namespace detail

// ==== 4 Limits ======================================================================================================

/// A limit with all its options (tatcell_limit_spec_t): limit_spec(10, 1s, 20).soft(15). An option that you do not name
/// is off, or has its default.
class limit_spec {
public:
    /// `units` in each `period`, and at most `burst` units at one instant after idle. None may be 0.
    constexpr limit_spec(std::uint64_t units, ticks period, std::uint64_t burst) noexcept
        : raw_(TATCELL_LIMIT_SPEC_INIT) {
        raw_.units = units;
        raw_.period = period.count();
        raw_.burst = burst;
    }
    /// Units per second of a clock with this frequency.
    constexpr limit_spec(std::uint64_t units_per_second, frequency clock, std::uint64_t burst) noexcept
        : limit_spec(units_per_second, ticks(clock.hz()), burst) {}
    /// Takes a C structure that was started from TATCELL_LIMIT_SPEC_INIT.
    constexpr explicit limit_spec(const tatcell_limit_spec_t &raw) noexcept : raw_(raw) {}

    /// Reads a limit from text such as "10/s burst 20" (tatcell_limit_spec_parse); the clock has nanoseconds unless you
    /// name another. On err_syntax and err_too_large, `position` gets the byte that cannot be read.
    static outcome<limit_spec> parse(std::string_view text, std::size_t *position = nullptr,
                                     std::uint64_t ticks_per_second = 1000000000) noexcept {
        tatcell_limit_spec_t raw TATCELL_LIMIT_SPEC_INIT;
        const char *const start = text.empty() ? "" : text.data();
        const auto rc = tatcell_limit_spec_parse(&raw, start, text.size(), ticks_per_second, position);
        return {rc, limit_spec(raw)};
    }

    /// A token bucket: `tokens` flow in per `period`, and the bucket holds `capacity`. It is the same limit as that of
    /// the first constructor. decision::tokens() gives the tokens that are left.
    static constexpr limit_spec token_bucket(std::uint64_t tokens, ticks period, std::uint64_t capacity) noexcept {
        return limit_spec(tokens, period, capacity);
    }
    /// A leaky bucket as a meter: `units` leak out per `period`, and the bucket is `depth` deep. It is the same limit
    /// again. decision::level() gives the units in the bucket.
    static constexpr limit_spec leaky_bucket(std::uint64_t units, ticks period, std::uint64_t depth) noexcept {
        return limit_spec(units, period, depth);
    }
    /// A fixed window: at most `units` in `window`, which starts with its first request (tatcell_limit_init_window).
    static constexpr limit_spec fixed_window(std::uint64_t units, ticks window) noexcept {
        return limit_spec(units, window, units).algorithm(TATCELL_ALGORITHM_FIXED_WINDOW);
    }
    /// A sliding window counter: about `units` in any `window` (tatcell_limit_init_sliding).
    static constexpr limit_spec sliding_counter(std::uint64_t units, ticks window) noexcept {
        return limit_spec(units, window, units).algorithm(TATCELL_ALGORITHM_SLIDING_COUNTER);
    }
    /// A `quota` at any speed in `window`, then a steady rate for a key that uses it up
    /// (tatcell_limit_init_quota_linear).
    static constexpr limit_spec quota_linear(std::uint64_t quota, ticks window) noexcept {
        return limit_spec(quota, window, quota).algorithm(TATCELL_ALGORITHM_QUOTA_LINEAR);
    }
    /// At most `units` of a level that halves in every `half_life` (tatcell_limit_init_decay).
    static constexpr limit_spec decay(std::uint64_t units, ticks half_life) noexcept {
        return limit_spec(units, half_life, units).algorithm(TATCELL_ALGORITHM_DECAY);
    }
    /// Fixed windows of all keys start at `phase` plus whole windows. A phase must be below the window, else err_phase.
    constexpr limit_spec &aligned(ticks phase) noexcept {
        return raw_.phase = phase.count(), flag(TATCELL_LIMIT_ALIGNED);
    }

    /// Units: a request that passes above this debt has decision::soft(). At most the burst, else err_soft.
    constexpr limit_spec &soft(std::uint64_t units) noexcept { return raw_.soft = units, *this; }
    /// Units: the most elastic room that a call may ask for.
    constexpr limit_spec &max_room(std::uint64_t units) noexcept { return raw_.max_room = units, *this; }
    /// The longest delay of a reservation. A request that would leave later is refused.
    constexpr limit_spec &max_delay(ticks d) noexcept { return raw_.max_delay = d.count(), *this; }
    /// Units: how far beyond the burst `charge` may go.
    constexpr limit_spec &max_debt(std::uint64_t units) noexcept { return raw_.max_debt = units, *this; }
    /// Units: refused requests are charged too, up to this debt beyond the burst.
    constexpr limit_spec &penalty(std::uint64_t units) noexcept { return raw_.penalty = units, *this; }
    /// How much older one reading of the clock may be than another; see TIME in tatcell.h. It has no effect in a table.
    constexpr limit_spec &skew(ticks d) noexcept { return raw_.skew = d.count() == 0 ? none : d.count(), *this; }
    /// One q-unit is 2^-r ticks, with r from -63 to 63, instead of the best fit.
    constexpr limit_spec &resolution(std::int32_t r) noexcept {
        return raw_.resolution = r, flag(TATCELL_LIMIT_RESOLUTION);
    }
    /// A permit of another epoch credits nothing.
    constexpr limit_spec &epoch(std::uint32_t e) noexcept { return raw_.epoch = e, *this; }
    /// A request that would be refused passes with decision::shadow() and is not charged. A reservation leaves at once;
    /// one that would have waited is charged (TATCELL_LIMIT_SHADOW).
    constexpr limit_spec &shadow() noexcept { return flag(TATCELL_LIMIT_SHADOW); }
    /// A word that is too far ahead of now counts as a debt of one burst; see TATCELL_LIMIT_HEAL.
    constexpr limit_spec &heal() noexcept { return flag(TATCELL_LIMIT_HEAL); }
    /// Several refunds of one key are right in any order.
    constexpr limit_spec &strict_refunds() noexcept { return flag(TATCELL_LIMIT_STRICT_REFUNDS); }

    constexpr const tatcell_limit_spec_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();  // TATCELL_SKEW_NONE
    constexpr limit_spec &algorithm(std::uint32_t a) noexcept { return raw_.algorithm = a, *this; }
    constexpr limit_spec &flag(std::uint32_t f) noexcept { return raw_.flags |= f, *this; }
    tatcell_limit_spec_t raw_;
};

/// What limits of every kind have in common. You may copy them, and any number of threads may use one at once.
class any_limit {
public:
    /// The numbers of the limit, its span, and the error of its rate (tatcell_limit_info).
    outcome<tatcell_limit_info_t> info() const noexcept {
        return detail::fill(tatcell_limit_info_t TATCELL_LIMIT_INFO_INIT, tatcell_limit_info, &raw_);
    }
    /// The numbers in q-units, for a program that decides by itself (tatcell_limit_export).
    outcome<tatcell_limit_numbers_t> numbers() const noexcept {
        return detail::fill(tatcell_limit_numbers_t TATCELL_LIMIT_NUMBERS_INIT, tatcell_limit_export, &raw_);
    }
    const tatcell_limit_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

protected:
    constexpr any_limit() noexcept = default;
    tatcell_limit_t raw_{};
};

namespace detail {

/// The C functions of 64-bit and of 32-bit cells.
template <class Raw>
struct calls;

template <>
struct calls<tatcell_cell_t> {
    using cost = std::uint64_t;
    static constexpr auto init = tatcell_limit_init;
    static constexpr auto init_rate = tatcell_limit_init_rate;
    static constexpr auto init_spec = tatcell_limit_init_spec;
    static constexpr auto init_unlimited = tatcell_limit_init_unlimited;
    static constexpr auto init_token_bucket = tatcell_limit_init_token_bucket;
    static constexpr auto init_leaky_bucket = tatcell_limit_init_leaky_bucket;
    static constexpr auto init_window = tatcell_limit_init_window;
    static constexpr auto init_sliding = tatcell_limit_init_sliding;
    static constexpr auto init_quota_linear = tatcell_limit_init_quota_linear;
    static constexpr auto init_decay = tatcell_limit_init_decay;
    static constexpr auto check = tatcell_cell_check;
    static constexpr auto check_exclusive = tatcell_cell_check_exclusive;
    static constexpr auto check_ex = tatcell_cell_check_ex;
    static constexpr auto peek = tatcell_cell_peek;
    static constexpr auto charge = tatcell_cell_charge;
    static constexpr auto reserve = tatcell_cell_reserve;
    static constexpr auto refund = tatcell_cell_refund;
    static constexpr auto refund_ex = tatcell_cell_refund_ex;
    static constexpr auto change = tatcell_cell_change;
    static constexpr auto save = tatcell_cell_save;
    static constexpr auto restore = tatcell_cell_restore;
    static constexpr auto reset = tatcell_cell_reset;
};

template <>
struct calls<tatcell_cell32_t> {
    using cost = std::uint32_t;
    static constexpr auto init = tatcell_limit32_init;
    static constexpr auto init_rate = tatcell_limit32_init_rate;
    static constexpr auto init_spec = tatcell_limit32_init_spec;
    static constexpr auto init_unlimited = tatcell_limit32_init_unlimited;
    static constexpr auto check = tatcell_cell32_check;
    static constexpr auto check_ex = tatcell_cell32_check_ex;
    static constexpr auto peek = tatcell_cell32_peek;
    static constexpr auto charge = tatcell_cell32_charge;
    static constexpr auto reserve = tatcell_cell32_reserve;
    static constexpr auto refund = tatcell_cell32_refund;
    static constexpr auto refund_ex = tatcell_cell32_refund_ex;
    static constexpr auto change = tatcell_cell32_change;
    static constexpr auto save = tatcell_cell32_save;
    static constexpr auto restore = tatcell_cell32_restore;
    static constexpr auto reset = tatcell_cell32_reset;
};

}  // namespace detail

/// A limit for cells of one width: limit or limit32. It does not compile with a cell of the other width.
template <class Raw>
class basic_limit : public any_limit {
public:
    /// `units` per `period`, and at most `burst` at one instant after idle (tatcell_limit_init). The real rate is never
    /// higher, and at most 15.3 ppm lower. For 32-bit cells it is at most 0.1 % lower; use milliseconds as ticks there.
    /// Errors: err_rate, err_period, err_burst if one is 0; err_represent, err_horizon if the numbers do not fit.
    result init(std::uint64_t units, ticks period, std::uint64_t burst) noexcept {
        return result(calls::init(&raw_, units, period.count(), burst));
    }
    /// Units per second of a clock with this frequency (tatcell_limit_init_rate).
    result init(std::uint64_t units_per_second, frequency clock, std::uint64_t burst) noexcept {
        return result(calls::init_rate(&raw_, units_per_second, clock.hz(), burst));
    }
    /// A limit with options (tatcell_limit_init_spec). Further errors: err_soft, err_option.
    result init(const limit_spec &spec) noexcept { return result(calls::init_spec(&raw_, spec.get())); }
    /// `tokens` flow in per `period`, and the bucket holds `capacity` (tatcell_limit_init_token_bucket). Like the next
    /// five functions it is for 64-bit cells only.
    result init_token_bucket(std::uint64_t tokens, ticks period, std::uint64_t capacity) noexcept {
        return result(calls::init_token_bucket(&raw_, tokens, period.count(), capacity));
    }
    /// `units` leak out per `period`, and the bucket is `depth` deep (tatcell_limit_init_leaky_bucket).
    result init_leaky_bucket(std::uint64_t units, ticks period, std::uint64_t depth) noexcept {
        return result(calls::init_leaky_bucket(&raw_, units, period.count(), depth));
    }
    /// At most `units` in a window that starts with its first request (tatcell_limit_init_window). Errors: err_rate,
    /// err_period if one is 0; err_units, err_horizon if the numbers do not fit.
    result init_window(std::uint64_t units, ticks window) noexcept {
        return result(calls::init_window(&raw_, units, window.count()));
    }
    /// About `units` in any `window` (tatcell_limit_init_sliding). It has the errors of init_window.
    result init_sliding(std::uint64_t units, ticks window) noexcept {
        return result(calls::init_sliding(&raw_, units, window.count()));
    }
    /// A `quota` at any speed in `window`, then a steady rate for a key that uses it up
    /// (tatcell_limit_init_quota_linear). It has the errors of init_window.
    result init_quota_linear(std::uint64_t quota, ticks window) noexcept {
        return result(calls::init_quota_linear(&raw_, quota, window.count()));
    }
    /// At most `units` of a level that halves in every `half_life` (tatcell_limit_init_decay). Errors: err_rate,
    /// err_period if one is 0; err_represent below 100 ticks per unit; err_units, err_horizon.
    result init_decay(std::uint64_t units, ticks half_life) noexcept {
        return result(calls::init_decay(&raw_, units, half_life.count()));
    }
    /// A limit that everything conforms to (tatcell_limit_init_unlimited).
    result init_unlimited() noexcept { return result(calls::init_unlimited(&raw_)); }

private:
    using calls = detail::calls<Raw>;
};
using limit = basic_limit<tatcell_cell_t>;
using limit32 = basic_limit<tatcell_cell32_t>;
static_assert(sizeof(limit) == TATCELL_LIMIT_SIZE && sizeof(limit32) == TATCELL_LIMIT_SIZE, "same layout");

class table;

/// A limit for the keys of a table. It fits every table with the same resolution, horizon, skew and claim lifetime.
/// Another table refuses it with err_foreign.
class table_limit : public any_limit {
public:
    /// Makes a limit for this table (tatcell_limit_init_table). Errors: err_too_fast if the limit is faster than the
    /// table's options allow; err_handle; and those of limit::init.
    inline result init(const table &t, const limit_spec &spec) noexcept;
    /// A limit that everything conforms to; its keys take no slot (tatcell_limit_init_unlimited_table).
    inline result init_unlimited(const table &t) noexcept;
};

// ==== 5 Cells =======================================================================================================

/// What a cell keeps when its limit changes.
enum class change_how : std::uint32_t {
    keep_time = TATCELL_CHANGE_KEEP_TIME,    ///< its debt as time
    keep_units = TATCELL_CHANGE_KEEP_UNITS,  ///< its debt as units
    reset = TATCELL_CHANGE_RESET,            ///< nothing: it starts full
};

/// A saved cell: bytes for a file. Zeros are the image of a fresh cell.
using cell_image = tatcell_cell_image_t;

/// Refers to a cell that lies elsewhere: in a connection, an array, shared memory. Copies refer to the same cell.
///
/// Every call may return err_limit if the limit was not initialised.
template <class Raw>
class basic_cell_ref {
public:
    using limit_type = basic_limit<Raw>;
    /// Has 64 bits, or 32 for 32-bit cells.
    using cost_type = typename detail::calls<Raw>::cost;

    constexpr basic_cell_ref(Raw &raw) noexcept : raw_(&raw) {}
    constexpr Raw *get() const noexcept { return raw_; }

    /// Decides one request and charges it if it conforms (tatcell_cell_check). Cost 0 only peeks.
    answer check(const limit_type &l, instant now, cost_type cost = 1) const noexcept {
        return detail::ask(calls::check, raw_, l.get(), now.count(), cost);
    }
    /// As check, without an atomic instruction, for a 64-bit cell that nobody else uses during the call
    /// (tatcell_cell_check_exclusive).
    answer check_exclusive(const limit_type &l, instant now, cost_type cost = 1) const noexcept {
        static_assert(std::is_same_v<Raw, tatcell_cell_t>, "64-bit cells only");
        return detail::ask(calls::check_exclusive, raw_, l.get(), now.count(), cost);
    }
    /// As check, with the full answer (tatcell_cell_check_ex). `room`: elastic units above the burst, at most max_room.
    decision check_ex(const limit_type &l, instant now, cost_type cost = 1, std::uint64_t room = 0,
                      tatcell_counters_t *counters = nullptr) const noexcept {
        return detail::count(counters, calls::check_ex, raw_, l.get(), now.count(), cost, room);
    }
    /// Reports how check_ex would decide, and charges nothing (tatcell_cell_peek).
    decision peek(const limit_type &l, instant now, cost_type cost = 1) const noexcept {
        return detail::decide(calls::peek, raw_, l.get(), now.count(), cost);
    }
    /// Charges what was already used, up to max_debt beyond the burst; it never refuses (tatcell_cell_charge). `units`
    /// is the number of units that it took.
    decision charge(const limit_type &l, instant now, cost_type cost) const noexcept {
        return detail::decide(calls::charge, raw_, l.get(), now.count(), cost);
    }
    /// Reserves the earliest conforming instant, departs_at(). Refused beyond max_delay (tatcell_cell_reserve).
    decision reserve(const limit_type &l, instant now, cost_type cost = 1) const noexcept {
        return detail::decide(calls::reserve, raw_, l.get(), now.count(), cost);
    }
    /// Gives back the part of a charge that has not drained, and gives the ticks of debt (tatcell_cell_refund). If the
    /// limit counts units, the count is units: use refund_ex.
    outcome<ticks> refund(const limit_type &l, instant now, const permit &p) const noexcept {
        return detail::span_of(calls::refund, raw_, l.get(), now.count(), &p);
    }
    /// As refund, with the full answer: `units` is the number of units given back (tatcell_cell_refund_ex).
    decision refund_ex(const limit_type &l, instant now, const permit &p) const noexcept {
        return detail::decide(calls::refund_ex, raw_, l.get(), now.count(), &p);
    }
    /// Moves the cell from one limit to another (tatcell_cell_change).
    result change(const limit_type &from, const limit_type &to, instant now, change_how how) const noexcept {
        return result(calls::change(raw_, from.get(), to.get(), now.count(), static_cast<std::uint32_t>(how)));
    }
    /// The image of the cell, for a file (tatcell_cell_save).
    outcome<cell_image> save(const limit_type &l, instant now) const noexcept {
        cell_image image = TATCELL_CELL_IMAGE_INIT;
        const std::int32_t rc = calls::save(raw_, l.get(), now.count(), &image);
        return {rc, image};
    }
    /// Makes the cell from an image, on a clock that is `offset` ticks ahead, and gives the clock at the save
    /// (tatcell_cell_restore). Nobody else may use the cell meanwhile. Errors: err_image; err_other_limit if the limit
    /// is not that of the save; err_phase if the offset moves aligned windows.
    outcome<instant> restore(const limit_type &l, const cell_image &image, std::int64_t offset = 0) const noexcept {
        std::uint64_t saved = 0;
        const std::int32_t rc = calls::restore(raw_, l.get(), &image, offset, &saved);
        return {rc, instant(saved)};
    }
    /// Makes the cell fresh: its full burst is available (tatcell_cell_reset).
    result reset() const noexcept { return result(calls::reset(raw_)); }

private:
    using calls = detail::calls<Raw>;
    Raw *raw_;
};
using cell_ref = basic_cell_ref<tatcell_cell_t>;
using cell32_ref = basic_cell_ref<tatcell_cell32_t>;

/// A cell with its own storage of 8 bytes (cell32: 4). It cannot be copied, because other threads may be writing it.
template <class Raw>
class basic_cell {
public:
    using limit_type = basic_limit<Raw>;
    using cost_type = typename detail::calls<Raw>::cost;

    constexpr basic_cell() noexcept = default;
    basic_cell(const basic_cell &) = delete;
    basic_cell &operator=(const basic_cell &) = delete;

    /// Has all other operations: cell.ref().peek(...).
    basic_cell_ref<Raw> ref() & noexcept TATCELL_LIFETIMEBOUND { return raw_; }
    basic_cell_ref<Raw> ref() && = delete;
    operator basic_cell_ref<Raw>() & noexcept TATCELL_LIFETIMEBOUND { return raw_; }
    /// Decides one request and charges it if it conforms.
    answer check(const limit_type &l, instant now, cost_type cost = 1) noexcept { return ref().check(l, now, cost); }
    /// As check, with the full answer.
    decision check_ex(const limit_type &l, instant now, cost_type cost = 1, std::uint64_t room = 0,
                      tatcell_counters_t *counters = nullptr) noexcept {
        return ref().check_ex(l, now, cost, room, counters);
    }

private:
    Raw raw_{};
};
using cell = basic_cell<tatcell_cell_t>;
using cell32 = basic_cell<tatcell_cell32_t>;
static_assert(sizeof(cell) == TATCELL_CELL_SIZE && alignof(cell) == TATCELL_CELL_ALIGN, "a cell is its word");
static_assert(sizeof(cell32) == TATCELL_CELL32_SIZE && alignof(cell32) == TATCELL_CELL32_ALIGN, "a cell is its word");

// ==== 6 Leases ======================================================================================================

/// Units of a shared 64-bit cell that one core or thread takes ahead and spends without touching the cell.
///
/// One thread at a time may use a lease. A lease belongs to the cell that it was used with. Give its units back before
/// you reset that cell or put another one at its address. alignas(64) gives the lease its own cache line. It cannot be
/// copied, because both copies would spend the same units.
class lease {
public:
    /// `batch`: the most units to take ahead; 0 = a sixteenth of the burst.
    constexpr explicit lease(std::uint32_t batch = 0) noexcept { raw_.batch = batch; }
    lease(const lease &) = delete;
    lease &operator=(const lease &) = delete;

    /// Sets the batch. You may call it at any time.
    void batch(std::uint32_t units) noexcept { raw_.batch = units; }
    /// Decides one request. The lease pays what it holds, and the cell pays the rest (tatcell_lease_check).
    answer check(cell_ref c, const limit &l, instant now, std::uint64_t cost = 1) noexcept {
        return detail::ask(tatcell_lease_check, &raw_, c.get(), l.get(), now.count(), cost);
    }
    /// Gives the units that are left back to the cell, as ticks of debt (tatcell_lease_return).
    outcome<ticks> give_back(cell_ref c, const limit &l, instant now) noexcept {
        return detail::span_of(tatcell_lease_return, &raw_, c.get(), l.get(), now.count());
    }
    /// The units that the lease can spend without the cell (tatcell_lease_held).
    outcome<std::uint64_t> held(cell_ref c, const limit &l, instant now) noexcept {
        return detail::fill(std::uint64_t{0}, tatcell_lease_held, &raw_, c.get(), l.get(), now.count());
    }
    tatcell_lease_t *get() noexcept { return &raw_; }

private:
    tatcell_lease_t raw_ TATCELL_LEASE_INIT;
};
static_assert(sizeof(lease) == TATCELL_LEASE_SIZE && alignof(lease) == TATCELL_LEASE_ALIGN, "same layout");

// ---- Sliding logs ----

/// Allows exactly `count` requests of one unit in every window. It keeps one time stamp per request in the caller's
/// cells. Copies use the same cells, and any number of threads may use one at once.
///
/// Every call may return err_handle if the log was not initialised.
class sliding_log {
public:
    /// Uses `count` cells of the caller; zeroed cells are an empty log (tatcell_sliding_log_init). Without `skew`, one
    /// reading of the clock may be 2^61 ticks older than another. Errors: err_rate without cells, err_units for 2^32
    /// cells or more, err_period if the window is 0, err_horizon, err_overlap.
    result init(tatcell_cell_t *stamps, std::size_t count, ticks window) noexcept {
        return result(tatcell_sliding_log_init(&raw_, stamps, count, window.count(), 0));
    }
    result init(tatcell_cell_t *stamps, std::size_t count, ticks window, ticks skew) noexcept {
        const std::uint64_t s = skew.count() == 0 ? std::numeric_limits<std::uint64_t>::max() : skew.count();
        return result(tatcell_sliding_log_init(&raw_, stamps, count, window.count(), s));
    }
    /// Decides one request and charges it if it conforms (tatcell_sliding_log_check).
    answer check(instant now) const noexcept { return detail::ask(tatcell_sliding_log_check, &raw_, now.count()); }
    /// As check, for stamps that nobody else uses during the call (tatcell_sliding_log_check_exclusive).
    answer check_exclusive(instant now) const noexcept {
        return detail::ask(tatcell_sliding_log_check_exclusive, &raw_, now.count());
    }
    /// As check, with the full answer (tatcell_sliding_log_check_ex).
    decision check_ex(instant now, tatcell_counters_t *counters = nullptr) const noexcept {
        return detail::count(counters, tatcell_sliding_log_check_ex, &raw_, now.count());
    }
    /// Reports how check_ex would decide, and charges nothing (tatcell_sliding_log_peek).
    decision peek(instant now) const noexcept { return detail::decide(tatcell_sliding_log_peek, &raw_, now.count()); }
    /// Removes the unit of a permit, and gives the number of units removed, 1 or 0 (tatcell_sliding_log_refund).
    outcome<std::uint64_t> refund(instant now, const permit &p) const noexcept {
        return detail::fill(std::uint64_t{0}, tatcell_sliding_log_refund, &raw_, now.count(), &p);
    }
    /// Empties the log (tatcell_sliding_log_reset).
    result reset() const noexcept { return result(tatcell_sliding_log_reset(&raw_)); }
    const tatcell_sliding_log_t *get() const noexcept { return &raw_; }

private:
    tatcell_sliding_log_t raw_{};
};
static_assert(sizeof(sliding_log) == TATCELL_SLIDING_LOG_SIZE, "same layout");

// ==== 7 Keys and memory =============================================================================================

namespace detail {

/// Equal values of a T have equal bytes: it has no padding and is no pointer.
template <class T>
inline constexpr bool is_key = std::has_unique_object_representations_v<T> && std::is_trivially_copyable_v<T> &&
                               !std::is_pointer_v<T> && !std::is_member_pointer_v<T>;

template <class T, class = void>
inline constexpr bool is_sequence = false;
template <class T>
inline constexpr bool is_sequence<T, std::void_t<decltype(std::data(std::declval<const T &>())),
                                                 decltype(std::size(std::declval<const T &>()))>> = true;

/// An array, std::array, std::span or std::vector of T.
template <class T, class S>
inline constexpr bool is_sequence_of = [] {
    if constexpr (!is_sequence<S>) return false;
    else return std::is_same_v<std::remove_cv_t<std::remove_reference_t<decltype(*std::data(std::declval<S &>()))>>, T>;
}();

/// A number of elements that C takes as 32 bits; one more than the most if it is larger than that.
template <std::uint32_t Most>
constexpr std::uint32_t count_of(std::size_t count) noexcept {
    return count > Most ? Most + 1 : static_cast<std::uint32_t>(count);
}

}  // namespace detail

/// Whether copies of a T refer to the same bytes, so that a temporary T may be kept: pointers, std::string_view,
/// std::span. Specialise it for a view type of your own.
template <class T>
inline constexpr bool is_view = std::is_pointer_v<T>;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;
#ifdef __cpp_lib_span
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;
#endif

/// Refers to the bytes that identify a client: text (an array of char ends at its NUL), the elements of an array or
/// container, or an object without padding. An object with padding or a pointer does not compile, because equal values
/// would be different keys.
class key {
public:
    constexpr key(const void *data, std::size_t size) noexcept : data_(data ? data : ""), size_(size) {}
    template <class T, std::enable_if_t<!is_view<T> && !std::is_base_of_v<key, T>, int> = 0>
    constexpr key(const T &k TATCELL_LIFETIMEBOUND) noexcept : key(of(k)) {}
    template <class T, std::enable_if_t<is_view<T>, int> = 0>
    constexpr key(const T &k) noexcept : key(of(k)) {}
    constexpr const void *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }

private:
    template <class T>
    static constexpr key of(const T &k) noexcept {
        if constexpr (std::is_array_v<T> && std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char>) {
            std::size_t length = 0;  // the text in the array need not end with a NUL
            while (length < std::size(k) && k[length] != '\0') length++;
            return {k, length};
        } else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
            const std::string_view text = k;
            return {text.data(), text.size()};
        } else if constexpr (detail::is_sequence<T>) {
            using element = std::remove_cv_t<std::remove_reference_t<decltype(*std::data(k))>>;
            static_assert(detail::is_key<element>, "elements with padding, or pointers, are no key");
            return {std::data(k), std::size(k) * sizeof(element)};
        } else {
            static_assert(detail::is_key<T>, "an object with padding, or a pointer, is no key");
            return {&k, sizeof k};
        }
    }

    const void *data_;
    std::size_t size_;
};

/// An argument that the called object keeps a pointer to. A temporary does not compile: it would be gone by then.
template <class T>
class kept {
public:
    constexpr kept(const T &lasting TATCELL_LIFETIMEBOUND) noexcept : lasting_(&lasting) {}
    kept(const T &&) = delete;
    constexpr const T *get() const noexcept { return lasting_; }

private:
    const T *lasting_;
};

/// A key that the called object keeps. As for `kept`, a temporary does not compile, unless it is a view.
class kept_key : public key {
public:
    constexpr kept_key(const void *data, std::size_t size) noexcept : key(data, size) {}
    constexpr kept_key(key k TATCELL_LIFETIMEBOUND) noexcept : key(k) {}
    template <class T, std::enable_if_t<!is_view<T> && !std::is_base_of_v<key, T>, int> = 0>
    constexpr kept_key(const T &k TATCELL_LIFETIMEBOUND) noexcept : key(k) {}
    template <class T, std::enable_if_t<!is_view<T> && !std::is_base_of_v<key, T>, int> = 0>
    kept_key(const T &&) = delete;
    template <class T, std::enable_if_t<is_view<T>, int> = 0>
    constexpr kept_key(const T &k) noexcept : key(k) {}
};

/// A text that the called object keeps: a string with a NUL, or anything that converts to std::string_view. As for
/// `kept`, a temporary does not compile, unless it is a view.
class kept_text {
    template <class T>
    static constexpr bool is_text = std::is_convertible_v<const T &, std::string_view> &&
                                    !std::is_convertible_v<const T &, const char *>;

public:
    constexpr kept_text(const char *text) noexcept : data_(text) {}
    constexpr kept_text(std::string_view t) noexcept : data_(t.empty() ? "" : t.data()), size_(t.size()) {}
    template <class T, std::enable_if_t<is_text<T> && !is_view<T>, int> = 0>
    constexpr kept_text(const T &t TATCELL_LIFETIMEBOUND) noexcept : kept_text(std::string_view(t)) {}
    template <class T, std::enable_if_t<is_text<T> && !is_view<T>, int> = 0>
    kept_text(const T &&) = delete;
    constexpr const char *data() const noexcept { return data_; }
    /// Bytes; 0 = the text ends with a NUL.
    constexpr std::size_t size() const noexcept { return size_; }

private:
    const char *data_;
    std::size_t size_ = 0;
};

/// The 64-bit hash of a key, from table::hash or from the caller's own keyed hash. You write it out, key_hash(n),
/// because a number is a key.
class key_hash {
public:
    constexpr explicit key_hash(std::uint64_t value) noexcept : value_(value) {}
    constexpr std::uint64_t value() const noexcept { return value_; }
    /// The hash under which table::check_pairs and table::mark keep the second debt of the key (tatcell_hash_second).
    key_hash second() const noexcept { return key_hash(tatcell_hash_second(value_)); }

private:
    std::uint64_t value_;
};

/// Bytes of memory for a table of at least this many slots of 8 bytes (tatcell_table_bytes).
constexpr std::size_t table_bytes(std::uint64_t slots) noexcept {
    constexpr std::size_t most = (std::numeric_limits<std::size_t>::max() - 128) / 128;
    const std::uint64_t sets = slots < 16 ? 1 : slots / 16 + (slots % 16 != 0 ? 1 : 0);
    return sets > most ? 0 : 128 + static_cast<std::size_t>(sets) * 128;
}
/// Bytes of memory for a table in which `slots_busy` keys are in debt at once and a new key finds its set full with a
/// probability of at most target_ppb, in billionths (tatcell_table_size_for); 0 if no table is large enough.
inline std::size_t table_bytes_for(std::uint64_t slots_busy, std::uint64_t target_ppb) noexcept {
    return tatcell_table_size_for(slots_busy, target_ppb);
}
/// The probability in billionths that a new key finds its set full, at a load in millionths (tatcell_table_full_ppb).
inline std::uint64_t table_full_ppb(std::uint64_t load_ppm) noexcept { return tatcell_table_full_ppb(load_ppm); }

/// Memory for a table of at least `Slots` slots, if you know the size at compile time.
template <std::uint64_t Slots>
struct alignas(TATCELL_TABLE_MEMORY_ALIGN) table_memory {
    static constexpr std::size_t bytes = table_bytes(Slots);
    static_assert(bytes != 0, "larger than any memory");
    unsigned char data[bytes]{};
};

/// Refers to memory of the caller.
class memory_ref {
public:
    constexpr memory_ref(void *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::uint64_t Slots>
    constexpr memory_ref(table_memory<Slots> &m) noexcept : memory_ref(m.data, m.bytes) {}
#ifdef __cpp_lib_span
    template <std::size_t N>
    constexpr memory_ref(std::span<std::byte, N> m) noexcept : memory_ref(m.data(), m.size()) {}
#endif
    constexpr void *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }

private:
    void *data_;
    std::size_t size_;
};

/// Refers to a saved image, which the library only reads.
class image_ref {
public:
    constexpr image_ref(const void *data, std::size_t size) noexcept : data_(data), size_(size) {}
#ifdef __cpp_lib_span
    template <std::size_t N>
    constexpr image_ref(std::span<std::byte, N> m) noexcept : image_ref(m.data(), m.size()) {}
    template <std::size_t N>
    constexpr image_ref(std::span<const std::byte, N> m) noexcept : image_ref(m.data(), m.size()) {}
#endif
    constexpr const void *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }

private:
    const void *data_;
    std::size_t size_;
};

/// A copy of the 16 secret bytes under which a table hashes. Take them from the system's random source with
/// host::random_seed(). A table refuses a default-constructed seed with err_seed.
class seed {
public:
    constexpr seed() noexcept = default;
    constexpr seed(const std::uint8_t (&bytes)[16]) noexcept : given_(true) {
        for (std::size_t i = 0; i < 16; i++) bytes_[i] = bytes[i];
    }
    constexpr seed(const std::array<std::uint8_t, 16> &bytes) noexcept : bytes_(bytes), given_(true) {}
    /// The 16 bytes, or null.
    constexpr const std::uint8_t *data() const noexcept TATCELL_LIFETIMEBOUND {
        return given_ ? bytes_.data() : nullptr;
    }

private:
    std::array<std::uint8_t, 16> bytes_{};
    bool given_ = false;
};

// ==== 8 Table options ===============================================================================================

/// What happens to a new key if its set of 16 slots is full.
enum class full_set : std::uint32_t {
    admit = TATCELL_FULL_ADMIT,      ///< it passes untracked
    inherit = TATCELL_FULL_INHERIT,  ///< it takes over the slot with the smallest debt, and that debt
    deny = TATCELL_FULL_DENY,        ///< it is refused
    sampled = TATCELL_FULL_SAMPLED,  ///< it passes; one in 16 takes over the smallest debt, which is forgiven
};

/// The clock that the callers of a table read, for programs that only look at the table.
enum class table_clock : std::uint32_t {
    unknown = TATCELL_CLOCK_UNKNOWN,      ///< not stated
    monotonic = TATCELL_CLOCK_MONOTONIC,  ///< CLOCK_MONOTONIC, also its coarse form
    boottime = TATCELL_CLOCK_BOOTTIME,    ///< CLOCK_BOOTTIME, which runs while the system sleeps
    realtime = TATCELL_CLOCK_REALTIME,    ///< CLOCK_REALTIME, the wall clock
    raw = TATCELL_CLOCK_RAW,              ///< CLOCK_MONOTONIC_RAW
    counter = TATCELL_CLOCK_COUNTER,      ///< the processor's counter
};

/// How a table hashes keys.
enum class hash_kind : std::uint32_t {
    siphash13 = TATCELL_HASH_SIPHASH13,  ///< SipHash-1-3 under the seed
    caller = TATCELL_HASH_CALLER,        ///< the table does not hash: every call brings a key_hash
    aes = TATCELL_HASH_AES,              ///< four rounds of AES under the seed; not every processor can
};

/// Says whether this processor can compute a hash (tatcell_hash_available); else err_hash_unavailable.
inline result hash_available(hash_kind h) noexcept {
    return result(tatcell_hash_available(static_cast<std::uint32_t>(h)));
}

/// Options of a new table (tatcell_table_options_t). An option that you do not name has its default: threads share the
/// table, its policy is full_set::admit, and it hashes by SipHash-1-3. A seed is required, unless the callers hash.
class table_options {
public:
    /// `fastest`: the fastest limit that the table will have.
    constexpr explicit table_options(const limit_spec &fastest) noexcept : fastest_(fastest), slowest_(fastest) {}
    /// Options of a table without limits, for bans and exemptions that last at most this long (table::ban).
    static constexpr table_options overrides(ticks longest) noexcept {
        table_options made(limit_spec(1, ticks(1), 1));
        made.raw_.overrides = longest.count();
        made.raw_.policy = TATCELL_FULL_DENY;
        return made;
    }
    /// The limit with the longest horizon, if that is not the fastest one.
    constexpr table_options &slowest(const limit_spec &s) noexcept { return slowest_ = s, *this; }
    constexpr table_options &seed(const tatcell::seed &s) noexcept { return seed_ = s, *this; }
    constexpr table_options &hash(hash_kind h) noexcept {
        return raw_.hash = static_cast<std::uint32_t>(h), *this;
    }
    constexpr table_options &policy(full_set p) noexcept { return raw_.policy = static_cast<std::uint32_t>(p), *this; }
    /// 12 to 24. One bit less doubles the span, the default skew, and the probability that two keys share a slot.
    constexpr table_options &tag_bits(std::uint32_t n) noexcept { return raw_.tag_bits = n, *this; }
    /// How far the callers' readings of the clock may differ or step back; see TIME in tatcell.h. At least one tick.
    constexpr table_options &skew(ticks d) noexcept { return raw_.skew = d.count(), *this; }
    /// How long a thread that was stopped inside an insert keeps a slot; at least two q-units.
    constexpr table_options &claim_lifetime(ticks d) noexcept { return raw_.claim_lifetime = d.count(), *this; }
    /// For tables of aligned windows: how far the clocks of the callers may differ.
    constexpr table_options &guard(ticks d) noexcept { return raw_.guard = d.count(), *this; }
    /// The frequency of the callers' clock, for those who attach.
    constexpr table_options &clock(frequency f) noexcept { return raw_.tick_hz = f.hz(), *this; }
    /// Which clock the callers read; the image keeps it for programs that only look.
    constexpr table_options &clock(table_clock c) noexcept {
        return raw_.clock = static_cast<std::uint32_t>(c), *this;
    }
    /// One q-unit is 2^-r ticks, instead of the best fit.
    constexpr table_options &resolution(std::int32_t r) noexcept {
        return raw_.resolution = r, raw_.flags |= TATCELL_TABLE_RESOLUTION, *this;
    }
    /// The memory is all zero, as the system gives it, so init writes only the header.
    constexpr table_options &zeroed() noexcept { return raw_.flags |= TATCELL_TABLE_ZEROED, *this; }
    /// For a migration of a table in which every key had the limit `from` and gets the limit `to`: each key keeps its
    /// units. Without this it keeps its time, and a higher limit helps nobody who has used up his burst.
    constexpr table_options &keep_units(const limit_spec &from, const limit_spec &to) noexcept {
        return from_ = from, to_ = to, keeps_ = true, *this;
    }
    /// The table has one owner at a time, so it needs no atomic instruction.
    constexpr table_options &exclusive() noexcept { return raw_.flags |= TATCELL_TABLE_EXCLUSIVE, *this; }

    /// Reports what fits one table with these options, and what is in the way (tatcell_table_options_fit).
    outcome<tatcell_table_fit_t> fit() const noexcept {
        tatcell_table_fit_t report TATCELL_TABLE_FIT_INIT;
        const tatcell_table_options_t o = get();
        const std::int32_t rc = tatcell_table_options_fit(&o, &report);
        return {rc, report};
    }

    /// The options as C functions take them. They point into this object.
    constexpr tatcell_table_options_t get() const noexcept TATCELL_LIFETIMEBOUND {
        tatcell_table_options_t o = raw_;
        o.fastest = o.overrides != 0 ? nullptr : fastest_.get();
        o.slowest = o.overrides != 0 ? nullptr : slowest_.get();
        o.seed = seed_.data();
        o.old_limit = keeps_ ? from_.get() : nullptr;
        o.new_limit = keeps_ ? to_.get() : nullptr;
        return o;
    }

private:
    limit_spec fastest_, slowest_, from_ = fastest_, to_ = fastest_;
    bool keeps_ = false;
    tatcell::seed seed_;
    tatcell_table_options_t raw_ TATCELL_TABLE_OPTIONS_INIT;
};

/// What a process expects of a table that it attaches or restores (tatcell_attach_options_t). If the image differs, the
/// call returns err_mode: the options never override the image.
class attach_options {
public:
    /// For a table whose callers hash.
    constexpr attach_options() noexcept = default;
    /// The seed that the table was made with.
    constexpr explicit attach_options(const tatcell::seed &s) noexcept : seed_(s) {}
    /// The table must have this policy.
    constexpr attach_options &policy(full_set p) noexcept {
        return raw_.policy = static_cast<std::uint32_t>(p), raw_.flags |= TATCELL_TABLE_POLICY, *this;
    }
    /// The table must have been made for this clock.
    constexpr attach_options &clock(frequency f) noexcept { return raw_.tick_hz = f.hz(), *this; }
    /// The table is exclusive.
    constexpr attach_options &exclusive() noexcept { return raw_.flags |= TATCELL_TABLE_EXCLUSIVE, *this; }
    /// Only look: at a table of either mode, without a seed, in memory that may be mapped for reading alone. Calls that
    /// decide or change return err_handle.
    constexpr attach_options &read_only() noexcept { return raw_.flags |= TATCELL_TABLE_READ_ONLY, *this; }

    /// The options as C functions take them. They point into this object.
    constexpr tatcell_attach_options_t get() const noexcept TATCELL_LIFETIMEBOUND {
        tatcell_attach_options_t o = raw_;
        o.seed = seed_.data();
        return o;
    }

private:
    tatcell::seed seed_;
    tatcell_attach_options_t raw_ TATCELL_ATTACH_OPTIONS_INIT;
};

/// The difference between what the clock reads now and what the clock of a saved image would read now.
class clock_offset {
public:
    /// The same clock.
    constexpr clock_offset() noexcept = default;
    constexpr explicit clock_offset(std::int64_t ticks) noexcept : ticks_(ticks) {}
    /// Takes readings of both clocks at one moment.
    constexpr clock_offset(instant now, instant now_of_the_old_clock) noexcept
        : ticks_(static_cast<std::int64_t>(now.count() - now_of_the_old_clock.count())) {}
    constexpr std::int64_t count() const noexcept { return ticks_; }

private:
    std::int64_t ticks_ = 0;
};

// ==== 9 Bursts ======================================================================================================

/// Up to 64 requests at one instant (tatcell_burst_t): a limit, and keys in one of three forms. A burst keeps pointers
/// to what you give it. Each call replaces what was set before, so you may use a burst again and again.
/// table::check_burst decides it.
///
///     burst.limit(l).keys(addresses);                        // an array or std::span of keys
///     burst.limit(l).keys(packets, n, &packet::source);      // keys inside larger structures
///     burst.limit(l).hashes(hashes, n).costs(bytes);         // hashes, and units each
class burst {
public:
    /// The most requests in a burst.
    static constexpr std::size_t max = TATCELL_BURST_MAX;

    /// One limit for all requests.
    burst &limit(kept<table_limit> l) noexcept { return raw_.limit = l.get()->get(), raw_.limits = nullptr, *this; }
    /// The limit of each request, as table_limit::get() gives it.
    burst &limits(const tatcell_limit_t *const *each) noexcept {
        return raw_.limit = nullptr, raw_.limits = each, *this;
    }

    /// Keys of one type, one after the other. With more than 64, check_burst returns err_count.
    template <class T>
    burst &keys(const T *first, std::size_t count) noexcept {
        static_assert(detail::is_key<T>, "an object with padding, or a pointer, is no key");
        return stride(first, sizeof(T), sizeof(T), count);
    }
    template <class T, std::size_t N>
    burst &keys(const T (&all)[N]) noexcept {
        return keys(all, N);
    }
    template <class T, std::size_t N>
    burst &keys(const T (&&)[N]) = delete;
    template <class T>
    burst &keys(std::initializer_list<T>) = delete;
#ifdef __cpp_lib_span
    template <class T, std::size_t N>
    burst &keys(std::span<T, N> all) noexcept {
        return keys(all.data(), all.size());
    }
#endif
    /// Keys inside larger structures.
    template <class S, class C, class T>
    burst &keys(const S *first, std::size_t count, T C::*member) noexcept {
        static_assert(detail::is_key<T>, "an object with padding, or a pointer, is no key");
        return stride(count == 0 ? nullptr : &(first->*member), sizeof(T), sizeof(S), count);
    }
    /// A pointer to each key, all of one length.
    burst &key_pointers(const void *const *each, std::size_t key_len, std::size_t count) noexcept {
        return form(count), raw_.key_pointers = each, raw_.key_len = key_len, *this;
    }
    /// A pointer to each key, and the length of each.
    burst &key_pointers(const void *const *each, const std::size_t *key_lens, std::size_t count) noexcept {
        return form(count), raw_.key_pointers = each, raw_.key_lens = key_lens, *this;
    }
    /// Hashes, from table::hash or the caller's own.
    burst &hashes(const std::uint64_t *each, std::size_t count) noexcept {
        return form(count), raw_.hashes = each, *this;
    }
    /// No requests.
    burst &clear() noexcept { return form(0), *this; }

    /// The caller has prefetched the burst with table::prefetch, so the library does not do it again
    /// (TATCELL_BURST_PREFETCHED). Setting other keys resets this.
    burst &prefetched() noexcept { return raw_.flags |= TATCELL_BURST_PREFETCHED, *this; }

    /// The units of each request; null = one each.
    burst &costs(const std::uint32_t *each) noexcept { return raw_.costs = each, *this; }
    /// Gets the full answer to each request; null = not wanted.
    burst &decisions(decision *each) noexcept {
        return raw_.decisions = each, raw_.decision_size = sizeof(decision), *this;
    }
    /// This thread's counters; null = off.
    burst &counters(tatcell_counters_t *c) noexcept { return raw_.counters = c, *this; }

    /// The number of requests.
    constexpr std::size_t size() const noexcept { return raw_.count; }
    /// After check_burst: bit i is 1 if request i passes.
    constexpr std::uint64_t pass() const noexcept { return raw_.pass; }
    /// After check_burst: says whether request i, 0 to 63, passes.
    constexpr bool operator[](std::size_t i) const noexcept { return (raw_.pass >> (i & 63) & 1) != 0; }

    /// The C structure, for anything that has no function here.
    tatcell_burst_t *get() noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    /// Starts another form of keys; none of them is hashed yet.
    void form(std::size_t count) noexcept {
        raw_.keys = raw_.key_pointers = nullptr;
        raw_.hashes = nullptr;
        raw_.key_lens = nullptr;
        raw_.key_len = 0;
        raw_.stride = 0;
        raw_.prepared = 0;
        raw_.flags &= ~static_cast<std::uint32_t>(TATCELL_BURST_PREFETCHED);
        raw_.count = detail::count_of<max>(count);
    }
    burst &stride(const void *first, std::size_t key_len, std::size_t stride, std::size_t count) noexcept {
        form(count);
        raw_.keys = first;
        raw_.key_len = key_len;
        raw_.stride = static_cast<std::int64_t>(stride);
        return *this;
    }
    tatcell_burst_t raw_ TATCELL_BURST_INIT;
};
static_assert(sizeof(burst) == sizeof(tatcell_burst_t), "same layout");

// ==== 10 Tables =====================================================================================================

/// How a meter marks a packet, and how the packet was marked before.
enum class colour : std::uint32_t {
    green = TATCELL_GREEN,    ///< within the committed rate and burst
    yellow = TATCELL_YELLOW,  ///< above them, within the second rate and burst
    red = TATCELL_RED,        ///< above both of them
};

/// The answer of a meter: the colour, and a verdict that passes green and yellow. The colour is red if there is no
/// verdict.
struct [[nodiscard]] marking : result {
    tatcell::colour colour;
    constexpr marking(std::int32_t c, std::uint32_t marked) noexcept
        : result(c), colour(static_cast<tatcell::colour>(marked)) {}
};

/// What overrides the limits of a key.
enum class override_kind : std::uint32_t {
    none = TATCELL_OVERRIDE_NONE,      ///< the limits decide
    ban = TATCELL_OVERRIDE_BAN,        ///< nothing passes
    exempt = TATCELL_OVERRIDE_EXEMPT,  ///< everything passes and is not charged
};
class address;
class prefix_lengths;
/// An override and how long it lasts. For a ban that is the retry time.
struct override_state {
    override_kind kind;
    ticks left;
    std::uint32_t bits = 0; ///< length of the prefix that decided, by table::overridden_address
};

/// How two limits of a table mark the packets of each key (tatcell_mark_t). It keeps pointers to the limits.
///
///     const auto mark = tatcell::mark::rfc2698(committed, peak);
///     if (table.mark(mark, now, source, bytes).colour == tatcell::colour::yellow) ...
class mark {
public:
    /// A packet that the peak limit refuses is red. Another one is green if the committed limit lets it pass, else
    /// yellow.
    static mark rfc2698(kept<table_limit> committed, kept<table_limit> peak) noexcept {
        return mark(TATCELL_METER_RFC2698, *committed.get(), *peak.get());
    }
    /// A packet that the committed limit lets pass is green. Another one is yellow if the excess limit lets it pass,
    /// else red.
    static mark rfc4115(kept<table_limit> committed, kept<table_limit> excess) noexcept {
        return mark(TATCELL_METER_RFC4115, *committed.get(), *excess.get());
    }
    constexpr const tatcell_mark_t *get() const noexcept { return &raw_; }

private:
    mark(std::uint32_t kind, const table_limit &committed, const table_limit &second) noexcept {
        raw_.kind = kind;
        raw_.committed = committed.get();
        raw_.second = second.get();
    }
    tatcell_mark_t raw_ TATCELL_MARK_INIT;
};

/// The live slots of a table: for (const tatcell_slot_t &slot : table.slots(now)). Each slot is read when the loop gets
/// there. An error of tatcell_table_next ends the loop.
class slot_range {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = tatcell_slot_t;
        using difference_type = std::ptrdiff_t;
        using pointer = const tatcell_slot_t *;
        using reference = const tatcell_slot_t &;

        iterator() noexcept = default;
        reference operator*() const noexcept { return slot_; }
        pointer operator->() const noexcept { return &slot_; }
        iterator &operator++() noexcept { return find(slot_.number + 1), *this; }
        iterator operator++(int) noexcept {
            iterator before = *this;
            ++*this;
            return before;
        }
        friend bool operator==(const iterator &a, const iterator &b) noexcept {
            return a.table_ == b.table_ && (a.table_ == nullptr || a.slot_.number == b.slot_.number);
        }
        friend bool operator!=(const iterator &a, const iterator &b) noexcept { return !(a == b); }

    private:
        friend class slot_range;
        iterator(const tatcell_table_t *t, std::uint64_t now) noexcept : table_(t), now_(now) { find(0); }
        void find(std::uint64_t from) noexcept {
            if (tatcell_table_next(table_, now_, from, &slot_) != TATCELL_PASS) table_ = nullptr;
        }
        const tatcell_table_t *table_ = nullptr;
        std::uint64_t now_ = 0;
        tatcell_slot_t slot_{};
    };

    slot_range(const tatcell_table_t *t, instant now) noexcept : table_(t), now_(now.count()) {}
    iterator begin() const noexcept { return {table_, now_}; }
    iterator end() const noexcept { return {}; }

private:
    const tatcell_table_t *table_;
    std::uint64_t now_;
};

/// A handle of a table that lies in the caller's memory. After init, any number of threads may use it.
///
/// Every call on a key takes the key or its key_hash. Every call may return err_handle if the table is not initialised,
/// err_limit or err_foreign if the limit is not for this table, and err_hash for a key if the callers hash.
class table {
public:
    // ---- Making ----

    /// Formats memory as a fresh table (tatcell_table_init). Errors: err_align if it is not aligned to 64 bytes,
    /// err_too_small, err_too_large, err_seed, err_hash_unavailable, err_option, err_span (use fewer tag bits), and
    /// those of both limits.
    result init(memory_ref memory, const table_options &options) noexcept {
        const tatcell_table_options_t o = options.get();
        return result(tatcell_table_init(&raw_, memory.data(), memory.size(), &o));
    }
    /// Uses a table that this or another process has made in this memory (tatcell_table_attach). Errors:
    /// err_not_ready (ask again), err_version, err_geometry, err_seed, err_wrong_seed, err_hash_unavailable, err_mode.
    result attach(memory_ref memory, const attach_options &options) noexcept {
        const tatcell_attach_options_t o = options.get();
        return result(tatcell_table_attach(&raw_, memory.data(), memory.size(), &o));
    }
    /// Copies the image without expired slots into a buffer, and gives the bytes written (tatcell_table_save). The
    /// buffer is aligned to 8 bytes. If it has fewer than info()->image_bytes, the call returns err_buffer.
    outcome<std::size_t> save(instant now, memory_ref buffer) const noexcept {
        return detail::fill(std::size_t{0}, tatcell_table_save, &raw_, now.count(), buffer.data(), buffer.size());
    }
    /// Fills memory from a saved image (tatcell_table_restore). Older permits credit nothing afterwards. Errors: those
    /// of attach, err_wrong_size, err_overlap.
    result restore(memory_ref memory, image_ref image, const attach_options &options,
                   clock_offset offset = {}) noexcept {
        const tatcell_attach_options_t o = options.get();
        return result(tatcell_table_restore(&raw_, memory.data(), memory.size(), image.data(), image.size(), &o,
                                            offset.count()));
    }
    /// Formats memory as a fresh table of another geometry, and copies the debts of a table into it
    /// (tatcell_table_migrate). No debt was forgiven if dropped, clamped and opened are 0; that does not show what a
    /// sliding window or a half-life of another length does. Both tables have one seed. Make the limits anew; older
    /// permits credit nothing. Errors: those of init, err_hash, err_wrong_seed, err_mode,
    /// err_overlap.
    outcome<tatcell_migrated_t> migrate(memory_ref memory, const table_options &options, const table &from,
                                        instant now) noexcept {
        const tatcell_table_options_t o = options.get();
        return detail::fill(tatcell_migrated_t TATCELL_MIGRATED_INIT, tatcell_table_migrate, &raw_, memory.data(),
                            memory.size(), &o, &from.raw_, now.count());
    }
    /// Migrates a table in its own memory while nobody calls it, into as many slots (tatcell_table_migrate_in_place).
    /// `generation`: info()->generation before the call; a second call is refused with err_mode.
    outcome<tatcell_migrated_t> migrate_in_place(memory_ref memory, std::uint64_t generation,
                                                 const table_options &options, instant now) noexcept {
        const tatcell_table_options_t o = options.get();
        return detail::fill(tatcell_migrated_t TATCELL_MIGRATED_INIT, tatcell_table_migrate_in_place, &raw_,
                            memory.data(), memory.size(), generation, &o, now.count());
    }
    /// Reports what a migration of this table into memory of this size would report (tatcell_table_migrate_foresee).
    outcome<tatcell_migrated_t> migrate_foresee(std::size_t bytes, const table_options &options,
                                                instant now) const noexcept {
        const tatcell_table_options_t o = options.get();
        return detail::fill(tatcell_migrated_t TATCELL_MIGRATED_INIT, tatcell_table_migrate_foresee, &raw_, bytes, &o,
                            now.count());
    }

    // ---- One key ----

    /// Decides one request of a key and charges it if it conforms (tatcell_table_check). Cost 0 only peeks.
    answer check(const table_limit &l, instant now, key k, std::uint64_t cost = 1) const noexcept {
        return detail::ask(tatcell_table_check, &raw_, l.get(), now.count(), k.data(), k.size(), cost);
    }
    answer check(const table_limit &l, instant now, key_hash h, std::uint64_t cost = 1) const noexcept {
        return detail::ask(tatcell_table_check_hash, &raw_, l.get(), now.count(), h.value(), cost);
    }
    /// As check, and counts in this thread's counters (tatcell_table_check_counted).
    answer check_counted(const table_limit &l, instant now, key k, tatcell_counters_t &counters,
                         std::uint64_t cost = 1) const noexcept {
        std::uint64_t retry = 0;
        const auto f = tatcell_table_check_counted;
        const std::int32_t code = f(&raw_, l.get(), now.count(), k.data(), k.size(), cost, &retry, &counters);
        return {code, retry};
    }
    answer check_counted(const table_limit &l, instant now, key_hash h, tatcell_counters_t &counters,
                         std::uint64_t cost = 1) const noexcept {
        std::uint64_t retry = 0;
        const auto f = tatcell_table_check_counted_hash;
        const std::int32_t code = f(&raw_, l.get(), now.count(), h.value(), cost, &retry, &counters);
        return {code, retry};
    }
    /// As check, with the full answer (tatcell_table_check_ex). `room`: elastic units above the burst, at most
    /// max_room.
    decision check_ex(const table_limit &l, instant now, key k, std::uint64_t cost = 1, std::uint64_t room = 0,
                      tatcell_counters_t *counters = nullptr) const noexcept {
        const auto f = tatcell_table_check_ex;
        return detail::count(counters, f, &raw_, l.get(), now.count(), k.data(), k.size(), cost, room);
    }
    decision check_ex(const table_limit &l, instant now, key_hash h, std::uint64_t cost = 1, std::uint64_t room = 0,
                      tatcell_counters_t *counters = nullptr) const noexcept {
        return detail::count(counters, tatcell_table_check_ex_hash, &raw_, l.get(), now.count(), h.value(), cost, room);
    }
    /// Reports how check_ex would decide, and charges nothing (tatcell_table_peek).
    decision peek(const table_limit &l, instant now, key k, std::uint64_t cost = 1) const noexcept {
        return detail::decide(tatcell_table_peek, &raw_, l.get(), now.count(), k.data(), k.size(), cost);
    }
    decision peek(const table_limit &l, instant now, key_hash h, std::uint64_t cost = 1) const noexcept {
        return detail::decide(tatcell_table_peek_hash, &raw_, l.get(), now.count(), h.value(), cost);
    }
    /// Charges what was already used, up to max_debt beyond the burst, whatever the limit says
    /// (tatcell_table_charge_ex). `units` is the number of units that it took. Only a key without a slot in a full set
    /// is not charged: code::non_conforming under deny, units of 0 under admit and sampled, and either under inherit.
    decision charge(const table_limit &l, instant now, key k, std::uint64_t cost,
                    tatcell_counters_t *counters = nullptr) const noexcept {
        const auto f = tatcell_table_charge_ex;
        return detail::count(counters, f, &raw_, l.get(), now.count(), k.data(), k.size(), cost);
    }
    decision charge(const table_limit &l, instant now, key_hash h, std::uint64_t cost,
                    tatcell_counters_t *counters = nullptr) const noexcept {
        return detail::count(counters, tatcell_table_charge_ex_hash, &raw_, l.get(), now.count(), h.value(), cost);
    }
    /// Reserves the earliest conforming instant, departs_at(). Refused beyond max_delay (tatcell_table_reserve_ex).
    decision reserve(const table_limit &l, instant now, key k, std::uint64_t cost = 1,
                     tatcell_counters_t *counters = nullptr) const noexcept {
        const auto f = tatcell_table_reserve_ex;
        return detail::count(counters, f, &raw_, l.get(), now.count(), k.data(), k.size(), cost);
    }
    decision reserve(const table_limit &l, instant now, key_hash h, std::uint64_t cost = 1,
                     tatcell_counters_t *counters = nullptr) const noexcept {
        return detail::count(counters, tatcell_table_reserve_ex_hash, &raw_, l.get(), now.count(), h.value(), cost);
    }
    /// Gives back the part of a charge that has not drained, and gives the ticks of debt (tatcell_table_refund). If the
    /// limit counts units, the count is units: use refund_ex.
    outcome<ticks> refund(const table_limit &l, instant now, key k, const permit &p) const noexcept {
        return detail::span_of(tatcell_table_refund, &raw_, l.get(), now.count(), k.data(), k.size(), &p);
    }
    outcome<ticks> refund(const table_limit &l, instant now, key_hash h, const permit &p) const noexcept {
        return detail::span_of(tatcell_table_refund_hash, &raw_, l.get(), now.count(), h.value(), &p);
    }
    /// As refund, with the full answer: `units` is the number of units given back (tatcell_table_refund_ex).
    decision refund_ex(const table_limit &l, instant now, key k, const permit &p) const noexcept {
        const auto f = tatcell_table_refund_ex;
        return detail::decide(f, &raw_, l.get(), now.count(), k.data(), k.size(), &p);
    }
    decision refund_ex(const table_limit &l, instant now, key_hash h, const permit &p) const noexcept {
        return detail::decide(tatcell_table_refund_ex_hash, &raw_, l.get(), now.count(), h.value(), &p);
    }
    /// Gives a key its full burst again (tatcell_table_reset).
    result reset(instant now, key k) const noexcept {
        return result(tatcell_table_reset(&raw_, now.count(), k.data(), k.size()));
    }
    result reset(instant now, key_hash h) const noexcept {
        return result(tatcell_table_reset_hash(&raw_, now.count(), h.value()));
    }
    /// Moves one key from one limit of the table to another (tatcell_table_change). Call it once for each change.
    result change(const table_limit &from, const table_limit &to, instant now, key k, change_how how) const noexcept {
        return result(tatcell_table_change(&raw_, from.get(), to.get(), now.count(), k.data(), k.size(),
                                           static_cast<std::uint32_t>(how)));
    }
    result change(const table_limit &from, const table_limit &to, instant now, key_hash h,
                  change_how how) const noexcept {
        return result(tatcell_table_change_hash(&raw_, from.get(), to.get(), now.count(), h.value(),
                                                static_cast<std::uint32_t>(how)));
    }
    /// Hashes a key under the table's secret (tatcell_table_hash).
    outcome<key_hash> hash(key k) const noexcept {
        std::uint64_t h = 0;
        const std::int32_t c = tatcell_table_hash(&raw_, k.data(), k.size(), &h);
        return {c, key_hash(h)};
    }

    // ---- Bursts ----

    /// Decides a burst at `now` in order, as single calls would (tatcell_table_check_burst). It is true if the burst is
    /// decided: burst::pass() has the verdicts. Errors, after which nothing is decided: err_count, err_null without
    /// limit or keys, err_option, err_overlap.
    result check_burst(instant now, burst &b) const noexcept {
        b.get()->now = now.count();
        return result(tatcell_table_check_burst(&raw_, b.get(), nullptr));
    }
    /// Decides a burst while it hashes and prefetches the keys of the next one, so that the cache misses overlap. The
    /// first call decides an empty burst, and the last call has an empty burst as the next one:
    ///
    ///     tatcell::burst bursts[2];
    ///     for (int i = 0;; i ^= 1) {
    ///         auto &ready = bursts[i].limit(limit), &next = bursts[i ^ 1];
    ///         next.keys(packets[i ^ 1], receive(packets[i ^ 1]), &packet::source);
    ///         if (ready.size() + next.size() == 0) break;
    ///         if (!table.check_burst(clock::now(), ready, next)) break;
    ///         forward(packets[i], ready.pass());
    ///     }
    result check_burst(instant now, burst &b, burst &next) const noexcept {
        b.get()->now = now.count();
        return result(tatcell_table_check_burst(&raw_, b.get(), next.get()));
    }
    /// Decides a burst with elastic room (tatcell_table_check_burst_room): `rooms` are units above the burst, one
    /// number for each request. It also hashes and prefetches the keys of `next`, if that is not null.
    result check_burst_room(instant now, burst &b, const std::uint32_t *rooms, burst *next = nullptr) const noexcept {
        b.get()->now = now.count();
        tatcell_burst_t *const ahead = next == nullptr ? nullptr : next->get();
        return result(tatcell_table_check_burst_room(&raw_, b.get(), rooms, ahead));
    }
    /// Charges the keys of a burst after the fact (tatcell_table_charge_burst). Its costs are the units. A bit of
    /// burst::pass is 0 only if that request was not charged: contended, or refused by a full set.
    result charge_burst(instant now, burst &b, burst *next = nullptr) const noexcept {
        b.get()->now = now.count();
        return result(tatcell_table_charge_burst(&raw_, b.get(), next == nullptr ? nullptr : next->get()));
    }
    /// Decides a burst under its limit and a second one, and charges both or none for each request
    /// (tatcell_table_check_pairs). It also hashes and prefetches the keys of `next`, if that is not null.
    /// `second_costs`: units under the second limit; null = one each. Errors: those of check_burst, and err_option if
    /// the burst has limits or decisions.
    result check_pairs(instant now, burst &b, const table_limit &second, const std::uint32_t *second_costs = nullptr,
                       burst *next = nullptr) const noexcept {
        b.get()->now = now.count();
        tatcell_burst_t *const ahead = next == nullptr ? nullptr : next->get();
        return result(tatcell_table_check_pairs(&raw_, b.get(), second.get(), second_costs, ahead));
    }
    /// Marks one packet of a key and charges the limits of its colour (tatcell_table_mark). Cost 0 only peeks.
    /// `pre`: the colour that the packet already has; green if marking is colour-blind. Errors: those of check,
    /// err_peak, err_algorithm.
    marking mark(const tatcell::mark &m, instant now, key k, std::uint64_t cost,
                 colour pre = colour::green) const noexcept {
        std::uint32_t marked = TATCELL_RED;
        const std::int32_t c = tatcell_table_mark(&raw_, m.get(), now.count(), k.data(), k.size(), cost,
                                                  static_cast<std::uint32_t>(pre), &marked);
        return {c, marked};
    }
    marking mark(const tatcell::mark &m, instant now, key_hash h, std::uint64_t cost,
                 colour pre = colour::green) const noexcept {
        std::uint32_t marked = TATCELL_RED;
        const std::int32_t c = tatcell_table_mark_hash(&raw_, m.get(), now.count(), h.value(), cost,
                                                       static_cast<std::uint32_t>(pre), &marked);
        return {c, marked};
    }
    /// Marks the packets of a burst, which has no limits and whose costs are bytes (tatcell_table_mark_burst). It also
    /// hashes and prefetches the keys of `next`, if that is not null. `colours` gets the colour of each packet. `pre`:
    /// the colours that the packets already have; null = all green. `counts`: three numbers, which grow by the green,
    /// yellow and red packets.
    result mark_burst(instant now, burst &b, const tatcell::mark &m, std::uint8_t *colours,
                      const std::uint8_t *pre = nullptr, std::uint64_t *counts = nullptr,
                      burst *next = nullptr) const noexcept {
        b.get()->now = now.count();
        tatcell_burst_t *const ahead = next == nullptr ? nullptr : next->get();
        return result(tatcell_table_mark_burst(&raw_, b.get(), m.get(), pre, colours, counts, ahead));
    }
    /// Prefetches the lines of up to 64 hashes for the next calls (tatcell_table_prefetch).
    result prefetch(const std::uint64_t *hashes, std::size_t count) const noexcept {
        return result(tatcell_table_prefetch(&raw_, hashes, detail::count_of<burst::max>(count)));
    }

    // ---- Overrides: for a table made with table_options::overrides ----

    /// Bans a key: no request of it passes before `until` (tatcell_table_ban). This replaces an older override of the
    /// key. Errors: err_until, err_full_set (not stored), err_clash (an override of another key is in the way),
    /// err_algorithm. It may be contended.
    result ban(instant now, key k, instant until) const noexcept {
        return result(tatcell_table_ban(&raw_, now.count(), k.data(), k.size(), until.count()));
    }
    result ban(instant now, key_hash h, instant until) const noexcept {
        return result(tatcell_table_ban_hash(&raw_, now.count(), h.value(), until.count()));
    }
    /// Exempts a key: before `until` its requests pass and are not charged (tatcell_table_exempt). It has the errors of
    /// ban.
    result exempt(instant now, key k, instant until) const noexcept {
        return result(tatcell_table_exempt(&raw_, now.count(), k.data(), k.size(), until.count()));
    }
    result exempt(instant now, key_hash h, instant until) const noexcept {
        return result(tatcell_table_exempt_hash(&raw_, now.count(), h.value(), until.count()));
    }
    /// Ends the override of a key at once; code::end if there is none (tatcell_table_lift).
    result lift(instant now, key k) const noexcept {
        return result(tatcell_table_lift(&raw_, now.count(), k.data(), k.size()));
    }
    result lift(instant now, key_hash h) const noexcept {
        return result(tatcell_table_lift_hash(&raw_, now.count(), h.value()));
    }
    /// Says whether a key is banned or exempt, and for how long (tatcell_table_overridden).
    outcome<override_state> overridden(instant now, key k) const noexcept {
        std::uint32_t kind = TATCELL_OVERRIDE_NONE;
        std::uint64_t left = 0;
        const std::int32_t c = tatcell_table_overridden(&raw_, now.count(), k.data(), k.size(), &kind, &left);
        return {c, override_state{static_cast<override_kind>(kind), ticks(left)}};
    }
    outcome<override_state> overridden(instant now, key_hash h) const noexcept {
        std::uint32_t kind = TATCELL_OVERRIDE_NONE;
        std::uint64_t left = 0;
        const std::int32_t c = tatcell_table_overridden_hash(&raw_, now.count(), h.value(), &kind, &left);
        return {c, override_state{static_cast<override_kind>(kind), ticks(left)}};
    }
    /// Bans an address or its network, however it is written: `v4_bits` of IPv4, `v6_bits` of IPv6
    /// (tatcell_table_ban_address). Errors: err_address, err_prefix, those of ban.
    inline result ban_address(instant now, address a, std::uint32_t v4_bits, std::uint32_t v6_bits,
                              instant until) const noexcept;
    /// Exempts an address or its network (tatcell_table_exempt_address). Errors: as ban_address.
    inline result exempt_address(instant now, address a, std::uint32_t v4_bits, std::uint32_t v6_bits,
                                 instant until) const noexcept;
    /// Ends the override of an address or network at once; code::end if there is none (tatcell_table_lift_address).
    inline result lift_address(instant now, address a, std::uint32_t v4_bits, std::uint32_t v6_bits) const noexcept;
    /// Whether an address is banned or exempt, for how long, and by which prefix: the longest of those that are asked
    /// (tatcell_table_overridden_address).
    inline outcome<override_state> overridden_address(instant now, address a,
                                                      const prefix_lengths &asked) const noexcept;
    /// Hashes the prefix of an address: `v4_bits` of IPv4, `v6_bits` of IPv6 (tatcell_address_prefix_hash).
    inline outcome<key_hash> prefix_hash(address a, std::uint32_t v4_bits, std::uint32_t v6_bits) const noexcept;

    // ---- Upkeep ----

    /// Empties the expired slots among `count` slots from `from` on (tatcell_table_sweep). It gives the slot to
    /// continue at, 0 after the last one. Sweep the whole table once per info()->sweep_interval. A sweep changes no
    /// decision.
    outcome<std::uint64_t> sweep(instant now, std::uint64_t from, std::uint64_t count) const noexcept {
        return detail::fill(std::uint64_t{0}, tatcell_table_sweep, &raw_, now.count(), from, count);
    }
    /// Sweeps what is due, instead of a timer, and ends a silence (tatcell_table_sweep_due). Call it before each call
    /// on the table, also before a look at overrides. It forgets what was charged without it: all processes use it,
    /// with one sweeper, or none does. A fresh table has a fresh sweeper.
    result sweep_due(tatcell_sweeper_t &sweeper, instant now) const noexcept {
        return result(tatcell_table_sweep_due(&raw_, &sweeper, now.count()));
    }
    /// The time at which a peek finds no old debt, and changes nothing (tatcell_table_peek_time). During a silence it
    /// is in the past, and so is a departure that the peek returns.
    outcome<instant> peek_time(const tatcell_sweeper_t &sweeper, instant now) const noexcept {
        std::uint64_t time = 0;
        const std::int32_t c = tatcell_table_peek_time(&raw_, &sweeper, now.count(), &time);
        return {c, instant(time)};
    }
    /// Scans all slots and counts live keys, load and debts (tatcell_table_stats).
    outcome<tatcell_stats_t> stats(instant now) const noexcept {
        return detail::fill(tatcell_stats_t TATCELL_STATS_INIT, tatcell_table_stats, &raw_, now.count());
    }
    /// Finds the next live slot at or after a number, else code::end (tatcell_table_next).
    outcome<tatcell_slot_t> next(instant now, std::uint64_t from) const noexcept {
        return detail::fill(tatcell_slot_t{}, tatcell_table_next, &raw_, now.count(), from);
    }
    /// All live slots, for a range-based for. The range points to this handle.
    slot_range slots(instant now) const & noexcept TATCELL_LIFETIMEBOUND { return {&raw_, now}; }
    slot_range slots(instant) const && = delete;
    /// Finds the live slots with the longest debts, the longest first, and gives how many of `out` it filled
    /// (tatcell_table_top). `count` is at most 64, else err_count.
    outcome<std::uint32_t> top(instant now, tatcell_slot_t *out, std::uint32_t count) const noexcept {
        return detail::fill(std::uint32_t{0}, tatcell_table_top, &raw_, now.count(), out, count);
    }
    /// Says whether the key of this hash may be the one in this slot (tatcell_table_may_be).
    bool may_be(const tatcell_slot_t &slot, key_hash hash) const noexcept {
        return tatcell_table_may_be(&raw_, &slot, hash.value()) == TATCELL_PASS;
    }
    /// The numbers of the table: size, span, skew, sweep interval (tatcell_table_info). Times are ticks.
    outcome<tatcell_table_info_t> info() const noexcept {
        return detail::fill(tatcell_table_info_t TATCELL_TABLE_INFO_INIT, tatcell_table_info, &raw_);
    }
    /// The numbers in q-units, for a program that reads and writes slots by itself (tatcell_table_export).
    outcome<tatcell_table_numbers_t> numbers() const noexcept {
        return detail::fill(tatcell_table_numbers_t TATCELL_TABLE_NUMBERS_INIT, tatcell_table_export, &raw_);
    }

    const tatcell_table_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }
    tatcell_table_t *get() noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    tatcell_table_t raw_{};
};
static_assert(sizeof(table) == TATCELL_TABLE_HANDLE_SIZE, "same layout");

inline result table_limit::init(const table &t, const limit_spec &spec) noexcept {
    return result(tatcell_limit_init_table(&raw_, t.get(), spec.get()));
}
inline result table_limit::init_unlimited(const table &t) noexcept {
    return result(tatcell_limit_init_unlimited_table(&raw_, t.get()));
}

// ==== 11 Meters =====================================================================================================

/// A meter in the terms of its RFC (tatcell_meter_spec_t): meter_spec::rfc2697(46000000, 2048, 4096). Rates are units
/// per second, and bursts are units. Without a frequency, the clock counts nanoseconds.
class meter_spec {
public:
    /// One rate, a committed and an excess burst, one of which may be 0. A rate may be 0, here and below: its burst is
    /// then given once.
    static constexpr meter_spec rfc2697(std::uint64_t cir, std::uint64_t cbs, std::uint64_t ebs,
                                        frequency clock = nanoseconds) noexcept {
        return meter_spec(TATCELL_METER_RFC2697, clock, cir, cbs, 0, ebs);
    }
    /// Committed rate and burst, peak rate and burst. A peak rate below the committed rate is err_peak.
    static constexpr meter_spec rfc2698(std::uint64_t cir, std::uint64_t cbs, std::uint64_t pir, std::uint64_t pbs,
                                        frequency clock = nanoseconds) noexcept {
        return meter_spec(TATCELL_METER_RFC2698, clock, cir, cbs, pir, pbs);
    }
    /// Committed rate and burst, excess rate and burst.
    static constexpr meter_spec rfc4115(std::uint64_t cir, std::uint64_t cbs, std::uint64_t eir, std::uint64_t ebs,
                                        frequency clock = nanoseconds) noexcept {
        return meter_spec(TATCELL_METER_RFC4115, clock, cir, cbs, eir, ebs);
    }

    /// Units that overflow the committed burst of an RFC 4115 meter fill the excess burst (MEF 10.3, CF = 1).
    constexpr meter_spec &coupled() noexcept { return raw_.flags |= TATCELL_METER_COUPLED, *this; }
    /// How long a meter may rest without a sweep. If that does not fit, err_short_span.
    constexpr meter_spec &span(ticks d) noexcept { return raw_.span = d.count(), *this; }
    /// How much older one reading of the clock may be than another.
    constexpr meter_spec &skew(ticks d) noexcept { return raw_.skew = d.count() == 0 ? none : d.count(), *this; }

    constexpr const tatcell_meter_spec_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    static constexpr frequency nanoseconds{1000000000};
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();  // TATCELL_SKEW_NONE
    constexpr meter_spec(std::uint32_t kind, frequency clock, std::uint64_t cir, std::uint64_t cbs, std::uint64_t rate2,
                         std::uint64_t burst2) noexcept
        : raw_(TATCELL_METER_SPEC_INIT) {
        raw_.kind = kind;
        raw_.cir = cir;
        raw_.cbs = cbs;
        raw_.rate2 = rate2;
        raw_.burst2 = burst2;
        raw_.tick_hz = clock.hz();
    }
    tatcell_meter_spec_t raw_;
};

/// The validated rates and bursts of meters. You may copy them, and any number of threads may use one at once.
class meter_params {
public:
    /// Validates a specification (tatcell_meter_params_init). Errors: err_rate, err_burst, err_period if one is 0 that
    /// the RFC needs; err_peak; err_option; err_represent, err_horizon, err_short_span if the numbers do not fit.
    result init(const meter_spec &spec) noexcept { return result(tatcell_meter_params_init(&raw_, spec.get())); }
    /// The layout of the word, its times, and the errors of rounding (tatcell_meter_params_info).
    outcome<tatcell_meter_info_t> info() const noexcept {
        return detail::fill(tatcell_meter_info_t TATCELL_METER_INFO_INIT, tatcell_meter_params_info, &raw_);
    }
    const tatcell_meter_params_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    tatcell_meter_params_t raw_{};
};
static_assert(sizeof(meter_params) == TATCELL_METER_PARAMS_SIZE, "same layout");

/// Refers to a meter that lies elsewhere: in a flow, an array, shared memory. Copies refer to the same meter.
///
/// Every call may return err_limit if the parameters were not initialised.
class meter_ref {
public:
    constexpr meter_ref(tatcell_meter_t &raw) noexcept : raw_(&raw) {}
    constexpr tatcell_meter_t *get() const noexcept { return raw_; }

    /// Marks one packet and charges it unless it is red (tatcell_meter_check). Cost 0 only peeks.
    /// `pre`: the colour that the packet already has; green for a colour-blind meter.
    marking check(const meter_params &p, instant now, std::uint64_t cost, colour pre = colour::green) const noexcept {
        return ask(tatcell_meter_check, p, now, cost, pre);
    }
    /// As check, without an atomic instruction, for a meter that nobody else uses during the call
    /// (tatcell_meter_check_exclusive).
    marking check_exclusive(const meter_params &p, instant now, std::uint64_t cost,
                            colour pre = colour::green) const noexcept {
        return ask(tatcell_meter_check_exclusive, p, now, cost, pre);
    }
    /// Reports how check would mark the packet, and charges nothing (tatcell_meter_peek).
    marking peek(const meter_params &p, instant now, std::uint64_t cost, colour pre = colour::green) const noexcept {
        return ask(tatcell_meter_peek, p, now, cost, pre);
    }
    /// Empties a meter that has expired, and says whether it did (tatcell_meter_sweep).
    outcome<bool> sweep(const meter_params &p, instant now) const noexcept {
        std::uint32_t swept = 0;
        const std::int32_t c = tatcell_meter_sweep(raw_, p.get(), now.count(), &swept);
        return {c, swept != 0};
    }
    /// Makes both buckets full (tatcell_meter_reset).
    result reset() const noexcept { return result(tatcell_meter_reset(raw_)); }

private:
    template <class F>
    marking ask(F f, const meter_params &p, instant now, std::uint64_t cost, colour pre) const noexcept {
        std::uint32_t marked = TATCELL_RED;
        const std::int32_t c = f(raw_, p.get(), now.count(), cost, static_cast<std::uint32_t>(pre), &marked);
        return {c, marked};
    }
    tatcell_meter_t *raw_;
};

/// A meter with its own storage of 8 bytes. It cannot be copied, because other threads may be writing it.
class meter {
public:
    constexpr meter() noexcept = default;
    meter(const meter &) = delete;
    meter &operator=(const meter &) = delete;

    /// Has all other operations: meter.ref().sweep(...).
    meter_ref ref() & noexcept TATCELL_LIFETIMEBOUND { return raw_; }
    meter_ref ref() && = delete;
    operator meter_ref() & noexcept TATCELL_LIFETIMEBOUND { return raw_; }
    /// Marks one packet and charges it unless it is red.
    marking check(const meter_params &p, instant now, std::uint64_t cost, colour pre = colour::green) noexcept {
        return ref().check(p, now, cost, pre);
    }

private:
    tatcell_meter_t raw_{};
};
static_assert(sizeof(meter) == TATCELL_METER_SIZE && alignof(meter) == TATCELL_METER_ALIGN, "a meter is its word");

// ==== 12 Host =======================================================================================================

#ifdef TATCELL_HOST_H
/// Clocks, ticks, random bytes and memory of a Unix system (tatcell_host.h). Define TATCELL_NO_HOST to leave this out.
///
/// Every call may return err_system. Then the errno is in *system_error, if that is not null, or in the memory.
namespace host {

/// The system's monotonic clocks.
enum class clock : std::uint32_t {
    monotonic = TATCELL_HOST_CLOCK_MONOTONIC,  ///< slewed by NTP; stops while the system sleeps
    raw = TATCELL_HOST_CLOCK_RAW,              ///< the oscillator without NTP; Linux, Apple
    coarse = TATCELL_HOST_CLOCK_COARSE,        ///< the time of the last timer tick; cheapest; Linux
    boottime = TATCELL_HOST_CLOCK_BOOTTIME,    ///< also runs while the system sleeps; Linux
};

/// Reads a clock, in nanoseconds (tatcell_host_clock). Error: err_unsupported if the system does not have it.
inline outcome<instant> now(clock c, std::int32_t *system_error = nullptr) noexcept {
    std::uint64_t ns = 0;
    const std::int32_t rc = tatcell_host_clock(static_cast<std::uint32_t>(c), &ns, system_error);
    return {rc, instant(ns)};
}
/// The resolution of a clock, in nanoseconds (tatcell_host_clock_resolution).
inline outcome<ticks> resolution(clock c, std::int32_t *system_error = nullptr) noexcept {
    std::uint64_t ns = 0;
    const std::int32_t rc = tatcell_host_clock_resolution(static_cast<std::uint32_t>(c), &ns, system_error);
    return {rc, ticks(ns)};
}

/// A wall clock that nobody can set while the program runs. Copies are equal clocks; any number of threads may use one.
class clock_guard {
public:
    /// Starts with a stamp of the wall clock that you trust (tatcell_host_guard_start). Later stamps count only as far
    /// as they are at most `step` before or after the time that has run since.
    static outcome<clock_guard> start(instant stamp, std::chrono::nanoseconds step,
                                      std::int32_t *system_error = nullptr) noexcept {
        clock_guard made;
        const std::int32_t rc =
            tatcell_host_guard_start(&made.raw_, stamp.count(), ticks(step).count(), system_error);
        return {rc, made};
    }
    /// The time: the stamp, or the nearest time to it that the guard allows (tatcell_host_guard_now).
    outcome<instant> now(instant stamp, std::int32_t *system_error = nullptr) const noexcept {
        std::uint64_t ns = 0;
        const std::int32_t rc = tatcell_host_guard_now(&raw_, stamp.count(), &ns, system_error);
        return {rc, instant(ns)};
    }

private:
    tatcell_host_guard_t raw_ = TATCELL_HOST_GUARD_INIT;
};

/// A reading of the processor's counter. It is no instant, because its ticks are not nanoseconds: use a counter_clock.
/// If all your limits are made of `ticks` of this counter, write instant(host::counter()).
class cycles : detail::ordered<cycles> {
public:
    constexpr explicit cycles(std::uint64_t count) noexcept : count_(count) {}
    constexpr std::uint64_t count() const noexcept { return count_; }
    constexpr explicit operator instant() const noexcept { return instant(count_); }

private:
    std::uint64_t count_;
};
/// The span from b to a, in ticks of the counter; 0 if b is later.
constexpr ticks operator-(cycles a, cycles b) noexcept {
    return ticks(a.count() > b.count() ? a.count() - b.count() : 0);
}

/// Reads the processor's counter, whose frequency calibrate() finds (tatcell_host_ticks).
inline cycles counter() noexcept { return cycles(tatcell_host_ticks()); }

/// The processor's counter as a clock of nanoseconds: a reading costs two multiplications more than counter().
///
///     const tatcell::host::counter_clock clock(tatcell::host::calibrate(20ms)->rate);
///     auto answer = cell.check(limit, clock.now());          // with a limit in std::chrono durations
///
/// A clock of frequency 0 stands still.
class counter_clock {
public:
    constexpr explicit counter_clock(frequency rate) noexcept {
        if (rate.hz() == 0) return;
        while (shift_ > 0 && (std::uint64_t{1000000000} << shift_) / rate.hz() >> 32 != 0) shift_--;
        factor_ = (std::uint64_t{1000000000} << shift_) / rate.hz();
    }
    instant now() const noexcept { return at(counter()); }
    /// Converts a reading of the counter.
    constexpr instant at(cycles c) const noexcept {
        const std::uint64_t high = c.count() >> 32, low = c.count() & 0xffffffff;
        return instant((high * factor_ << (32 - shift_)) + (low * factor_ >> shift_));
    }

private:
    std::uint64_t factor_ = 0;  // nanoseconds of a tick, in units of 2^-shift; below 2^32
    unsigned shift_ = 32;
};

/// What a calibration found.
struct calibration {
    frequency rate;
    /// The error of the rate, at most, in billionths of the rate; 0 if the processor reports the rate.
    std::uint64_t uncertainty_ppb;
};
/// Finds the frequency of the processor's counter (tatcell_host_ticks_calibrate). `time`: 1 ms to 1 s, else err_option.
/// Without a counter of constant rate, err_unsupported.
inline outcome<calibration> calibrate(std::chrono::nanoseconds time, std::int32_t *system_error = nullptr) noexcept {
    std::uint64_t hz = 0, ppb = 0;
    const std::int32_t rc = tatcell_host_ticks_calibrate(ticks(time).count(), &hz, &ppb, system_error);
    return {rc, calibration{frequency(hz), ppb}};
}

/// Fills 1 to 256 bytes from the system's random source (tatcell_host_random). Errors: err_too_small, err_too_large.
inline result random(memory_ref bytes, std::int32_t *system_error = nullptr) noexcept {
    return result(tatcell_host_random(bytes.data(), bytes.size(), system_error));
}
/// Makes a seed from the system's random source. If the system has none, every table refuses the seed.
inline outcome<seed> random_seed(std::int32_t *system_error = nullptr) noexcept {
    std::array<std::uint8_t, 16> bytes{};
    const std::int32_t rc = tatcell_host_random(bytes.data(), bytes.size(), system_error);
    return {rc, rc == TATCELL_PASS ? seed(bytes) : seed()};
}

/// The pages of a memory.
enum class pages : std::uint32_t {
    normal = TATCELL_HOST_PAGES_NORMAL,    ///< pages of the usual size
    advised = TATCELL_HOST_PAGES_ADVISED,  ///< the kernel was asked to use huge pages
    huge = TATCELL_HOST_PAGES_HUGE,        ///< huge pages from the reserved pool
};

/// Memory from the system, for table::init and table::attach. The object owns the mapping: it can be moved, and its
/// destructor unmaps. No table may use the memory after that. A static object is destroyed at exit: call release() if
/// other threads may still run then.
class memory {
public:
    memory() noexcept = default;
    /// Takes over a mapping that the C functions made.
    explicit memory(const tatcell_host_memory_t &raw) noexcept : raw_(raw) {}
    memory(memory &&other) noexcept : raw_(other.release()) {}
    memory &operator=(memory &&other) noexcept {
        if (this == &other) return *this;
        static_cast<void>(tatcell_host_memory_unmap(&raw_));
        raw_ = other.release();
        return *this;
    }
    ~memory() noexcept { static_cast<void>(tatcell_host_memory_unmap(&raw_)); }

    /// Maps zeroed memory of this process (tatcell_host_memory_map). flags: TATCELL_HOST_HUGE and
    /// TATCELL_HOST_FORK_SHARED. Like create and attach, it unmaps an older mapping of this object once it has the new
    /// one.
    result map(std::size_t bytes, std::uint32_t flags = 0) noexcept {
        return take(tatcell_host_memory_map, bytes, flags);
    }
    /// Creates memory with a name, "/name" or an absolute path, for table::init (tatcell_host_memory_create). mode:
    /// permission bits; 0 = 0600. Error: err_exists if another process was first: attach.
    result create(const char *name, std::size_t bytes, std::uint32_t mode = 0) noexcept {
        return take(tatcell_host_memory_create, name, bytes, mode);
    }
    /// Attaches to memory that another process has created, for table::attach (tatcell_host_memory_attach). bytes: 0 =
    /// all of it. Errors: err_absent, err_not_ready (ask again), err_wrong_size, err_name.
    result attach(const char *name, std::size_t bytes = 0) noexcept {
        return take(tatcell_host_memory_attach, name, bytes);
    }
    /// Maps such memory, or a saved image in a file, for reading alone: for table::attach with
    /// attach_options::read_only (tatcell_host_memory_attach_read_only). A store to it ends the process.
    /// Errors: as attach.
    result attach_read_only(const char *name, std::size_t bytes = 0) noexcept {
        return take(tatcell_host_memory_attach_read_only, name, bytes);
    }
    /// Unmaps the memory now (tatcell_host_memory_unmap). No thread may use it or a table in it. Its name stays.
    result unmap() noexcept { return result(tatcell_host_memory_unmap(&raw_)); }
    /// Gives up the mapping without unmapping it, and returns it.
    tatcell_host_memory_t release() noexcept {
        return std::exchange(raw_, tatcell_host_memory_t(TATCELL_HOST_MEMORY_INIT));
    }
    /// Removes a name; existing mappings stay (tatcell_host_memory_unlink). Error: err_absent.
    static result unlink(const char *name, std::int32_t *system_error = nullptr) noexcept {
        return result(tatcell_host_memory_unlink(name, system_error));
    }
    /// The bytes that lie on huge pages (tatcell_host_memory_huge_bytes). Error: err_unsupported.
    outcome<std::uint64_t> huge_bytes(std::int32_t *system_error = nullptr) const noexcept {
        std::uint64_t bytes = 0;
        const std::int32_t rc = tatcell_host_memory_huge_bytes(&raw_, &bytes, system_error);
        return {rc, bytes};
    }

    void *data() const noexcept { return raw_.memory; }
    std::size_t size() const noexcept { return raw_.bytes; }
    host::pages pages() const noexcept { return static_cast<host::pages>(raw_.pages); }
    /// The errno of the last call if that returned err_system, else 0.
    std::int32_t system_error() const noexcept { return raw_.system_error; }
    operator memory_ref() const & noexcept TATCELL_LIFETIMEBOUND { return {raw_.memory, raw_.bytes}; }
    operator memory_ref() const && = delete;
    const tatcell_host_memory_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    template <class F, class... Args>
    result take(F f, Args... args) noexcept {
        memory made;
        const result rc(f(args..., &made.raw_));
        if (rc) *this = std::move(made);
        raw_.system_error = made.raw_.system_error;
        return rc;
    }
    tatcell_host_memory_t raw_ TATCELL_HOST_MEMORY_INIT;
};

/// Counters of several threads in named memory, which other processes may read. It owns the mapping and can be moved.
class shared_counters {
public:
    /// Creates them, or attaches to them if they exist, and takes all blocks (tatcell_host_counters_open). mode:
    /// permission bits; 0 = 0600. Errors: err_wrong_size for another number of threads, err_system if another process
    /// has a block, or this one has opened them before, err_not_ready, err_version, and those of memory::create. An
    /// object that has them keeps them and gets err_system: to open them again, first assign shared_counters() to it.
    result open(const char *name, std::uint32_t threads, std::uint32_t mode = 0) noexcept {
        tatcell_host_memory_t made TATCELL_HOST_MEMORY_INIT;
        const result rc(tatcell_host_counters_open(name, threads, mode, &made));
        if (rc) memory_ = memory(made);
        return rc;
    }
    /// The same, but takes only the first `count` blocks that nobody has (tatcell_host_counters_open_some), and gives
    /// the number of the first one. Blocks that this object has count as taken. Errors: also err_unsupported, if the
    /// system or the file system has no locks.
    outcome<std::uint32_t> open_some(const char *name, std::uint32_t threads, std::uint32_t count,
                                     std::uint32_t mode = 0) noexcept {
        tatcell_host_memory_t made TATCELL_HOST_MEMORY_INIT;
        std::uint32_t first = 0;
        const std::int32_t rc = tatcell_host_counters_open_some(name, threads, count, mode, &made, &first);
        if (rc == 0) memory_ = memory(made);
        return {rc, first};
    }
    /// Maps those of another process for reading alone (tatcell_host_counters_attach). Errors: err_absent, err_version.
    result attach(const char *name) noexcept {
        tatcell_host_memory_t made TATCELL_HOST_MEMORY_INIT;
        const result rc(tatcell_host_counters_attach(name, &made));
        if (rc) memory_ = memory(made);
        return rc;
    }
    /// The block of one thread, from 0; null if there are fewer or nothing is open (tatcell_host_counters_block). After
    /// attach a store to it ends the process.
    tatcell_counters_t *block(std::uint32_t number) const noexcept TATCELL_LIFETIMEBOUND {
        tatcell_counters_t *found = nullptr;
        TATCELL_IGNORE(tatcell_host_counters_block(memory_.data(), memory_.size(), number, &found));
        return found;
    }
    /// The sum of all blocks (tatcell_host_counters_sum).
    outcome<counters> sum() const noexcept {
        counters total;
        const std::int32_t rc = tatcell_host_counters_sum(memory_.data(), memory_.size(), &total);
        return {rc, total};
    }

private:
    memory memory_;
};

/// A table with its memory, seed and one limit for all keys. It owns them and can be moved.
///
///     tatcell::host::owned_table clients;
///     const auto spec = tatcell::limit_spec::parse("10/s burst 20");
///     if (const auto rc = clients.open(*spec, 100000); !rc) return std::puts(rc.text()), 1;
///     const auto answer = clients.check(now, "192.0.2.1");
class owned_table {
public:
    /// For `keys` keys that are in debt at the same time: a new key then finds its set full with a chance of one in a
    /// million (tatcell_host_table_open). It replaces an older table once it has the new one. Errors: err_too_small if
    /// keys is 0, err_too_large, err_system, and those of the limit and of table::init.
    result open(const limit_spec &spec, std::size_t keys, full_set policy = full_set::admit) noexcept {
        tatcell_host_table_t raw TATCELL_HOST_TABLE_INIT;
        const result rc(tatcell_host_table_open(spec.get(), keys, static_cast<std::uint32_t>(policy), &raw));
        if (!rc) return rc;
        owned_table made;
        const memory_ref lines(raw.memory.memory, raw.memory.bytes);
        result ready = made.table_.attach(lines, attach_options(raw.seed));
        if (ready) ready = made.limit_.init(made.table_, spec);
        if (!ready) {
            TATCELL_IGNORE(tatcell_host_table_close(&raw));
            return ready;
        }
        made.memory_ = host::memory(raw.memory);
        *this = std::move(made);
        return code::pass;
    }
    /// Decides one request of a key and charges it if it conforms (tatcell_table_check). Sweeps first.
    answer check(instant now, const key &k, std::uint64_t cost = 1) const noexcept {
        TATCELL_IGNORE(sweep(now));
        return table_.check(limit_, now, k, cost);
    }
    /// Sweeps what is due (tatcell_table_sweep_due). Call it before each call on `table()`.
    result sweep(instant now) const noexcept { return table_.sweep_due(sweeper_, now); }
    /// The table and its limit, for all other calls; empty before open.
    const tatcell::table &table() const & noexcept TATCELL_LIFETIMEBOUND { return table_; }
    const table_limit &limit() const & noexcept TATCELL_LIFETIMEBOUND { return limit_; }
    const host::memory &memory() const & noexcept TATCELL_LIFETIMEBOUND { return memory_; }
    const tatcell::table &table() const && = delete;
    const table_limit &limit() const && = delete;
    const host::memory &memory() const && = delete;

private:
    host::memory memory_;
    tatcell::table table_;
    table_limit limit_;
    mutable tatcell_sweeper_t sweeper_ TATCELL_SWEEPER_INIT;
};

}  // namespace host
#endif  // TATCELL_HOST_H

// ==== 13 Refusals ===================================================================================================

/// Lets one log line per interval through and counts the others. For many keys use an array of gates, and choose one by
/// a hash of the key. Zeroed storage is a fresh gate. It cannot be copied, because other threads may be writing it.
class log_gate {
public:
    constexpr log_gate() noexcept = default;
    log_gate(const log_gate &) = delete;
    log_gate &operator=(const log_gate &) = delete;

    /// True: write the line, and say how many lines before it were left out. False: the line is counted
    /// (tatcell_log_line).
    outcome<std::uint32_t> check(instant now, ticks interval) noexcept {
        return detail::fill(std::uint32_t{0}, tatcell_log_line, &raw_, now.count(), interval.count());
    }
    /// As check, in the order of 0.3. Deprecated.
    outcome<std::uint32_t> check(ticks interval, instant now) noexcept {
        return detail::fill(std::uint32_t{0}, tatcell_log_check, &raw_, interval.count(), now.count());
    }
    /// Takes the count of lines that were left out, for a line about them (tatcell_log_take). If it is contended, ask
    /// again.
    outcome<std::uint32_t> take() noexcept { return detail::fill(std::uint32_t{0}, tatcell_log_take, &raw_); }
    tatcell_log_t *get() noexcept { return &raw_; }

private:
    tatcell_log_t raw_ TATCELL_LOG_INIT;
};
static_assert(sizeof(log_gate) == TATCELL_LOG_SIZE && alignof(log_gate) == TATCELL_LOG_ALIGN, "same layout");

/// How many log lines a key_log_gate left out, and whose they were.
struct left_out {
    std::uint32_t count = 0;
    std::uint32_t tag = 0;  ///< of the key of all of them; 0 if they are of several keys, or if there are none
    /// They are all of this key, or, with a probability of 2^-14, of another one that has its tag.
    bool is_of(key_hash h) const noexcept { return tag == tatcell_key_log_tag(h.value()); }
};

/// A log_gate that knows the key of the lines that it counts (tatcell_key_log_t). Zeroed storage is a fresh gate. It
/// cannot be copied.
class key_log_gate {
public:
    constexpr key_log_gate() noexcept = default;
    key_log_gate(const key_log_gate &) = delete;
    key_log_gate &operator=(const key_log_gate &) = delete;

    /// True: write the line, and say what was left out since the last one. False: leave it out, too
    /// (tatcell_key_log_line).
    outcome<left_out> check(instant now, key_hash h, ticks interval) noexcept {
        left_out out;
        const auto f = tatcell_key_log_line;
        const std::int32_t c = f(&raw_, now.count(), h.value(), interval.count(), &out.count, &out.tag);
        return {c, out};
    }
    /// Takes the count of lines that were left out, for a line about them (tatcell_key_log_take). If it is contended,
    /// ask again.
    outcome<left_out> take() noexcept {
        left_out out;
        const std::int32_t c = tatcell_key_log_take(&raw_, &out.count, &out.tag);
        return {c, out};
    }
    tatcell_key_log_t *get() noexcept { return &raw_; }

private:
    tatcell_key_log_t raw_ TATCELL_KEY_LOG_INIT;
};
static_assert(sizeof(key_log_gate) == TATCELL_KEY_LOG_SIZE && alignof(key_log_gate) == TATCELL_KEY_LOG_ALIGN,
              "same layout");

/// Selects every n-th refusal for a cheap answer. Zeroed storage is a fresh counter. It cannot be copied.
class slip {
public:
    constexpr slip() noexcept = default;
    slip(const slip &) = delete;
    slip &operator=(const slip &) = delete;

    /// True: this refusal gets the cheap answer (tatcell_slip_check). n: 0 = none does, 1 = every refusal does.
    result check(std::uint32_t n) noexcept { return result(tatcell_slip_check(&raw_, n)); }
    /// As check, without an atomic instruction, for one owner (tatcell_slip_check_exclusive).
    result check_exclusive(std::uint32_t n) noexcept { return result(tatcell_slip_check_exclusive(&raw_, n)); }
    tatcell_slip_t *get() noexcept { return &raw_; }

private:
    tatcell_slip_t raw_ TATCELL_SLIP_INIT;
};
static_assert(sizeof(slip) == TATCELL_SLIP_SIZE && alignof(slip) == TATCELL_SLIP_ALIGN, "same layout");

// ==== 14 HTTP =======================================================================================================

/// One header field, or several: retry_after | ratelimit.
enum class http_field : std::uint32_t {
    ratelimit = TATCELL_HTTP_RATELIMIT,                ///< the units that are left, and for how long
    ratelimit_policy = TATCELL_HTTP_RATELIMIT_POLICY,  ///< the quotas
    retry_after = TATCELL_HTTP_RETRY_AFTER,            ///< seconds to wait
    x_limit = TATCELL_HTTP_X_LIMIT,                    ///< X-RateLimit-Limit
    x_remaining = TATCELL_HTTP_X_REMAINING,            ///< X-RateLimit-Remaining
    x_reset = TATCELL_HTTP_X_RESET,                    ///< X-RateLimit-Reset, seconds from now
    all = TATCELL_HTTP_ALL,
};
constexpr http_field operator|(http_field a, http_field b) noexcept {
    return static_cast<http_field>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

/// A limit as clients know it, and a decision under it (tatcell_http_policy_t):
/// http_policy("burst").limit(l).decision(d). It keeps pointers to what you give it, the texts included.
class http_policy {
public:
    /// A text that distinguishes the policy from others; err_http_name if it has bytes outside of 0x20 to 0x7e.
    explicit http_policy(kept_text name) noexcept {
        raw_.name = name.data();
        raw_.name_len = name.size();
    }
    /// A limit gives quota and window: its burst, and the time in which a whole burst drains.
    http_policy &limit(kept<any_limit> l) noexcept { return raw_.limit = l.get()->get(), *this; }
    /// Instead of a limit: units in a window.
    http_policy &quota(std::uint64_t units, ticks window) noexcept {
        return raw_.quota = units, raw_.window = window.count(), *this;
    }
    /// The name of the unit if it is not a request, for instance "content-bytes".
    http_policy &unit(kept_text name) noexcept {
        return raw_.unit = name.data(), raw_.unit_len = name.size(), *this;
    }
    /// The part of the clients that the quota is for. Clients see it in Base64.
    http_policy &partition(kept_key k) noexcept {
        return raw_.partition = k.data(), raw_.partition_len = k.size(), *this;
    }
    http_policy &decision(kept<tatcell_decision_t> d) noexcept { return raw_.decision = d.get(), *this; }
    const tatcell_http_policy_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    tatcell_http_policy_t raw_ TATCELL_HTTP_POLICY_INIT;
};
static_assert(sizeof(http_policy) == sizeof(tatcell_http_policy_t), "an array of one is an array of the other");

/// Where a text goes: an array of char, a std::array, a std::span, or a pointer and a size.
class text_room {
public:
    constexpr text_room(char *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N>
    constexpr text_room(char (&room)[N]) noexcept : text_room(room, N) {}
    template <std::size_t N>
    constexpr text_room(std::array<char, N> &room) noexcept : text_room(room.data(), N) {}
#ifdef __cpp_lib_span
    template <std::size_t N>
    constexpr text_room(std::span<char, N> room) noexcept : text_room(room.data(), room.size()) {}
#endif
    constexpr char *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }

private:
    char *data_;
    std::size_t size_;
};

/// The header fields of one response. It copies one policy, or up to 8 from an array, a std::array, a std::span or a
/// std::vector.
///
/// A written text ends with a NUL and is truncated if the room ends. The outcome is the length of the whole text: if it
/// is not less than the size of the room, the text was truncated. Errors: those of tatcell_http_value. Nothing is
/// written on error.
class http_fields {
public:
    http_fields(frequency clock, const http_policy &p) noexcept : http_fields(clock, &p, 1) {}
    http_fields(frequency clock, const http_policy *first, std::uint32_t count) noexcept
        : count_(count), hz_(clock.hz()) {
        for (std::uint32_t i = 0; i < count && i < std::size(policies_); i++) policies_[i] = *first[i].get();
    }
    template <class Policies, class = std::enable_if_t<detail::is_sequence_of<http_policy, Policies>>>
    http_fields(frequency clock, const Policies &policies) noexcept
        : http_fields(clock, std::data(policies), detail::count_of<TATCELL_HTTP_POLICIES_MAX>(std::size(policies))) {}

    /// The value of one field, empty if the field has none (tatcell_http_value).
    outcome<std::size_t> value(http_field f, text_room to) const noexcept {
        const auto field = static_cast<std::uint32_t>(f);
        return length(tatcell_http_value(policies_, count_, hz_, field, to.data(), to.size()));
    }
    outcome<std::size_t> value(http_field f, char *buffer, std::size_t bytes) const noexcept {
        return value(f, {buffer, bytes});
    }
    /// Whole lines of the fields that have a value (tatcell_http_lines).
    outcome<std::size_t> lines(http_field f, text_room to) const noexcept {
        const auto fields = static_cast<std::uint32_t>(f);
        return length(tatcell_http_lines(policies_, count_, hz_, fields, to.data(), to.size()));
    }
    outcome<std::size_t> lines(http_field f, char *buffer, std::size_t bytes) const noexcept {
        return lines(f, {buffer, bytes});
    }

private:
    static outcome<std::size_t> length(std::int32_t rc) noexcept {
        return {rc < 0 ? rc : TATCELL_PASS, rc < 0 ? 0 : static_cast<std::size_t>(rc)};
    }
    tatcell_http_policy_t policies_[TATCELL_HTTP_POLICIES_MAX]{};
    std::uint32_t count_;
    std::uint64_t hz_;
};

/// The two formats of metrics_text.
enum class metrics_format : std::uint32_t {
    prometheus = TATCELL_METRICS_PROMETHEUS,
    openmetrics = TATCELL_METRICS_OPENMETRICS,
};

/// What is said of one table (tatcell_metrics_t): table_metrics("pages").counters(sum).stats(s).info(i). It keeps
/// pointers to what you give it, the name included.
class table_metrics {
public:
    /// The label `table`, different for each table.
    explicit table_metrics(kept_text name) noexcept {
        raw_.name = name.data();
        raw_.name_len = name.size();
    }
    /// The sum of all threads, in which nobody counts during the call.
    table_metrics &counters(kept<tatcell_counters_t> c) noexcept { return raw_.counters = c.get(), *this; }
    table_metrics &stats(kept<tatcell_stats_t> s) noexcept { return raw_.stats = s.get(), *this; }
    table_metrics &info(kept<tatcell_table_info_t> i) noexcept { return raw_.info = i.get(), *this; }
    const tatcell_metrics_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    tatcell_metrics_t raw_ TATCELL_METRICS_INIT;
};
static_assert(sizeof(table_metrics) == sizeof(tatcell_metrics_t), "an array of one is an array of the other");

/// Counters and statistics of tables as text for Prometheus (tatcell_metrics_text): an array, a std::array, a std::span
/// or a std::vector of table_metrics. The outcome is the length of the whole text; if it is not less than the size of
/// the room, the text was truncated. Nothing is written on error.
template <class Tables, class = std::enable_if_t<detail::is_sequence_of<table_metrics, Tables>>>
outcome<std::size_t> metrics_text(const Tables &tables, metrics_format f, text_room to) noexcept {
    const auto *first = reinterpret_cast<const tatcell_metrics_t *>(std::data(tables));
    const std::uint32_t count = detail::count_of<TATCELL_METRICS_TABLES_MAX>(std::size(tables));
    const std::int32_t rc =
        tatcell_metrics_text(first, count, static_cast<std::uint32_t>(f), to.data(), to.size());
    return {rc < 0 ? rc : TATCELL_PASS, rc < 0 ? 0 : static_cast<std::size_t>(rc)};
}

// ==== 15 Chains =====================================================================================================

/// One limit of a chain (tatcell_link_t): a cell or the key of a table, its limit, and the cost in units of that limit.
/// It keeps pointers to what you give it, the bytes of the key included.
class link {
public:
    link(cell_ref c, kept<limit> l, std::uint64_t cost = 1) noexcept : link(*l.get(), cost) { raw_.cell = c.get(); }
    link(cell32_ref c, kept<limit32> l, std::uint64_t cost = 1) noexcept : link(*l.get(), cost) {
        raw_.cell32 = c.get();
    }
    link(kept<table> t, kept<table_limit> l, kept_key k TATCELL_LIFETIMEBOUND, std::uint64_t cost = 1) noexcept
        : link(*l.get(), cost) {
        raw_.table = t.get()->get(), raw_.key = k.data(), raw_.key_len = k.size();
    }
    link(kept<table> t, kept<table_limit> l, key_hash h, std::uint64_t cost = 1) noexcept : link(*l.get(), cost) {
        raw_.table = t.get()->get(), raw_.hash = h.value(), raw_.flags = TATCELL_LINK_HASH;
    }
    /// The override of a key, in a table of overrides. A ban refuses the chain. While the key is exempt, the chain
    /// passes and charges nothing. A ban by any link outweighs an exemption by another.
    static link overrides(kept<table> t, kept_key k TATCELL_LIFETIMEBOUND) noexcept {
        link made;
        made.raw_.table = t.get()->get(), made.raw_.key = k.data(), made.raw_.key_len = k.size();
        made.raw_.flags = TATCELL_LINK_OVERRIDES;
        return made;
    }
    static link overrides(kept<table> t, key_hash h) noexcept {
        link made;
        made.raw_.table = t.get()->get(), made.raw_.hash = h.value();
        made.raw_.flags = TATCELL_LINK_OVERRIDES | TATCELL_LINK_HASH;
        return made;
    }
    /// Units that are charged in addition once the chain has passed. A fresh random number from a small range keeps an
    /// aggregate from revealing how many requests of others it has counted.
    link &extra(std::uint64_t units) noexcept { return raw_.extra = units, *this; }
    /// Elastic room: units above the burst that this link may take, at most the max_room of its limit. They are given
    /// back with the rest if another link refuses. To reserve with room is err_option.
    link &room(std::uint64_t units) noexcept { return raw_.room = units, *this; }
    const tatcell_link_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    link() noexcept = default;
    link(const any_limit &l, std::uint64_t cost) noexcept { raw_.limit = l.get(), raw_.cost = cost; }
    tatcell_link_t raw_ TATCELL_LINK_INIT;
};
static_assert(sizeof(link) == sizeof(tatcell_link_t), "an array of one is an array of the other");

/// Up to 8 limits that one request must meet together (tatcell_chain_t): all are charged, or none. It keeps a pointer
/// to its links: an array, a std::array, a std::span or a std::vector of them. decision::policy is the index of the
/// link that refused, or of the tightest link, and decision::flags are those of that link; see tatcell_chain_check.
///
///     const tatcell::link links[] = {{per_second, five, 1}, {per_minute, hundred, 1}};
///     const auto answer = tatcell::chain(links).check(now);
///
/// Errors of every call: err_links (none, or more than 8), err_two_limits, err_cost, and those of each link.
class chain {
public:
    /// The most links of a chain.
    static constexpr std::size_t max = TATCELL_CHAIN_MAX;

    chain(const link *first, std::size_t count) noexcept {
        raw_.links = count == 0 ? nullptr : first->get();
        raw_.link_size = sizeof(link);
        raw_.count = detail::count_of<max>(count);
    }
    template <class Links, class = std::enable_if_t<detail::is_sequence_of<link, Links>>>
    chain(const Links &links TATCELL_LIFETIMEBOUND) noexcept : chain(std::data(links), std::size(links)) {}
    template <class Links, class = std::enable_if_t<detail::is_sequence_of<link, Links> && !is_view<Links>>>
    chain(const Links &&) = delete;
    template <std::size_t N>
    chain(const link (&&)[N]) = delete;

    /// One permit for each link: check and reserve fill them, and refund uses them. Null = not wanted.
    chain &permits(permit *each) noexcept { return raw_.permits = each, *this; }
    /// Gets the decision of each single link; null = not wanted.
    chain &decisions(decision *each) noexcept {
        return raw_.decisions = each, raw_.decision_size = sizeof(decision), *this;
    }
    /// This thread's counters; null = off.
    chain &counters(tatcell_counters_t *c) noexcept { return raw_.counters = c, *this; }
    /// One counters object for each link, which counts the link's own decision; null = off.
    chain &link_counters(tatcell_counters_t *each) noexcept { return raw_.link_counters = each, *this; }

    /// Charges all links if the request conforms to all, else none (tatcell_chain_check).
    decision check(instant now) const noexcept { return detail::decide(tatcell_chain_check, &raw_, now.count()); }
    /// Decides as check does, and returns only the verdict, of plain links alone (tatcell_chain_verdict). Error:
    /// err_not_plain.
    result verdict(instant now) const noexcept { return result(tatcell_chain_verdict(&raw_, now.count())); }
    /// Charges all links after the fact, whatever their limits say (tatcell_chain_charge). code::non_conforming: a key
    /// found its set full. Each link's decision says whether it is charged.
    decision charge(instant now) const noexcept { return detail::decide(tatcell_chain_charge, &raw_, now.count()); }
    /// Reports how check would decide, and charges nothing (tatcell_chain_peek). It fills the decisions, too.
    decision peek(instant now) const noexcept { return detail::decide(tatcell_chain_peek, &raw_, now.count()); }
    /// Reserves all links for the latest of their departures (tatcell_chain_reserve). Error: err_algorithm if a limit
    /// is not of GCRA.
    decision reserve(instant now) const noexcept { return detail::decide(tatcell_chain_reserve, &raw_, now.count()); }
    /// Gives back the parts of the charges that have not drained. Used permits become zero (tatcell_chain_refund).
    result refund(instant now) const noexcept { return result(tatcell_chain_refund(&raw_, now.count())); }

    /// The C structure, for anything that has no function here.
    tatcell_chain_t *get() noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    tatcell_chain_t raw_ TATCELL_CHAIN_INIT;
};
static_assert(sizeof(chain) == sizeof(tatcell_chain_t), "same layout");

/// The key of one link of a prepared chain (tatcell_chain_key_t); empty for a cell. It refers to the bytes of the key.
/// As for `kept`, a temporary does not compile, unless it is a view.
class chain_key {
    template <class K>
    static constexpr bool owns = !is_view<K> && !std::is_base_of_v<key, K> && !std::is_same_v<K, chain_key>;

public:
    constexpr chain_key() noexcept = default;
    /// The key of a link.
    constexpr chain_key(key k) noexcept : raw_{0, k.data(), k.size()} {}
    template <class K, std::enable_if_t<owns<K>, int> = 0>
    constexpr chain_key(const K &k TATCELL_LIFETIMEBOUND) noexcept : chain_key(key(k)) {}
    template <class K, std::enable_if_t<owns<K>, int> = 0>
    chain_key(const K &&) = delete;
    template <class K, std::enable_if_t<is_view<K>, int> = 0>
    constexpr chain_key(const K &k) noexcept : chain_key(key(k)) {}
    /// In a burst: the key of the first request, and the bytes from the key of one request to that of the next.
    constexpr chain_key(kept_key first, std::ptrdiff_t stride) noexcept : raw_{stride, first.data(), first.size()} {}
    constexpr const tatcell_chain_key_t *get() const noexcept { return &raw_; }

private:
    tatcell_chain_key_t raw_{};
};
static_assert(sizeof(chain_key) == sizeof(tatcell_chain_key_t), "same layout");

/// Up to 64 requests of a prepared chain at one instant (tatcell_chain_burst_t). It keeps pointers to what you give it,
/// and may be used again and again. prepared_chain::check decides it.
class chain_burst {
public:
    /// One key for each link, with its stride. With more than 64 requests, check returns err_count.
    chain_burst &keys(const chain_key *each, std::size_t count) noexcept {
        raw_.keys = each->get(), raw_.hashes = nullptr;
        return raw_.count = detail::count_of<TATCELL_BURST_MAX>(count), *this;
    }
    /// For each request a hash for each link, one request after the other.
    chain_burst &hashes(const std::uint64_t *each, std::size_t count) noexcept {
        raw_.keys = nullptr, raw_.hashes = each;
        return raw_.count = detail::count_of<TATCELL_BURST_MAX>(count), *this;
    }
    /// For each request the units of each link; null = one each.
    chain_burst &costs(const std::uint64_t *each) noexcept { return raw_.costs = each, *this; }
    /// Gets for each request the ticks until it would pass; null = not wanted.
    chain_burst &retry_after(std::uint64_t *each) noexcept { return raw_.retry_after = each, *this; }

    /// The number of requests.
    constexpr std::size_t size() const noexcept { return raw_.count; }
    /// After check: bit i is 1 if request i passes.
    constexpr std::uint64_t pass() const noexcept { return pass_; }
    /// After check: says whether request i, 0 to 63, passes.
    constexpr bool operator[](std::size_t i) const noexcept { return (pass_ >> (i & 63) & 1) != 0; }
    /// The C structure, for anything that has no function here.
    tatcell_chain_burst_t *get() noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    friend class prepared_chain;
    tatcell_chain_burst_t raw_ TATCELL_CHAIN_BURST_INIT;
    std::uint64_t pass_ = 0;
};

/// The links of a chain, checked once (tatcell_prepared_chain_t). The cells, tables and limits of its links stay where
/// they are as long as it is used; the links may go.
class prepared_chain {
public:
    /// Prepares the links of a chain without permits, decisions and counters (tatcell_prepared_chain_init). Keys and
    /// costs of the links are not read.
    result init(const chain &c) noexcept {
        return result(tatcell_prepared_chain_init(&raw_, const_cast<chain &>(c).get()));
    }
    /// Charges all links if the request conforms to all, else none (tatcell_prepared_chain_check). One key for each
    /// link; `costs`: one for each, null = one unit each.
    decision check(instant now, const chain_key *keys, const std::uint64_t *costs = nullptr) const noexcept {
        return detail::decide(tatcell_prepared_chain_check, &raw_, now.count(), keys->get(), costs);
    }
    /// Does the same for hashes (tatcell_prepared_chain_check_hash).
    decision check_hash(instant now, const std::uint64_t *hashes,
                        const std::uint64_t *costs = nullptr) const noexcept {
        return detail::decide(tatcell_prepared_chain_check_hash, &raw_, now.count(), hashes, costs);
    }
    /// The verdict alone, which is fastest: code::pass if all links are charged.
    result admit(instant now, const chain_key *keys, const std::uint64_t *costs = nullptr) const noexcept {
        return result(tatcell_prepared_chain_check(&raw_, now.count(), keys->get(), costs, nullptr));
    }
    /// Decides the requests of a burst in order (tatcell_prepared_chain_check_burst): chain_burst::pass has the
    /// verdicts.
    result check(instant now, chain_burst &b) const noexcept {
        b.raw_.now = now.count();
        return result(tatcell_prepared_chain_check_burst(&raw_, &b.raw_, &b.pass_));
    }
    /// The C structure, for anything that has no function here.
    tatcell_prepared_chain_t *get() noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    tatcell_prepared_chain_t raw_{};
};
static_assert(sizeof(prepared_chain) == sizeof(tatcell_prepared_chain_t), "same layout");

// ==== 16 Prefixes ===================================================================================================

struct canonical_address;
struct prefix_key;

/// Refers to the 4 or 16 bytes of an address in network order, for instance an in_addr, an in6_addr or an array.
class address {
public:
    constexpr address(const void *data, std::size_t size) noexcept : data_(data), size_(size) {}
    /// Anything of 4 or 16 bytes without padding: std::array<std::uint8_t, 16>, in_addr, in6_addr.
    template <class T, class = std::enable_if_t<detail::is_key<T> && (sizeof(T) == 4 || sizeof(T) == 16)>>
    constexpr address(const T &a TATCELL_LIFETIMEBOUND) noexcept : address(&a, sizeof a) {}
    constexpr const void *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    /// The canonical form, which the ladder calls use: an IPv4 address inside an IPv6 address becomes the IPv4 address
    /// (tatcell_address_canonical).
    inline outcome<canonical_address> canonical() const noexcept;
    /// It and the first `bits` of it, a network as people write it, in the canonical form (tatcell_address_network).
    inline outcome<canonical_address> network(std::uint32_t bits) const noexcept;
    /// The key of its prefix: `v4_bits` of IPv4, `v6_bits` of IPv6 (tatcell_address_prefix_key).
    inline outcome<prefix_key> prefix(std::uint32_t v4_bits, std::uint32_t v6_bits) const noexcept;

private:
    const void *data_;
    std::size_t size_;
};

/// The bytes of an address in its canonical form: the first `size` of them, 4 or 16.
struct canonical_address {
    std::array<std::uint8_t, 16> bytes{};
    std::size_t size = 0;
    std::uint32_t bits = 0;  ///< of address::network: how many of them count
    operator address() const noexcept TATCELL_LIFETIMEBOUND { return {bytes.data(), size}; }
};

inline outcome<canonical_address> address::canonical() const noexcept {
    canonical_address c;
    const std::int32_t rc = tatcell_address_canonical(data_, size_, c.bytes.data(), &c.size);
    return {rc, c};
}

inline outcome<canonical_address> address::network(std::uint32_t bits) const noexcept {
    canonical_address c;
    const std::int32_t rc = tatcell_address_network(data_, size_, bits, c.bytes.data(), &c.size, &c.bits);
    return {rc, c};
}

/// The key of a prefix: family, length, and the first bytes of the address; all its addresses have this key.
struct prefix_key {
    std::array<std::uint8_t, TATCELL_PREFIX_KEY_MAX> bytes{};
    std::size_t size = 0;
    operator key() const noexcept { return {bytes.data(), size}; }
};

inline outcome<prefix_key> address::prefix(std::uint32_t v4_bits, std::uint32_t v6_bits) const noexcept {
    prefix_key k;
    const std::int32_t rc = tatcell_address_prefix_key(data_, size_, v4_bits, v6_bits, k.bytes.data(), &k.size);
    return {rc, k};
}

/// Which prefixes of an address table::overridden_address asks (tatcell_prefix_lengths_t), in any order; the address
/// itself where nothing is said. It refers to the lengths that it is given.
class prefix_lengths {
public:
    constexpr prefix_lengths() noexcept = default;
    template <std::size_t N>
    constexpr prefix_lengths &v4(const std::uint8_t (&bits)[N]) & noexcept {
        return raw_.v4 = bits, raw_.v4_count = static_cast<std::uint32_t>(N), *this;
    }
    template <std::size_t N>
    constexpr prefix_lengths &v6(const std::uint8_t (&bits)[N]) & noexcept {
        return raw_.v6 = bits, raw_.v6_count = static_cast<std::uint32_t>(N), *this;
    }
    // A temporary stays one, so that ladder_burst::overrides refuses it.
    template <std::size_t N>
    constexpr prefix_lengths v4(const std::uint8_t (&bits)[N]) && noexcept {
        return v4(bits);
    }
    template <std::size_t N>
    constexpr prefix_lengths v6(const std::uint8_t (&bits)[N]) && noexcept {
        return v6(bits);
    }
    template <std::size_t N>
    void v4(const std::uint8_t (&&)[N]) const & = delete;
    void v4(std::initializer_list<std::uint8_t>) const & = delete;
    template <std::size_t N>
    void v6(const std::uint8_t (&&)[N]) const & = delete;
    void v6(std::initializer_list<std::uint8_t>) const & = delete;
    constexpr const tatcell_prefix_lengths_t *get() const noexcept { return &raw_; }

private:
    tatcell_prefix_lengths_t raw_ TATCELL_PREFIX_LENGTHS_INIT;
};

inline result table::ban_address(instant now, address a, std::uint32_t v4_bits, std::uint32_t v6_bits,
                                 instant until) const noexcept {
    return result(tatcell_table_ban_address(&raw_, now.count(), a.data(), a.size(), v4_bits, v6_bits, until.count()));
}
inline result table::exempt_address(instant now, address a, std::uint32_t v4_bits, std::uint32_t v6_bits,
                                    instant until) const noexcept {
    const auto f = tatcell_table_exempt_address;
    return result(f(&raw_, now.count(), a.data(), a.size(), v4_bits, v6_bits, until.count()));
}
inline result table::lift_address(instant now, address a, std::uint32_t v4_bits,
                                  std::uint32_t v6_bits) const noexcept {
    return result(tatcell_table_lift_address(&raw_, now.count(), a.data(), a.size(), v4_bits, v6_bits));
}
inline outcome<override_state> table::overridden_address(instant now, address a,
                                                         const prefix_lengths &asked) const noexcept {
    std::uint32_t kind = TATCELL_OVERRIDE_NONE, bits = 0;
    std::uint64_t left = 0;
    const std::int32_t c = tatcell_table_overridden_address(&raw_, now.count(), a.data(), a.size(), asked.get(),
                                                            &kind, &left, &bits);
    return {c, override_state{static_cast<override_kind>(kind), ticks(left), bits}};
}
inline outcome<key_hash> table::prefix_hash(address a, std::uint32_t v4_bits, std::uint32_t v6_bits) const noexcept {
    std::uint64_t h = 0;
    const std::int32_t c = tatcell_address_prefix_hash(&raw_, a.data(), a.size(), v4_bits, v6_bits, &h);
    return {c, key_hash(h)};
}

/// Which prefixes of an address have a limit (tatcell_ladder_spec_t), the longest first; the defaults where nothing is
/// said. It refers to the rungs that it is given.
class ladder_spec {
public:
    constexpr ladder_spec() noexcept = default;
    constexpr ladder_spec(const ladder_spec &other) noexcept { *this = other; }
    constexpr ladder_spec &operator=(const ladder_spec &other) noexcept {
        const tatcell_ladder_spec_t from = other.raw_;  // it may be this object
        return copy(v4_, raw_.v4, raw_.v4_count, other.v4_, from.v4_count),
               copy(v6_, raw_.v6, raw_.v6_count, other.v6_, from.v6_count), *this;
    }
    template <std::size_t N>
    constexpr ladder_spec &v4(const tatcell_rung_t (&rungs)[N]) noexcept {
        return copy(v4_, raw_.v4, raw_.v4_count, rungs, N), *this;
    }
    template <std::size_t N>
    constexpr ladder_spec &v6(const tatcell_rung_t (&rungs)[N]) noexcept {
        return copy(v6_, raw_.v6, raw_.v6_count, rungs, N), *this;
    }
    constexpr const tatcell_ladder_spec_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

    /// The options of a table that can hold this ladder over a limit of one address (tatcell_ladder_table_specs).
    outcome<table_options> options(const limit_spec &one) const noexcept {
        tatcell_limit_spec_t fastest = TATCELL_LIMIT_SPEC_INIT, slowest = TATCELL_LIMIT_SPEC_INIT;
        const std::int32_t c = tatcell_ladder_table_specs(one.get(), &raw_, &fastest, &slowest);
        if (c != TATCELL_PASS) return {c, table_options(one)};
        return {c, table_options(limit_spec(fastest)).slowest(limit_spec(slowest))};
    }

private:
    static constexpr std::size_t max = 8;  // more rungs are err_ladder
    static constexpr void copy(tatcell_rung_t (&to)[max], const tatcell_rung_t *&at, std::uint32_t &count,
                               const tatcell_rung_t *from, std::size_t n) noexcept {
        for (std::size_t i = 0; i < n && i < max; i++) to[i] = from[i];
        count = detail::count_of<max>(n);
        at = n == 0 ? nullptr : to;
    }
    tatcell_ladder_spec_t raw_ TATCELL_LADDER_SPEC_INIT;
    tatcell_rung_t v4_[max]{}, v6_[max]{};
};

/// Up to 64 requests of addresses at one instant (tatcell_ladder_burst_t), with elastic room, and overrides that are
/// asked before the limits. One address is a burst, too. It keeps pointers to what you give it, and may be used again
/// and again. ladder::check decides it.
///
///     tatcell::ladder_burst one;
///     one.addresses(&client, 1).overrides(bans, lengths).decisions(&decision);
///     if (ladder.check(table, now, one) && !one[0]) refuse(decision);
class ladder_burst {
public:
    /// Addresses of one type, one after the other: 4 or 16 bytes each. With more than 64, check returns err_count.
    template <class T, class = std::enable_if_t<detail::is_key<T> && (sizeof(T) == 4 || sizeof(T) == 16)>>
    ladder_burst &addresses(const T *first, std::size_t count) noexcept {
        raw_.addresses = first, raw_.stride = sizeof(T), raw_.address_len = sizeof(T);
        raw_.address_pointers = nullptr, raw_.address_lens = nullptr;
        return raw_.count = detail::count_of<TATCELL_BURST_MAX>(count), *this;
    }
    template <class T, std::size_t N>
    ladder_burst &addresses(const T (&all)[N]) noexcept {
        return addresses(all, N);
    }
    template <class T, std::size_t N>
    ladder_burst &addresses(const T (&&)[N]) = delete;
    template <class T>
    ladder_burst &addresses(std::initializer_list<T>) = delete;
    /// A pointer to each address, and the bytes of each, 4 or 16.
    ladder_burst &addresses(const void *const *each, const std::size_t *lengths, std::size_t count) noexcept {
        raw_.addresses = nullptr, raw_.address_pointers = each, raw_.address_lens = lengths;
        return raw_.count = detail::count_of<TATCELL_BURST_MAX>(count), *this;
    }
    /// The units of each request; null = one each.
    ladder_burst &costs(const std::uint32_t *each) noexcept { return raw_.costs = each, *this; }
    /// The elastic room of each request, in units of one address; null = none.
    ladder_burst &rooms(const std::uint32_t *each) noexcept { return raw_.rooms = each, *this; }
    /// A table of overrides, and the lengths that are asked in it.
    ladder_burst &overrides(kept<table> t, const prefix_lengths &asked TATCELL_LIFETIMEBOUND) noexcept {
        return raw_.overrides = t.get()->get(), raw_.lengths = asked.get(), *this;
    }
    ladder_burst &overrides(kept<table> t, const prefix_lengths &&asked) = delete;
    /// Gets the decision of each request; null = not wanted.
    ladder_burst &decisions(decision *each) noexcept {
        return raw_.decisions = each, raw_.decision_size = sizeof(decision), *this;
    }
    /// chain::max permits for each request, for ladder::refund; null = not wanted.
    ladder_burst &permits(permit *each) noexcept { return raw_.permits = each, *this; }
    /// This thread's counters; null = off.
    ladder_burst &counters(tatcell_counters_t *c) noexcept { return raw_.counters = c, *this; }
    /// chain::max counters of this thread, one for each tier; null = off.
    ladder_burst &tier_counters(tatcell_counters_t *each) noexcept { return raw_.tier_counters = each, *this; }

    /// The number of requests.
    constexpr std::size_t size() const noexcept { return raw_.count; }
    /// After check: bit i is 1 if request i passes.
    constexpr std::uint64_t pass() const noexcept { return pass_; }
    /// After check: says whether request i, 0 to 63, passes.
    constexpr bool operator[](std::size_t i) const noexcept { return (pass_ >> (i & 63) & 1) != 0; }
    /// The C structure, for anything that has no function here.
    tatcell_ladder_burst_t *get() noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    friend class ladder;
    tatcell_ladder_burst_t raw_ TATCELL_LADDER_BURST_INIT;
    std::uint64_t pass_ = 0;
};

/// The limits of all tiers of a ladder, for one table (tatcell_ladder_t). One call checks all prefixes of an address.
///
/// Every call may return err_address for a size other than 4 or 16, err_handle, err_foreign, err_hash.
class ladder {
public:
    /// `one`: the limit of one address (tatcell_ladder_init). Errors: err_ladder, err_too_fast, and those of a limit.
    result init(const table &t, const limit_spec &one, const ladder_spec &rungs = {}) noexcept {
        return result(tatcell_ladder_init(&raw_, t.get(), one.get(), rungs.get()));
    }
    /// Charges all prefixes of an address, or none (tatcell_ladder_check). `permits`: chain::max of them, or null.
    decision check(const table &t, instant now, address a, std::uint64_t cost = 1, permit *permits = nullptr,
                   tatcell_counters_t *counters = nullptr) const noexcept {
        decision d;
        d.verdict = tatcell_ladder_check(&raw_, t.get(), now.count(), a.data(), a.size(), cost, &d, permits, counters);
        return d;
    }
    /// Decides as check does, and returns only the verdict, of plain limits alone (tatcell_ladder_verdict). Error:
    /// err_not_plain.
    result verdict(const table &t, instant now, address a, std::uint64_t cost = 1) const noexcept {
        const auto f = tatcell_ladder_verdict;
        return result(f(&raw_, t.get(), nullptr, nullptr, now.count(), a.data(), a.size(), cost));
    }
    /// Does the same behind a table of overrides: a banned address is refused and an exempt one passes.
    result verdict(const table &t, const table &overrides, const prefix_lengths &asked, instant now, address a,
                   std::uint64_t cost = 1) const noexcept {
        const auto f = tatcell_ladder_verdict;
        return result(f(&raw_, t.get(), overrides.get(), asked.get(), now.count(), a.data(), a.size(), cost));
    }
    /// Decides the requests of a burst in order (tatcell_ladder_check_burst): ladder_burst::pass has the verdicts. A
    /// banned address is refused and an exempt one passes, and neither is charged.
    result check(const table &t, instant now, ladder_burst &b) const noexcept {
        b.raw_.now = now.count();
        return result(tatcell_ladder_check_burst(&raw_, t.get(), &b.raw_, &b.pass_));
    }
    /// Charges the requests of a burst after the fact (tatcell_ladder_charge_burst). A bit of ladder_burst::pass is 0
    /// only if a tier of that address was not charged: contended, or refused by a full set.
    result charge(const table &t, instant now, ladder_burst &b) const noexcept {
        b.raw_.now = now.count();
        return result(tatcell_ladder_charge_burst(&raw_, t.get(), &b.raw_, &b.pass_));
    }
    /// Reports how check would decide, and charges nothing (tatcell_ladder_peek).
    decision peek(const table &t, instant now, address a, std::uint64_t cost = 1) const noexcept {
        const auto f = tatcell_ladder_peek;
        return detail::decide(f, &raw_, t.get(), now.count(), a.data(), a.size(), cost);
    }
    /// Gives back the parts of the charges that have not drained (tatcell_ladder_refund).
    result refund(const table &t, instant now, address a, permit *permits) const noexcept {
        return result(tatcell_ladder_refund(&raw_, t.get(), now.count(), a.data(), a.size(), permits));
    }
    /// The tier with the number decision::policy; code::end if there is none (tatcell_ladder_rung).
    outcome<tatcell_rung_t> rung(address a, std::uint32_t policy) const noexcept {
        return detail::fill(tatcell_rung_t{}, tatcell_ladder_rung, &raw_, a.data(), a.size(), policy);
    }
    const tatcell_ladder_t *get() const noexcept TATCELL_LIFETIMEBOUND { return &raw_; }

private:
    tatcell_ladder_t raw_{};
};
static_assert(sizeof(ladder) == TATCELL_LADDER_SIZE && alignof(ladder) == TATCELL_LADDER_ALIGN, "same layout");

// ==== 17 Shapers ====================================================================================================

/// Memory of a shaper with this many slots (a power of two from 64 to 4096) and handles, for static storage.
template <std::uint32_t Slots, std::uint32_t Handles>
struct shaper_memory {
    static_assert(Slots >= 64 && Slots <= 4096 && (Slots & (Slots - 1)) == 0, "a power of two from 64 to 4096");
    std::uint64_t words[TATCELL_SHAPER_BYTES(Slots, Handles) / 8];
};

/// A request that waits in a shaper: the fields of tatcell_waiting_t, and typed functions to read them.
struct waiting : tatcell_waiting_t {
    constexpr waiting() noexcept : tatcell_waiting_t{} {}
    constexpr waiting(std::uint64_t of, instant departs, std::uint32_t at_level = 0) noexcept
        : tatcell_waiting_t{of, departs.count(), at_level, 0} {}
    /// The earliest instant at which it may leave.
    constexpr instant departs_at() const noexcept { return instant(departure); }
};
static_assert(sizeof(waiting) == TATCELL_WAITING_SIZE, "an array of one is an array of the other");

/// Flows that leave in the order in which they became eligible (tatcell_group_t, IEEE 802.1Qcr). It cannot be copied,
/// because other threads may be writing it.
class group {
public:
    constexpr group() noexcept = default;
    group(const group &) = delete;
    group &operator=(const group &) = delete;

    /// Reserves, but never earlier than the group's last departure (tatcell_group_reserve).
    decision reserve(instant now, const link &l) noexcept {
        return detail::decide(tatcell_group_reserve, &raw_, now.count(), l.get());
    }
    /// The C structure: its word is the latest departure of the group.
    tatcell_group_t *get() noexcept { return &raw_; }

private:
    tatcell_group_t raw_{};
};
static_assert(sizeof(group) == TATCELL_GROUP_SIZE, "same layout");

/// Requests that wait for their departure instead of being refused (tatcell_shaper_t): a timing wheel of your handles
/// in your memory, over any number of cells and keys. It has one owner at a time and cannot be copied.
///
/// Every call may return err_handle if the shaper was not initialised.
class shaper {
public:
    shaper() noexcept = default;
    shaper(const shaper &) = delete;
    shaper &operator=(const shaper &) = delete;

    /// Bytes of memory for this many slots and handles (tatcell_shaper_bytes).
    static std::size_t bytes(std::uint32_t slots, std::uint32_t handles) noexcept {
        return tatcell_shaper_bytes(slots, handles);
    }
    /// A slot has `granularity` ticks, a power of two; a request may leave that much too late (tatcell_shaper_init).
    /// The shaper uses the memory from now on. Errors: err_wheel, err_too_small, err_too_large, err_overlap, err_align.
    template <std::uint32_t Slots, std::uint32_t Handles>
    result init(shaper_memory<Slots, Handles> &memory, ticks granularity, instant now) noexcept {
        return init(memory.words, sizeof memory.words, Slots, granularity, now);
    }
    result init(void *memory, std::size_t size, std::uint32_t slots, ticks granularity, instant now) noexcept {
        return result(tatcell_shaper_init(&raw_, memory, size, slots, granularity.count(), now.count()));
    }
    /// Reserves, and keeps the handle until departs_at() (tatcell_shaper_submit). Errors: err_full, err_too_far if the
    /// limit's max_delay is beyond the wheel's horizon, err_behind if you must release first, err_algorithm, and those
    /// of the link.
    decision submit(instant now, const link &l, std::uint64_t handle) noexcept {
        return detail::decide(tatcell_shaper_submit, &raw_, now.count(), l.get(),
                              static_cast<tatcell_group_t *>(nullptr), handle);
    }
    /// As submit, for a flow of a group.
    decision submit(instant now, const link &l, group &g, std::uint64_t handle) noexcept {
        return detail::decide(tatcell_shaper_submit, &raw_, now.count(), l.get(), g.get(), handle);
    }
    /// As submit, for the latest departure of all limits of a chain (tatcell_shaper_submit_chain).
    decision submit(instant now, chain &c, std::uint64_t handle) noexcept {
        const tatcell_chain_t *links = c.get();
        return detail::decide(tatcell_shaper_submit_chain, &raw_, now.count(), links, handle);
    }
    /// Reserves a request that came out under the limit of the next level (tatcell_shaper_forward).
    decision forward(instant now, const waiting &due, const link &l) noexcept {
        const tatcell_waiting_t *raw = &due;
        return detail::decide(tatcell_shaper_forward, &raw_, now.count(), raw, l.get());
    }
    /// Keeps a handle whose departure another call decided (tatcell_shaper_insert).
    result insert(instant now, const waiting &w) noexcept {
        return result(tatcell_shaper_insert(&raw_, now.count(), &w));
    }
    /// Takes out up to `most` requests that are due, and gives their number (tatcell_shaper_release).
    outcome<std::uint32_t> release(instant now, waiting *due, std::uint32_t most) noexcept {
        tatcell_waiting_t *raw = due;
        return detail::fill(std::uint32_t{0}, tatcell_shaper_release, &raw_, now.count(), raw, most);
    }
    template <std::uint32_t N>
    outcome<std::uint32_t> release(instant now, waiting (&due)[N]) noexcept {
        return release(now, due, N);
    }
    /// Takes out the first request, even if it is not due; code::end if nothing waits (tatcell_shaper_take).
    outcome<waiting> take() noexcept {
        waiting w;
        const std::int32_t c = tatcell_shaper_take(&raw_, &w);
        return {c, w};
    }
    /// The next instant at which a request is due; code::end if nothing waits (tatcell_shaper_next).
    outcome<instant> next() noexcept {
        std::uint64_t departure = 0;
        const std::int32_t c = tatcell_shaper_next(&raw_, &departure);
        return {c, instant(departure)};
    }
    /// The numbers of the shaper (tatcell_shaper_info).
    outcome<tatcell_shaper_info_t> info() noexcept {
        return detail::fill(tatcell_shaper_info_t TATCELL_SHAPER_INFO_INIT, tatcell_shaper_info, &raw_);
    }

private:
    tatcell_shaper_t raw_{};
};
static_assert(sizeof(shaper) == TATCELL_SHAPER_SIZE, "same layout");

/// A leaky bucket as a queue (tatcell_leaky_queue_t): one flow and the handles of its payloads, first in, first out. It
/// has one owner at a time and cannot be copied.
///
/// Every call may return err_handle if the queue was not initialised.
class leaky_queue {
public:
    leaky_queue() noexcept = default;
    leaky_queue(const leaky_queue &) = delete;
    leaky_queue &operator=(const leaky_queue &) = delete;

    /// Bytes of memory for this many payloads (tatcell_leaky_queue_bytes).
    static std::size_t bytes(std::uint32_t payloads) noexcept { return tatcell_leaky_queue_bytes(payloads); }
    /// N payloads need 2 * N words. The queue uses them from now on (tatcell_leaky_queue_init). Errors: err_algorithm,
    /// err_too_small, err_overlap.
    template <std::size_t Words>
    result init(std::uint64_t (&memory)[Words], const limit &l, instant now) noexcept {
        return init(memory, sizeof memory, l, now);
    }
    result init(void *memory, std::size_t size, const limit &l, instant now) noexcept {
        return result(tatcell_leaky_queue_init(&raw_, memory, size, l.get(), now.count()));
    }
    /// Queues a payload, and gives the instant at which pop returns it (tatcell_leaky_queue_push). err_full if the
    /// memory is full.
    outcome<instant> push(instant now, std::uint64_t handle, std::uint64_t cost = 1) noexcept {
        std::uint64_t departure = 0;
        const std::int32_t c =
            tatcell_leaky_queue_push(&raw_, now.count(), cost, handle, &departure, nullptr);
        return {c, instant(departure)};
    }
    /// Takes out the first payload if it is due; else code::end (tatcell_leaky_queue_pop).
    outcome<std::uint64_t> pop(instant now) noexcept {
        return detail::fill(std::uint64_t{0}, tatcell_leaky_queue_pop, &raw_, now.count());
    }
    /// Takes out the first payload, even if it is not due; code::end if nothing waits (tatcell_leaky_queue_take).
    outcome<std::uint64_t> take() noexcept { return detail::fill(std::uint64_t{0}, tatcell_leaky_queue_take, &raw_); }
    /// The next instant at which a payload is due; code::end if nothing waits (tatcell_leaky_queue_next).
    outcome<instant> next() noexcept {
        std::uint64_t departure = 0;
        const std::int32_t c = tatcell_leaky_queue_next(&raw_, &departure);
        return {c, instant(departure)};
    }
    /// The number of payloads that wait (tatcell_leaky_queue_count).
    outcome<std::size_t> size() noexcept {
        std::size_t count = 0;
        const std::int32_t c = tatcell_leaky_queue_count(&raw_, &count, nullptr);
        return {c, count};
    }

private:
    tatcell_leaky_queue_t raw_{};
};
static_assert(sizeof(leaky_queue) == TATCELL_LEAKY_QUEUE_SIZE, "same layout");

}  // namespace tatcell

#endif  // C++17
#endif  // TATCELL_HPP
