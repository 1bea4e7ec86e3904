// Built against the installed package; exits with 0 if the library answers.
#include <tatcell.hpp>

int main() {
    using namespace std::chrono_literals;
    tatcell::limit limit;
    tatcell::cell cell;
    if (!limit.init(1, 1s, 1)) return 1;
    const auto now = std::chrono::steady_clock::now();
    if (!cell.check(limit, now)) return 2;
    return cell.check(limit, now).retry_after == 1s ? 0 : 3;
}
