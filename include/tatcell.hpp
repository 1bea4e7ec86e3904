// tatcell.hpp - C++17 views of tatcell.h: rate limiting without heap, lock, clock or exceptions.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
//   #include <tatcell.hpp>
//   using namespace std::chrono_literals;
//
//   tatcell::limit limit;
//   if (auto rc = limit.init(10, 1s, 20); !rc) return complain(rc.text());    // 10 a second, 20 at once
//   static tatcell::cell cell;                                                // zeroed storage is a fresh cell
//   if (auto answer = cell.check(limit, std::chrono::steady_clock::now()); answer)
//       serve();
//   else
//       retry_in(answer.retry_after);                                         // tatcell::never if it never passes
//
// MODEL    That of tatcell.h, which is the reference for every call here; each is one inline call of a C function.
// TIME     A `now` is any std::chrono time point, counted in nanoseconds since its epoch, or tatcell::instant(ticks)
//          for another clock. Durations are nanoseconds; with other ticks use .count().
// STORAGE  Yours. A cell is its 8 (or 4) bytes; cell_ref and cell32_ref view bytes that lie elsewhere. A table views
//          memory that you give it: nothing is owned, nothing is freed.
// ERRORS   No exceptions, no RTTI. A result is true iff it passes; failed() tells a caller error from a verdict. What a
//          default-made limit or table is asked before init is a caller error, not undefined.
// THREADS  As the C functions: cells, limits and shared tables may be used by any number of threads at once.
#ifndef TATCELL_HPP
#define TATCELL_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif

#include "tatcell.h"

namespace tatcell {

// ---- Codes ----
/// Every status and error of the C ABI; tatcell.h says what each means.
enum class code : std::int32_t {
    pass = TATCELL_PASS, non_conforming = TATCELL_NON_CONFORMING, never = TATCELL_NEVER, contended = TATCELL_CONTENDED,
    err_null = TATCELL_ERR_NULL, err_align = TATCELL_ERR_ALIGN, err_size = TATCELL_ERR_SIZE,
    err_rate = TATCELL_ERR_RATE, err_period = TATCELL_ERR_PERIOD, err_burst = TATCELL_ERR_BURST,
    err_represent = TATCELL_ERR_REPRESENT, err_horizon = TATCELL_ERR_HORIZON, err_limit = TATCELL_ERR_LIMIT,
    err_foreign = TATCELL_ERR_FOREIGN, err_option = TATCELL_ERR_OPTION, err_seed = TATCELL_ERR_SEED,
    err_memory = TATCELL_ERR_MEMORY, err_span = TATCELL_ERR_SPAN, err_handle = TATCELL_ERR_HANDLE,
    err_not_ready = TATCELL_ERR_NOT_READY, err_version = TATCELL_ERR_VERSION, err_geometry = TATCELL_ERR_GEOMETRY,
    err_wrong_seed = TATCELL_ERR_WRONG_SEED, err_mode = TATCELL_ERR_MODE, err_hash = TATCELL_ERR_HASH,
    err_count = TATCELL_ERR_COUNT, err_soft = TATCELL_ERR_SOFT,
};

/// What a call returned: true iff it passes, or was done. Four bytes, no more than the C code.
class [[nodiscard]] result {
public:
    constexpr result(std::int32_t c) noexcept : code_(static_cast<code>(c)) {}
    constexpr explicit operator bool() const noexcept { return code_ == code::pass; }
    /// A caller error: nothing was changed.
    constexpr bool failed() const noexcept { return static_cast<std::int32_t>(code_) < 0; }
    constexpr code value() const noexcept { return code_; }
    /// Static text, never null.
    const char *text() const noexcept { return tatcell_strerror(static_cast<std::int32_t>(code_)); }
    friend constexpr bool operator==(result a, code b) noexcept { return a.code_ == b; }
    friend constexpr bool operator!=(result a, code b) noexcept { return a.code_ != b; }
private:
    code code_;
};

// ---- Time ----
/// Nanoseconds as the library counts them: 64 bits, no sign.
using duration = std::chrono::duration<std::uint64_t, std::nano>;
/// The retry time of what can never pass.
inline constexpr duration never = duration(UINT64_MAX);

/// Nanoseconds of any duration; negative ones count as none.
template <class Rep, class Period>
constexpr std::uint64_t ticks(std::chrono::duration<Rep, Period> d) noexcept {
    return d.count() <= 0 ? 0 : std::chrono::duration_cast<duration>(d).count();
}

/// A reading of the caller's clock. Time points convert by themselves, other tick counts are spelled out.
class instant {
public:
    constexpr explicit instant(std::uint64_t ticks) noexcept : ticks_(ticks) {}
    template <class Clock, class Duration>
    constexpr instant(std::chrono::time_point<Clock, Duration> t) noexcept
        : ticks_(static_cast<std::uint64_t>(
              std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count())) {}
    constexpr std::uint64_t count() const noexcept { return ticks_; }
private:
    std::uint64_t ticks_;
};

// ---- Answers ----
/// The short answer.
struct [[nodiscard]] answer : result {
    /// 0 when it passes, `never` when it never does.
    duration retry_after;
    constexpr answer(std::int32_t c, std::uint64_t retry) noexcept : result(c), retry_after(retry) {}
};

/// The full answer; its fields are those of tatcell_decision_t.
struct [[nodiscard]] decision : tatcell_decision_t {
    constexpr decision() noexcept : tatcell_decision_t(TATCELL_DECISION_INIT) {}
    /// The verdict, or the error of the call.
    constexpr result status() const noexcept { return verdict; }
    constexpr explicit operator bool() const noexcept { return verdict == TATCELL_PASS; }
    constexpr bool soft() const noexcept { return (flags & TATCELL_FLAG_SOFT) != 0; }
    constexpr bool shadow() const noexcept { return (flags & TATCELL_FLAG_SHADOW) != 0; }
    constexpr bool elastic() const noexcept { return (flags & TATCELL_FLAG_ELASTIC) != 0; }
    constexpr duration retry_in() const noexcept { return duration(retry_after); }
    constexpr duration next_unit_in() const noexcept { return duration(next_unit); }
    constexpr duration reset_in() const noexcept { return duration(reset_after); }
};

using permit = tatcell_permit_t;

/// When a request may leave, and the permit to give it back.
struct [[nodiscard]] reservation : result {
    /// Tick of departure; when refused, ticks until the same request would be accepted.
    std::uint64_t departure;
    permit proof;
    constexpr reservation(std::int32_t c, std::uint64_t at, permit p) noexcept : result(c), departure(at), proof(p) {}
};

// ---- Limits ----
/// A limit with all its options: set the fields of tatcell_limit_spec_t by name, times with tatcell::ticks(20ms).
struct spec : tatcell_limit_spec_t {
    constexpr spec() noexcept : tatcell_limit_spec_t(TATCELL_LIMIT_SPEC_INIT) {}
    template <class Rep, class Period>
    constexpr spec(std::uint64_t units_, std::chrono::duration<Rep, Period> per, std::uint64_t burst_) noexcept
        : spec() {
        units = units_;
        period = ticks(per);
        burst = burst_;
    }
};

/// What a cell keeps when its limit changes.
enum class change : std::uint32_t {
    keep_time = TATCELL_CHANGE_KEEP_TIME, keep_tokens = TATCELL_CHANGE_KEEP_TOKENS, reset = TATCELL_CHANGE_RESET,
};

namespace detail {

/// The 64-bit or the 32-bit function of a pair.
template <class Raw, class Wide, class Narrow>
constexpr auto pick([[maybe_unused]] Wide wide, [[maybe_unused]] Narrow narrow) noexcept {
    if constexpr (std::is_same_v<Raw, tatcell_cell_t>) return wide;
    else return narrow;
}

/// Calls of C functions whose last arguments are results.
template <class F, class... Args>
answer ask(F f, Args... args) noexcept {
    std::uint64_t retry = 0;
    const std::int32_t c = f(args..., &retry);
    return {c, retry};
}
template <class F, class... Args>
decision decide(F f, Args... args) noexcept {
    decision d;
    d.verdict = f(args..., &d);  // the same, unless it is an error
    return d;
}

}  // namespace detail

/// A validated limit for one kind of cell, so that the wrong kind does not compile.
template <class Raw>
class basic_limit {
public:
    template <class Rep, class Period>
    result init(std::uint64_t units, std::chrono::duration<Rep, Period> per, std::uint64_t burst) noexcept {
        return init(spec(units, per, burst));
    }
    result init(const tatcell_limit_spec_t &s) noexcept {
        return detail::pick<Raw>(tatcell_limit_init_spec, tatcell_limit_init_spec32)(&raw_, &s);
    }
    const tatcell_limit_t *get() const noexcept { return &raw_; }
private:
    tatcell_limit_t raw_{};
};
using limit = basic_limit<tatcell_cell_t>;
using limit32 = basic_limit<tatcell_cell32_t>;

/// A limit of one table; made by table::limit.
class table_limit {
public:
    const tatcell_limit_t *get() const noexcept { return &raw_; }
private:
    friend class table;
    tatcell_limit_t raw_{};
};

// ---- Cells ----
/// A view of a cell that lies elsewhere: in a connection, an array, shared memory. Copy it as a pointer.
template <class Raw>
class basic_cell_ref {
public:
    using limit_type = basic_limit<Raw>;
    constexpr basic_cell_ref(Raw &raw) noexcept : raw_(&raw) {}

    /// Decides and charges.
    answer check(const limit_type &l, instant now, std::uint32_t cost = 1) const noexcept {
        return detail::ask(pick(tatcell_cell_check, tatcell_cell32_check), raw_, l.get(), now.count(), cost);
    }
    /// As check, with the full answer and elastic room.
    decision check_ex(const limit_type &l, instant now, std::uint32_t cost = 1, std::uint64_t room = 0) const noexcept {
        const auto f = pick(tatcell_cell_check_ex, tatcell_cell32_check_ex);
        return detail::decide(f, raw_, l.get(), now.count(), cost, room);
    }
    decision peek(const limit_type &l, instant now, std::uint32_t cost = 1) const noexcept {
        return detail::decide(pick(tatcell_cell_peek, tatcell_cell32_peek), raw_, l.get(), now.count(), cost);
    }
    decision charge(const limit_type &l, instant now, std::uint32_t cost) const noexcept {
        return detail::decide(pick(tatcell_cell_charge, tatcell_cell32_charge), raw_, l.get(), now.count(), cost);
    }
    reservation reserve(const limit_type &l, instant now, std::uint32_t cost = 1) const noexcept {
        std::uint64_t at = 0;
        permit p{};
        const auto f = pick(tatcell_cell_reserve, tatcell_cell32_reserve);
        const std::int32_t c = f(raw_, l.get(), now.count(), cost, &at, &p);
        return {c, at, p};
    }
    result refund(const limit_type &l, instant now, const permit &p) const noexcept {
        return pick(tatcell_cell_refund, tatcell_cell32_refund)(raw_, l.get(), now.count(), &p, nullptr);
    }
    result change_limit(const limit_type &from, const limit_type &to, instant now, change how) const noexcept {
        const auto f = pick(tatcell_cell_change, tatcell_cell32_change);
        return f(raw_, from.get(), to.get(), now.count(), static_cast<std::uint32_t>(how));
    }
    result reset() const noexcept { return pick(tatcell_cell_reset, tatcell_cell32_reset)(raw_); }
private:
    template <class W, class N>
    static constexpr auto pick(W wide, N narrow) noexcept { return detail::pick<Raw>(wide, narrow); }
    Raw *raw_;
};
using cell_ref = basic_cell_ref<tatcell_cell_t>;
using cell32_ref = basic_cell_ref<tatcell_cell32_t>;

/// A cell with its own storage, of no more bytes than its word; not copyable, since other threads may be writing it.
template <class Raw>
class basic_cell {
public:
    constexpr basic_cell() noexcept = default;
    basic_cell(const basic_cell &) = delete;
    basic_cell &operator=(const basic_cell &) = delete;
    /// The other operations: cell.ref().peek(...).
    basic_cell_ref<Raw> ref() noexcept { return raw_; }
    operator basic_cell_ref<Raw>() noexcept { return raw_; }
    answer check(const basic_limit<Raw> &l, instant now, std::uint32_t cost = 1) noexcept {
        return ref().check(l, now, cost);
    }
private:
    Raw raw_{};
};
using cell = basic_cell<tatcell_cell_t>;
using cell32 = basic_cell<tatcell_cell32_t>;

static_assert(sizeof(cell) == TATCELL_CELL_SIZE && alignof(cell) == TATCELL_CELL_ALIGN, "a cell is its word");
static_assert(sizeof(cell32) == TATCELL_CELL32_SIZE && alignof(cell32) == TATCELL_CELL32_ALIGN, "a cell is its word");
static_assert(sizeof(decision) == sizeof(tatcell_decision_t), "same layout");
static_assert(sizeof(spec) == sizeof(tatcell_limit_spec_t), "same layout");
static_assert(sizeof(limit) == TATCELL_LIMIT_SIZE && sizeof(result) == sizeof(std::int32_t), "same layout");

// ---- Tables ----
/// Bytes that identify a client: text, the elements of an array or container, or an object without padding. What has
/// padding, or is a pointer, does not compile: it would make new keys of equal ones.
class key {
public:
    constexpr key(const void *data, std::size_t size) noexcept : data_(data ? data : ""), size_(size) {}
    template <class T, class = std::enable_if_t<!std::is_same_v<T, key>>>
    constexpr key(const T &k) noexcept : key(of(k)) {}
    constexpr const void *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
private:
    template <class T, class = void>
    struct is_sequence : std::false_type {};
    template <class T>
    struct is_sequence<T, std::void_t<decltype(std::data(std::declval<const T &>())),
                                      decltype(std::size(std::declval<const T &>()))>> : std::true_type {};
    template <class T>
    static constexpr key of(const T &k) noexcept {
        if constexpr (std::is_convertible_v<const T &, std::string_view>) {
            const std::string_view text = k;
            return {text.data(), text.size()};
        } else if constexpr (is_sequence<T>::value) {
            using E = std::remove_reference_t<decltype(*std::data(k))>;
            static_assert(std::has_unique_object_representations_v<E> && !std::is_pointer_v<E>, "every bit must count");
            return {std::data(k), std::size(k) * sizeof(E)};
        } else {
            static_assert(std::has_unique_object_representations_v<T> && !std::is_pointer_v<T>, "every bit must count");
            return {&k, sizeof k};
        }
    }

    const void *data_;
    std::size_t size_;
};

/// Options of a table; set the fields of tatcell_table_options_t by name. `fastest` and `seed` must outlive init only.
struct options : tatcell_table_options_t {
    constexpr options(const tatcell_limit_spec_t &fastest_, const std::uint8_t (&seed_)[16]) noexcept
        : tatcell_table_options_t(TATCELL_TABLE_OPTIONS_INIT) {
        fastest = &fastest_;
        seed = seed_;
    }
    /// The caller hashes.
    constexpr explicit options(const tatcell_limit_spec_t &fastest_) noexcept
        : tatcell_table_options_t(TATCELL_TABLE_OPTIONS_INIT) {
        fastest = &fastest_;
        hash = TATCELL_HASH_CALLER;
    }
};

/// Memory for a table of at least `Slots` slots, where its size is known at compile time.
template <std::uint64_t Slots>
struct alignas(TATCELL_TABLE_MEMORY_ALIGN) table_memory {
    static constexpr std::size_t bytes = 64 + ((Slots < 16 ? 16 : Slots) + 15) / 16 * 128;
    unsigned char data[bytes]{};
};

/// The verdicts of a burst: bit i of `pass` is 1 if request i passes.
struct [[nodiscard]] burst_result : result {
    std::uint64_t pass;
    constexpr burst_result(std::int32_t c, std::uint64_t p) noexcept : result(c), pass(p) {}
    constexpr bool operator[](unsigned i) const noexcept { return (pass >> i & 1) != 0; }
};

/// A handle of a table in the caller's memory.
class table {
public:
    result init(void *memory, std::size_t bytes, const tatcell_table_options_t &o) noexcept {
        return tatcell_table_init(&raw_, memory, bytes, &o);
    }
    template <std::uint64_t Slots>
    result init(table_memory<Slots> &memory, const tatcell_table_options_t &o) noexcept {
        return init(memory.data, memory.bytes, o);
    }
    result attach(void *memory, std::size_t bytes, const std::uint8_t *seed, std::uint32_t flags = 0) noexcept {
        return tatcell_table_attach(&raw_, memory, bytes, seed, flags);
    }
    /// Makes a limit of this table.
    result limit(const tatcell_limit_spec_t &s, table_limit &out) const noexcept {
        return tatcell_table_limit(&raw_, &s, &out.raw_);
    }
    result hash(key k, std::uint64_t &h) const noexcept { return tatcell_table_hash(&raw_, k.data(), k.size(), &h); }

    answer check(const table_limit &l, instant now, key k, std::uint32_t cost = 1) const noexcept {
        return detail::ask(tatcell_table_check, &raw_, l.get(), now.count(), k.data(), k.size(), cost);
    }
    answer check_hash(const table_limit &l, instant now, std::uint64_t h, std::uint32_t cost = 1) const noexcept {
        return detail::ask(tatcell_table_check_hash, &raw_, l.get(), now.count(), h, cost);
    }
    decision check_ex(const table_limit &l, instant now, std::uint64_t h, std::uint32_t cost = 1,
                      std::uint64_t room = 0, tatcell_counters_t *counters = nullptr) const noexcept {
        const auto f = [counters](auto... args) { return tatcell_table_check_ex(args..., counters); };
        return detail::decide(f, &raw_, l.get(), now.count(), h, cost, room);
    }
    decision peek(const table_limit &l, instant now, std::uint64_t h, std::uint32_t cost = 1) const noexcept {
        return detail::decide(tatcell_table_peek, &raw_, l.get(), now.count(), h, cost);
    }
    result refund(const table_limit &l, instant now, std::uint64_t h, const permit &p) const noexcept {
        return tatcell_table_refund(&raw_, l.get(), now.count(), h, &p, nullptr);
    }
    /// Up to 64 keys of one type, at one `now`, in order. `costs` null = one unit each.
    template <class T>
    burst_result check_burst(const table_limit &l, instant now, const T *keys, std::size_t count,
                             const std::uint32_t *costs = nullptr) const noexcept {
        static_assert(std::has_unique_object_representations_v<T>, "padding would make new keys");
        std::uint64_t pass = 0;
        const std::uint32_t n = count > TATCELL_BURST_MAX ? TATCELL_BURST_MAX + 1 : static_cast<std::uint32_t>(count);
        const std::int32_t c = tatcell_table_check_burst(&raw_, l.get(), now.count(), keys, sizeof(T), sizeof(T), costs,
                                                         n, &pass, nullptr, nullptr);
        return {c, pass};
    }
    /// Decides a burst and in between hashes and prefetches the keys of the next; see tatcell_table_check_burst_ahead.
    /// `last` is what the call before this one answered, 0 at first; `next_hashes` has room for `next_count`.
    template <class T>
    burst_result check_burst_ahead(const table_limit &l, instant now, const std::uint64_t *hashes, std::size_t count,
                                   std::uint64_t last, const T *next_keys, std::size_t next_count,
                                   std::uint64_t *next_hashes, const std::uint32_t *costs = nullptr,
                                   tatcell_counters_t *counters = nullptr) const noexcept {
        static_assert(std::has_unique_object_representations_v<T>, "padding would make new keys");
        const auto most = [](std::size_t n) {
            return n > TATCELL_BURST_MAX ? TATCELL_BURST_MAX + 1 : static_cast<std::uint32_t>(n);
        };
        const std::int32_t c = tatcell_table_check_burst_ahead(&raw_, l.get(), now.count(), hashes, costs, most(count),
                                                               &last, counters, next_keys, sizeof(T), sizeof(T),
                                                               most(next_count), next_hashes);
        return {c, c == 0 ? last : 0};
    }
#ifdef __cpp_lib_span
    result init(std::span<std::byte> memory, const tatcell_table_options_t &o) noexcept {
        return init(memory.data(), memory.size(), o);
    }
    template <class T, std::size_t N>
    burst_result check_burst(const table_limit &l, instant now, std::span<T, N> keys,
                             const std::uint32_t *costs = nullptr) const noexcept {
        return check_burst(l, now, keys.data(), keys.size(), costs);
    }
#endif
    /// For the calls that have no wrapper: save, restore, sweep, stats, next, ...
    const tatcell_table_t *get() const noexcept { return &raw_; }
    tatcell_table_t *get() noexcept { return &raw_; }
private:
    tatcell_table_t raw_{};
};

}  // namespace tatcell

#endif  // TATCELL_HPP
