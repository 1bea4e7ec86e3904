// The limiter that the author of a daemon writes in C++: one mutex, one unordered_map, one token bucket a key.

#include "peer.h"

#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>
#include <unordered_map>

namespace {

const char *why = "";

using Key = std::array<unsigned char, PEER_KEY>;

// Not noexcept: libstdc++ then keeps the hash in the node and does not compute it again to find the end of a chain.
struct KeyHash {
    std::size_t operator()(const Key &key) const {
        return std::hash<std::string_view>{}({reinterpret_cast<const char *>(key.data()), key.size()});
    }
};

// Credit in ticks: a unit costs one period, so that no decision divides.
struct Bucket {
    std::uint64_t credit;
    std::uint64_t last;
};

class Limiter {
public:
    Limiter(std::uint64_t period, std::uint64_t burst, std::size_t keys) : period_(period), most_(period * burst) {
        buckets_.reserve(keys);
    }

    bool check(const Key &key, std::uint64_t now) {
        std::lock_guard<std::mutex> guard(mutex_);
        return check_unlocked(key, now);
    }

    bool check_unlocked(const Key &key, std::uint64_t now) {
        Bucket &bucket = buckets_.try_emplace(key, Bucket{most_, now}).first->second;
        const std::uint64_t credit = bucket.credit + (now - bucket.last);
        bucket.credit = credit < most_ ? credit : most_;
        bucket.last = now;
        if (bucket.credit < period_) return false;
        bucket.credit -= period_;
        return true;
    }

private:
    std::mutex mutex_;
    std::uint64_t period_, most_;
    std::unordered_map<Key, Bucket, KeyHash> buckets_;
};

struct Bed {
    Limiter limiter;
    std::uint32_t keys;
    std::uint64_t now;
};

template <bool (Limiter::*check)(const Key &, std::uint64_t)>
std::uint64_t run(void *at, const peer_visit *visit) {
    Bed &bed = *static_cast<Bed *>(at);
    std::uint64_t passed = 0, now = bed.now;
    for (std::uint64_t i = 0; i < visit->n; i++) {
        now += visit->dt;
        Key key;
        peer_key(key.data(), peer_id(visit, i, bed.keys));
        passed += (bed.limiter.*check)(key, now);
    }
    bed.now = now;
    return passed;
}

} // namespace

void *peer_open(std::uint32_t keys, std::uint64_t period, std::uint64_t burst, std::uint32_t debt) try {
    // In a process that never had a second thread glibc takes a mutex without an atomic operation. Who needs the
    // mutex has one; the row without the mutex is for who does not.
    std::thread([] {}).join();
    Bed *bed = new Bed{Limiter(period, burst, keys), keys, PEER_START};
    for (std::uint32_t id = 0; id < keys; id++) {
        Key key;
        peer_key(key.data(), id);
        for (std::uint32_t unit = 0; unit < debt; unit++) bed->limiter.check_unlocked(key, bed->now);
    }
    return bed;
} catch (const std::bad_alloc &) {
    why = "not enough memory";
    return nullptr;
}

peer_run *peer_kind(void *, const char *kind) {
    if (std::strcmp(kind, "map") == 0) return run<&Limiter::check>;
    if (std::strcmp(kind, "map_unlocked") == 0) return run<&Limiter::check_unlocked>;
    why = "no such kind";
    return nullptr;
}

const char *peer_why(void) { return why; }
