// http_429.cpp: an HTTP server in C++17 that limits addresses and their networks, and answers 200 or 429.
//
//   c++ -std=c++17 -O2 -pthread -Iinclude examples/http_429.cpp libtatcell.a -o http_429
//   ./http_429 8429     then: curl -i http://127.0.0.1:8429/
//   ./http_429          tests itself on loopback
//
// An IPv4 address may send 20 requests an hour and its /24 40, an IPv6 /64 20 and its /48 80. One call decides for all
// networks of an address. The fields RateLimit and Retry-After tell a client which limit it met, and when to come back.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <tatcell.hpp>

using namespace std::chrono_literals;
namespace {

[[noreturn]] void die(const char *what, const char *why) {
    std::fprintf(stderr, "http_429: %s: %s\n", what, why);
    std::exit(1);
}
// Ends the program if a call failed. Verdicts are not failures.
void need(const char *what, tatcell::result rc) { if (rc.failed()) die(what, rc.text()); }

class limiter {
public:
    struct reply { int status; std::string fields; };

    limiter() {
        const auto one = tatcell::limit_spec(20, window, 20);
        const auto rungs = tatcell::ladder_spec().v4(v4).v6(v6);
        const auto seed = tatcell::host::random_seed();  // secret: nobody can choose addresses that collide
        const auto made = rungs.options(one);
        need("seed", seed), need("limit", made);
        auto options = *made;
        need("table", table_.init(memory_, options.seed(*seed).policy(tatcell::full_set::deny)));
        need("ladder", ladder_.init(table_, one, rungs));
    }

    // Decides one request. Any number of threads may call it.
    reply decide(in_addr from, tatcell::instant now) {
        need("sweep", table_.sweep_due(sweeper_, now));
        const auto decision = ladder_.check(table_, now, from);
        need("check", decision);
        auto policy = tatcell::http_policy(decision.policy == 0 ? "address" : "network");
        policy.quota(decision.burst, window).decision(decision);
        char lines[1024];
        const auto length = tatcell::http_fields(second, policy).lines(tatcell::http_field::all, lines);
        need("fields", length);
        std::string fields(*length < sizeof lines ? lines : "");  // none is better than half of them
        const bool contended = decision == tatcell::code::contended;  // no verdict; Retry-After is 1
        return {decision ? 200 : contended ? 503 : 429, fields};
    }

private:
    static constexpr std::uint64_t slots = 1 << 14;
    static constexpr auto window = 3600s;
    static constexpr tatcell::frequency second{1000000000};  // of std::chrono::steady_clock, in ticks
    static constexpr tatcell_rung_t v4[] = {{32, 1}, {24, 2}}, v6[] = {{64, 1}, {48, 4}};
    tatcell::table_memory<slots> memory_;
    tatcell::table table_;
    tatcell_sweeper_t sweeper_ = TATCELL_SWEEPER_INIT;
    tatcell::ladder ladder_;
};

limiter limits;
std::atomic<std::uint64_t> simulated{0};  // the time of the test, which does not wait
int listener;

tatcell::instant now() { return simulated != 0 ? tatcell::instant(simulated) : std::chrono::steady_clock::now(); }

// Reads the head of a request or answer; "" if it is too long, or does not come in time.
std::string read_head(int fd) {
    const auto until = now() + 10s;
    const timeval patience{10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::string head;
    char part[1024];
    while (head.find("\r\n\r\n") == head.npos) {
        const auto n = recv(fd, part, sizeof part, 0);
        if (n <= 0 || head.size() > 8192 || until < now()) return "";
        head.append(part, static_cast<std::size_t>(n));
    }
    return head;
}

// Answers one request of each connection.
void serve() {
    for (;;) {
        sockaddr_in from{};
        socklen_t size = sizeof from;
        const int fd = accept(listener, reinterpret_cast<sockaddr *>(&from), &size);
        if (!read_head(fd).empty()) {
            const auto [status, fields] = limits.decide(from.sin_addr, now());
            dprintf(fd, "HTTP/1.1 %d \r\n%sConnection: close\r\nContent-Length: 0\r\n\r\n", status, fields.c_str());
        }
        close(fd);
    }
}

// A client: asks from an address until it is refused with this text. Returns how many requests passed; -1 = wrong.
int ask(const sockaddr_in &at, const char *address, const char *refusal) {
    for (int passed = 0; passed < 99; passed++) {
        sockaddr_in own{};
        own.sin_family = AF_INET, own.sin_addr.s_addr = inet_addr(address);
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(fd, reinterpret_cast<sockaddr *>(&own), sizeof own) != 0 ||
            connect(fd, reinterpret_cast<const sockaddr *>(&at), sizeof at) != 0) die("connect", address);
        dprintf(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        const auto answer = read_head(fd);
        close(fd);
        if (answer.rfind("HTTP/1.1 200", 0) == 0) continue;
        std::printf("%s: %d passed, then\n%s", address, passed, answer.c_str());
        return answer.rfind("HTTP/1.1 429", 0) == 0 && answer.find(refusal) != answer.npos ? passed : -1;
    }
    return -1;
}

[[noreturn]] void test(const sockaddr_in &at) {
    simulated = 1000000000000, alarm(60);
    bool right = ask(at, "127.0.0.2", "RateLimit: \"address\";r=0;t=180\r\nRetry-After: 180\r\n") == 20 &&
                 ask(at, "127.0.0.3", "\"address\"") == 20 && ask(at, "127.0.0.4", "\"network\"") == 0;
    simulated += 90000000000;  // a unit of a network drains in 90 s
    right = right && ask(at, "127.0.0.4", "Retry-After: 90\r\n") == 1 && ask(at, "127.0.1.2", "\"address\"") == 20;
    std::puts(right ? "PASS" : "FAIL"), std::fflush(stdout), std::_Exit(!right);  // the threads go on accepting
}

}  // namespace

int main(int argc, char **argv) {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    at.sin_family = AF_INET, at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0));
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, reinterpret_cast<sockaddr *>(&at), size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr *>(&at), &size) != 0) die("listen", argc > 1 ? argv[1] : "0");
    std::signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 4; i++) std::thread(serve).detach();
    if (argc == 1) test(at);
    for (std::printf("http://127.0.0.1:%d/\n", ntohs(at.sin_port)), std::fflush(stdout);;) pause();
}
