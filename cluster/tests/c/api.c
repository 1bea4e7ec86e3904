/* Every function and code of tatcell_cluster.h: what is given wrongly is said and changes nothing. PASS and FAIL. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tatcell_cluster.h>

#define SECOND UINT64_C(1000000000)

static int failed;

#define CLAIM(name, holds) claim(name, holds, __LINE__)
static void claim(const char *name, int holds, int line) {
    if (holds) printf("PASS %s\n", name);
    else printf("FAIL %s: line %d\n", name, line), failed = 1;
}

static tatcell_cluster_limit_t limit_of(const char *name, uint64_t units, uint64_t burst) {
    tatcell_cluster_limit_t limit = TATCELL_CLUSTER_LIMIT_INIT;
    limit.name = name, limit.units = units, limit.period_ns = SECOND, limit.burst = burst;
    return limit;
}

static tatcell_cluster_options_t options_of(const char *url, const tatcell_cluster_limit_t *limit) {
    tatcell_cluster_options_t options = TATCELL_CLUSTER_OPTIONS_INIT;
    options.url = url, options.nodes = 2, options.limits = limit, options.limit_count = 1, options.prefix = "api";
    options.keys = 64, options.flags = TATCELL_CLUSTER_QUIET, options.change_delay_ns = SECOND / 2;
    return options;
}

/* What opening comes to; the text goes to `error`. A node that opens is closed. */
static int32_t opened(const tatcell_cluster_options_t *options, char *error, size_t room) {
    tatcell_cluster_t *node = NULL;
    int32_t rc = tatcell_cluster_open(options, &node, error, room);
    if (rc == 0) tatcell_cluster_close(node, SECOND);
    else if (node != NULL) return 99;
    return rc;
}

static void opening(const char *url) {
    char error[512], tiny[8];
    tatcell_cluster_limit_t two[2], limit = limit_of("x", 1000, 100);
    tatcell_cluster_options_t options = options_of(url, &limit);
    tatcell_cluster_t *node;
    struct {
        tatcell_cluster_options_t options;
        uint64_t later;
    } longer;

    CLAIM("a_node_opens_and_closes", opened(&options, error, sizeof error) == 0 && error[0] == 0);
    CLAIM("null_is_refused", opened(NULL, error, sizeof error) == TATCELL_CLUSTER_ERR_NULL);
    CLAIM("no_place_for_the_node_is_refused",
          tatcell_cluster_open(&options, NULL, error, sizeof error) == TATCELL_CLUSTER_ERR_NULL);
    CLAIM("no_text_is_wanted", tatcell_cluster_open(&options, &node, NULL, 0) == 0);
    tatcell_cluster_close(node, SECOND);

    options.size = 8;
    CLAIM("a_wrong_size_is_refused", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_SIZE);
    memset(&longer, 0, sizeof longer);
    longer.options = options_of(url, &limit), longer.options.size = sizeof longer;
    CLAIM("a_longer_structure_of_zeros_is_taken", opened(&longer.options, error, sizeof error) == 0);
    longer.later = 1;
    CLAIM("what_is_not_known_is_refused", opened(&longer.options, error, sizeof error) == TATCELL_CLUSTER_ERR_OPTION);

    options = options_of(NULL, &limit);
    CLAIM("no_url_is_said", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_NULL && strstr(error, "NULL"));
    options = options_of("nonsense", &limit);
    CLAIM("a_bad_url_is_said",
          opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_URL && strstr(error, "redis://"));
    options = options_of("redis://127.0.0.1:1/", &limit);
    CLAIM("no_server_is_said", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_UNREACHABLE &&
                                   strstr(error, "is it running"));
    CLAIM("a_text_is_cut_to_fit", opened(&options, tiny, sizeof tiny) < 0 && strlen(tiny) == 7);
    options = options_of(url, &limit), options.when_down = 3;
    CLAIM("an_unknown_mode_is_refused", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_OPTION);
    options = options_of(url, &limit), options.flags = 2;
    CLAIM("an_unknown_flag_is_refused", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_OPTION);
    options = options_of(url, &limit), options.nodes = 0;
    CLAIM("no_nodes_are_refused", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_LIMIT && error[0]);
    options = options_of(url, &limit), options.limit_count = 0;
    CLAIM("no_limit_is_refused", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_LIMIT);
    two[0] = two[1] = limit;
    options = options_of(url, two), options.limit_count = 2;
    CLAIM("two_of_one_name_are_refused", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_LIMIT);
    two[1] = limit_of("y", 10, 5);
    CLAIM("two_limits_are_taken", opened(&options, error, sizeof error) == 0);
    limit = limit_of("bad name", 1, 1);
    options = options_of(url, &limit);
    CLAIM("a_bad_limit_is_said", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_LIMIT &&
                                     strstr(error, "letters"));
    limit = limit_of("x", 1, 1);
    CLAIM("other_parameters_are_said", opened(&options, error, sizeof error) == TATCELL_CLUSTER_ERR_PARAMETERS &&
                                           strstr(error, "another prefix"));
}

/* The answer to a token, waited for by the descriptor. */
static int32_t waited(const tatcell_cluster_t *node, uint64_t token) {
    tatcell_cluster_answer_t answer;
    int tries;
    for (tries = 0; tries < 50; tries++) {
        struct pollfd waits = {0, POLLIN, 0};
        waits.fd = tatcell_cluster_fd(node);
        poll(&waits, 1, 100);
        if (tatcell_cluster_drain(node, &answer, 1) == 1) return answer.token == token ? answer.verdict : 98;
    }
    return 97;
}

static void deciding(const char *url) {
    static tatcell_cluster_answer_t answers[8192];
    tatcell_cluster_limit_t limits[2] = {limit_of("x", 1000, 100), limit_of("y", 1, 2)}, other;
    tatcell_cluster_options_t options = options_of(url, limits);
    tatcell_cluster_metrics_t metrics = TATCELL_CLUSTER_METRICS_INIT;
    tatcell_cluster_t *node;
    uint64_t retry = 7, ns, i, until;
    int too_many = 0;
    uint32_t x, y;
    char text[8192];
    int32_t rc, count;
    struct pollfd waits = {0, POLLIN, 0};
    limits[0].reserve_rate = limits[1].reserve_rate = 0;
    options.limit_count = 2, options.prefix = "api2", options.keys = 65536;
    if (tatcell_cluster_open(&options, &node, text, sizeof text) != 0) exit((printf("FAIL open: %s\n", text), 1));

    CLAIM("limits_are_found",
          tatcell_cluster_limit(node, "x", &x) == 0 && tatcell_cluster_limit(node, "y", &y) == 0 && x != y);
    CLAIM("an_unknown_limit_is_absent", tatcell_cluster_limit(node, "z", &x) == TATCELL_CLUSTER_ERR_ABSENT);
    CLAIM("an_unknown_number_is_absent",
          tatcell_cluster_check(node, 2, "k", 1, 1, 0, 0, NULL) == TATCELL_CLUSTER_ERR_ABSENT);
    CLAIM("null_is_no_node", tatcell_cluster_check(NULL, x, "k", 1, 1, 0, 0, NULL) == TATCELL_CLUSTER_ERR_NULL);
    CLAIM("null_is_no_key", tatcell_cluster_check(node, x, NULL, 1, 1, 0, 0, NULL) == TATCELL_CLUSTER_ERR_NULL);

    waits.fd = tatcell_cluster_fd(node);
    CLAIM("nothing_waits_at_first", waits.fd >= 0 && poll(&waits, 1, 0) == 0);
    rc = tatcell_cluster_check(node, y, "k", 1, 2, 0, 41, &retry);
    CLAIM("a_cold_key_is_pending", rc == TATCELL_CLUSTER_PENDING && retry == 0);
    CLAIM("its_answer_passes", waited(node, 41) == TATCELL_CLUSTER_PASS);
    CLAIM("the_descriptor_is_silent_again", poll(&waits, 1, 0) == 0);
    rc = tatcell_cluster_check(node, y, "k", 1, 2, tatcell_cluster_now(node), 42, &retry);
    CLAIM("the_second_is_denied_with_a_time",
          (rc == TATCELL_CLUSTER_PENDING ? waited(node, 42) : rc) == TATCELL_CLUSTER_DENY);
    rc = tatcell_cluster_check(node, y, "k", 1, 2, 0, 43, &retry);
    CLAIM("and_then_at_once", rc == TATCELL_CLUSTER_DENY && retry > SECOND / 2 && retry < 3 * SECOND);
    CLAIM("too_large_a_cost_never_passes",
          tatcell_cluster_check(node, y, "k", 1, 3, 0, 0, NULL) == TATCELL_CLUSTER_NEVER);
    rc = tatcell_cluster_check(node, y, NULL, 0, 1, 0, 44, NULL);
    CLAIM("a_key_of_no_bytes_is_one", rc == TATCELL_CLUSTER_PENDING && waited(node, 44) == TATCELL_CLUSTER_PASS);

    /* Nobody takes answers: the list fills, and each pending one is there. */
    for (i = 0, count = 0, rc = 0; i < 6000 && rc != TATCELL_CLUSTER_OVERLOADED; i++) {
        struct pollfd pause = {-1, 0, 0};
        if (i % 32 == 0) poll(&pause, 1, 1);
        rc = tatcell_cluster_check(node, y, &i, sizeof i, 1, 0, i, NULL);
        count += rc == TATCELL_CLUSTER_PENDING;
    }
    CLAIM("4096_answers_are_kept_and_then_it_is_overloaded", rc == TATCELL_CLUSTER_OVERLOADED && count == 4096);
    until = tatcell_cluster_now(node) + 30 * SECOND;
    while (count > 0 && too_many == 0 && tatcell_cluster_now(node) < until) {
        poll(&waits, 1, 100);
        rc = tatcell_cluster_drain(node, answers, 1000);
        too_many = rc < 0 || rc > 1000;
        count -= rc;
    }
    CLAIM("no_more_are_taken_than_there_is_room_for", too_many == 0);
    CLAIM("every_one_was_answered", count == 0);
    CLAIM("bad_places_are_refused",
          tatcell_cluster_drain(node, NULL, 1) == TATCELL_CLUSTER_ERR_NULL &&
              tatcell_cluster_drain(node, answers, (size_t)1 << 40) == TATCELL_CLUSTER_ERR_TOO_LARGE);

    CLAIM("metrics_are_told", tatcell_cluster_metrics(node, &metrics) == 0 && metrics.up == 1 && metrics.asks > 4000 &&
                                  metrics.size == sizeof metrics);
    CLAIM("a_node_without_reserves_says_that_it_needs_no_slot", metrics.slot == TATCELL_CLUSTER_SLOT_NOT_NEEDED);
    metrics.size = 12;
    CLAIM("metrics_of_a_wrong_size_are_not", tatcell_cluster_metrics(node, &metrics) == TATCELL_CLUSTER_ERR_SIZE);
    rc = tatcell_cluster_prometheus(node, text, sizeof text);
    CLAIM("metrics_are_text", rc > 0 && (size_t)rc == strlen(text) && strstr(text, "tatcell_cluster_up 1\n") &&
                                 strstr(text, "tatcell_cluster_slot{state=\"not_needed\"} 1\n"));
    CLAIM("a_length_can_be_asked", tatcell_cluster_prometheus(node, NULL, 0) > 100);

    other = limit_of("x", 10, 50);
    CLAIM("a_limit_is_changed", tatcell_cluster_change(node, &other, SECOND, &ns) == 0 && ns > 0 && ns <= SECOND / 2);
    CLAIM("once_at_a_time", tatcell_cluster_change(node, &other, SECOND, NULL) == TATCELL_CLUSTER_ERR_CHANGING);
    other.burst = 0;
    CLAIM("a_bad_change_is_refused", tatcell_cluster_change(node, &other, SECOND, NULL) == TATCELL_CLUSTER_ERR_LIMIT);
    other = limit_of("z", 1, 1);
    CLAIM("an_unknown_one_is_absent", tatcell_cluster_change(node, &other, SECOND, NULL) == TATCELL_CLUSTER_ERR_ABSENT);
    CLAIM("it_closes", tatcell_cluster_close(node, 5 * SECOND) == 0);
    CLAIM("null_is_closed", tatcell_cluster_close(NULL, 0) == 0);
}

int main(int argc, char **argv) {
    int32_t code, described = 0;
    if (argc != 2) return 2;
    CLAIM("library_and_header_agree", tatcell_cluster_version() == TATCELL_CLUSTER_VERSION &&
                                          tatcell_cluster_abi_version() == TATCELL_CLUSTER_ABI_VERSION);
    for (code = -100; code < 10; code++) described += strcmp(tatcell_cluster_strerror(code), "unknown code") != 0;
    CLAIM("each_code_is_described", described == 22 && tatcell_cluster_strerror(-1000)[0] == 'u');
    opening(argv[1]);
    deciding(argv[1]);
    return failed;
}
