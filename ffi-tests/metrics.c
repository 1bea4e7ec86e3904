/* metrics.c - the text for Prometheus: buffers of every length, every argument, several tables, both formats. */
#include "kit.h"

/* A table in which one key owes 2 of 4 units (ticks are milliseconds), and what was counted there. */
static kit_table k;
static tatcell_counters_t counters;
static tatcell_stats_t stats;
static tatcell_table_info_t info;

static void make(void) {
    tatcell_limit_spec_t spec = kit_spec(2, 1000, 4);
    tatcell_table_options_t o = kit_options(&spec);
    tatcell_counters_t zero = TATCELL_COUNTERS_INIT;
    tatcell_stats_t no_stats = TATCELL_STATS_INIT;
    tatcell_table_info_t no_info = TATCELL_TABLE_INFO_INIT;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    o.tick_hz = 1000, o.policy = TATCELL_FULL_DENY;
    EQ(kit_make(&k, spec, 16, &o), 0);
    counters = zero, stats = no_stats, info = no_info;
    EQ(tatcell_table_check_ex(&k.table, &k.limit, 5000, "key", 3, 2, 0, &d, &counters), 0);
    EQ(tatcell_table_check_ex(&k.table, &k.limit, 5000, "key", 3, 3, 0, &d, &counters), TATCELL_NON_CONFORMING);
    EQ(tatcell_table_check_ex(&k.table, &k.limit, 5000, "key", 3, 5, 0, &d, &counters), TATCELL_NEVER);
    EQ(tatcell_table_stats(&k.table, 5000, &stats), 0);
    EQ(tatcell_table_info(&k.table, &info), 0);
}

static tatcell_metrics_t metrics(const char *name) {
    tatcell_metrics_t m = TATCELL_METRICS_INIT;
    m.name = name, m.counters = &counters, m.stats = &stats, m.info = &info;
    return m;
}

static int has(const char *text, const char *line) {
    const char *found = strstr(text, line);
    return found && (found == text || found[-1] == '\n') && found[strlen(line)] == '\n';
}

TEST(the_text_is_what_the_table_and_the_counters_say) {
    DO(make());
    char text[4096];
    tatcell_metrics_t m = metrics("a \"b\" \\");
    int32_t length = tatcell_metrics_text(&m, 1, TATCELL_METRICS_PROMETHEUS, text, sizeof text);
    EXPECT(length > 1000 && length < (int32_t)sizeof text);
    EQ(length, strlen(text));
#define TABLE "{table=\"a \\\"b\\\" \\\\\""
    EXPECT(has(text, "tatcell_requests_total" TABLE ",verdict=\"conforming\"} 1"));
    EXPECT(has(text, "tatcell_requests_total" TABLE ",verdict=\"non_conforming\"} 1"));
    EXPECT(has(text, "tatcell_requests_total" TABLE ",verdict=\"never\"} 1"));
    EXPECT(has(text, "tatcell_requests_total" TABLE ",verdict=\"contended\"} 0"));
    EXPECT(has(text, "tatcell_new_keys_total" TABLE "} 1"));
    EXPECT(has(text, "tatcell_slots" TABLE "} 16"));
    EXPECT(has(text, "tatcell_live_keys" TABLE "} 1"));
    EXPECT(has(text, "tatcell_longest_debt_seconds" TABLE "} 1.000000000"));
    EXPECT(has(text, "tatcell_table_memory_bytes" TABLE "} 256"));
    EXPECT(has(text, "tatcell_table_info" TABLE ",algorithm=\"gcra\",policy=\"deny\",tag_bits=\"20\"} 1"));
    EXPECT(strstr(text, "# EOF") == NULL);
    length = tatcell_metrics_text(&m, 1, TATCELL_METRICS_OPENMETRICS, text, sizeof text);
    EQ(length, strlen(text));
    EXPECT(has(text, "# TYPE tatcell_requests counter") && has(text, "# UNIT tatcell_longest_debt_seconds seconds"));
    EXPECT(strcmp(text + length - 6, "# EOF\n") == 0);
    kit_free(&k);
}

/* From the heap, so that sanitizers see its end. */
TEST(buffers_of_every_length_are_filled_ended_and_never_passed) {
    DO(make());
    tatcell_metrics_t m[2] = {metrics("one"), metrics("two")};
    char whole[8192];
    int32_t full = tatcell_metrics_text(m, 2, TATCELL_METRICS_OPENMETRICS, whole, sizeof whole);
    EXPECT(full > 2000 && full < (int32_t)sizeof whole);
    EQ(tatcell_metrics_text(m, 2, TATCELL_METRICS_OPENMETRICS, NULL, 0), full);
    for (size_t bytes = 0; bytes <= (size_t)full + 2; bytes += bytes < 200 ? 1 : 37) {
        NOTE("%d bytes", (int)bytes);
        char *buffer = (char *)malloc(bytes ? bytes : 1);
        EXPECT(buffer != NULL);
        memset(buffer, 'x', bytes ? bytes : 1);
        EQ(tatcell_metrics_text(m, 2, TATCELL_METRICS_OPENMETRICS, buffer, bytes), full);
        size_t length = bytes > (size_t)full ? (size_t)full : bytes ? bytes - 1 : 0;
        EXPECT(memcmp(buffer, whole, length) == 0);
        if (bytes) EQ(buffer[length], 0);
        for (size_t i = length + (bytes != 0); i < bytes; i++) EQ(buffer[i], 'x');
        free(buffer);
    }
    kit_free(&k);
}

TEST(what_is_not_given_is_not_said) {
    DO(make());
    tatcell_metrics_t m[3] = {metrics("a"), metrics("b"), metrics("c")};
    char text[4096];
    m[0].stats = NULL, m[0].info = NULL, m[1].counters = NULL, m[1].info = NULL;
    m[2].counters = NULL, m[2].stats = NULL;
    EXPECT(tatcell_metrics_text(m, 3, TATCELL_METRICS_PROMETHEUS, text, sizeof text) < (int32_t)sizeof text);
    EXPECT(has(text, "tatcell_new_keys_total{table=\"a\"} 1") && has(text, "tatcell_live_keys{table=\"b\"} 1"));
    EXPECT(has(text, "tatcell_table_memory_bytes{table=\"c\"} 256"));
    EXPECT(!strstr(text, "tatcell_new_keys_total{table=\"b\"}") && !strstr(text, "tatcell_live_keys{table=\"c\"}"));
    EXPECT(!strstr(text, "longest_debt"));
    EQ(tatcell_metrics_text(NULL, 0, TATCELL_METRICS_PROMETHEUS, text, sizeof text), 0);
    EQ(text[0], 0);
    EQ(tatcell_metrics_text(NULL, 0, TATCELL_METRICS_OPENMETRICS, text, sizeof text), 6);
    kit_free(&k);
}

/* Every byte that a name with a NUL can have, and any character in one that has a length. */
TEST(names_are_escaped_or_refused) {
    char name[] = "a?b", text[200];
    tatcell_metrics_t m = TATCELL_METRICS_INIT;
    tatcell_counters_t none = TATCELL_COUNTERS_INIT;
    m.counters = &none;
    m.name = "ab";
    int32_t plain = tatcell_metrics_text(&m, 1, TATCELL_METRICS_PROMETHEUS, NULL, 0);
    for (int byte = 1; byte < 256; byte++) {
        NOTE("byte %d", byte);
        int good = byte >= 0x20 && byte <= 0x7e, escaped = byte == '"' || byte == '\\';
        name[1] = (char)byte;
        m.name = name, m.name_len = 0;
        /* 10 samples have the name. */
        EQ(tatcell_metrics_text(&m, 1, TATCELL_METRICS_PROMETHEUS, NULL, 0),
           good ? plain + 10 * (1 + escaped) : TATCELL_ERR_HTTP_NAME);
        m.name_len = 3;
        EQ(tatcell_metrics_text(&m, 1, TATCELL_METRICS_PROMETHEUS, NULL, 0),
           byte < 128 ? plain + 10 * (1 + (escaped || byte == '\n')) : TATCELL_ERR_HTTP_NAME);
    }
    m.name = "\xc3\xbc\n0", m.name_len = 3;
    EXPECT(tatcell_metrics_text(&m, 1, TATCELL_METRICS_PROMETHEUS, text, sizeof text) > 0);
    EXPECT(strstr(text, "{table=\"\xc3\xbc\\n\",") != NULL);
    char long_name[1026];
    memset(long_name, 'n', sizeof long_name);
    long_name[1025] = 0, m.name = long_name, m.name_len = 0;
    EQ(tatcell_metrics_text(&m, 1, TATCELL_METRICS_PROMETHEUS, NULL, 0), TATCELL_ERR_TOO_LARGE);
    m.name_len = 1025;
    EQ(tatcell_metrics_text(&m, 1, TATCELL_METRICS_PROMETHEUS, NULL, 0), TATCELL_ERR_TOO_LARGE);
    m.name_len = 1024;
    EQ(tatcell_metrics_text(&m, 1, TATCELL_METRICS_PROMETHEUS, NULL, 0), plain + 10 * 1022);
}

TEST(bad_arguments_write_nothing) {
    DO(make());
    tatcell_metrics_t m[2] = {metrics("a"), metrics("b")};
    union { char text[256]; uint64_t align; tatcell_stats_t stats; tatcell_counters_t counters; } to;
    memset(&to, 'x', sizeof to);
#define BAD(want, tables, count, format, buffer, bytes) \
    EQ(tatcell_metrics_text(tables, count, format, buffer, bytes), want)
#define REFUSED(want) BAD(want, m, 2, TATCELL_METRICS_PROMETHEUS, to.text, sizeof to.text)
    BAD(TATCELL_ERR_NULL, NULL, 1, TATCELL_METRICS_PROMETHEUS, to.text, sizeof to.text);
    BAD(TATCELL_ERR_NULL, m, 1, TATCELL_METRICS_PROMETHEUS, NULL, 1);
    BAD(TATCELL_ERR_TOO_LARGE, m, 1, TATCELL_METRICS_PROMETHEUS, to.text, SIZE_MAX);
    BAD(TATCELL_ERR_COUNT, m, TATCELL_METRICS_TABLES_MAX + 1, TATCELL_METRICS_PROMETHEUS, to.text, sizeof to.text);
    BAD(TATCELL_ERR_COUNT, m, UINT32_MAX, TATCELL_METRICS_PROMETHEUS, to.text, sizeof to.text);
    BAD(TATCELL_ERR_OPTION, m, 1, 2, to.text, sizeof to.text);
    BAD(TATCELL_ERR_ALIGN, (tatcell_metrics_t *)(void *)((char *)m + 4), 1, 0, to.text, sizeof to.text);
    m[1].name = NULL;
    REFUSED(TATCELL_ERR_NULL);
    m[1] = metrics("b"), m[1].flags = 1;
    REFUSED(TATCELL_ERR_OPTION);
    m[1] = metrics("b"), m[1].reserved = &to;
    REFUSED(TATCELL_ERR_OPTION);
    m[1] = metrics("b"), m[1].size = 0;
    REFUSED(TATCELL_ERR_SIZE);
    m[1] = metrics("b"), m[1].counters = (tatcell_counters_t *)(void *)((char *)&counters + 4);
    REFUSED(TATCELL_ERR_ALIGN);
    m[1] = metrics("b"), stats.size = 8;
    REFUSED(TATCELL_ERR_SIZE);
    stats.size = sizeof stats, info.policy = 9;
    REFUSED(TATCELL_ERR_OPTION);
    info.policy = 0, info.algorithm = 99;
    REFUSED(TATCELL_ERR_OPTION);
    info.algorithm = TATCELL_ALGORITHM_OVERRIDES;
    m[0].counters = &to.counters;
    REFUSED(TATCELL_ERR_OVERLAP);
    m[0] = metrics(to.text + 5), m[0].name_len = 3;
    REFUSED(TATCELL_ERR_OVERLAP);
    m[0] = metrics("a");
    BAD(TATCELL_ERR_OVERLAP, m, 2, TATCELL_METRICS_PROMETHEUS, (char *)&m[1], 1);
    BAD(TATCELL_ERR_OVERLAP, m, 2, TATCELL_METRICS_PROMETHEUS, (char *)&stats + 8, 1);
    BAD(TATCELL_ERR_OVERLAP, m, 2, TATCELL_METRICS_PROMETHEUS, (char *)&info + 8, 1);
    for (size_t i = 0; i < sizeof to.text; i++) EQ(to.text[i], 'x');
    EXPECT(tatcell_metrics_text(m, 2, TATCELL_METRICS_PROMETHEUS, to.text, sizeof to.text) > 1000);
    kit_free(&k);
}

/* Structures of an older release are shorter, and those of a later one longer. */
TEST(structures_of_other_releases_are_read_as_far_as_both_sides_know) {
    DO(make());
    struct { tatcell_metrics_t now; uint64_t later; } longer[2] = {{metrics("a"), 0}, {metrics("b"), 0}};
    longer[0].now.size = longer[1].now.size = sizeof *longer;
    tatcell_metrics_t m[2] = {metrics("a"), metrics("b")};
    int32_t want = tatcell_metrics_text(m, 2, TATCELL_METRICS_PROMETHEUS, NULL, 0);
    EQ(tatcell_metrics_text(&longer[0].now, 2, TATCELL_METRICS_PROMETHEUS, NULL, 0), want);
    longer[1].later = 1;
    EQ(tatcell_metrics_text(&longer[0].now, 2, TATCELL_METRICS_PROMETHEUS, NULL, 0), TATCELL_ERR_OPTION);
    stats.size = TATCELL_STATS_MIN, info.size = TATCELL_TABLE_INFO_MIN;
    char text[4096];
    EXPECT(tatcell_metrics_text(m, 1, TATCELL_METRICS_PROMETHEUS, text, sizeof text) > 1000);
    EXPECT(has(text, "tatcell_live_keys{table=\"a\"} 1"));
    /* What they do not have is not said, not even as 0. */
    EXPECT(!strstr(text, "tatcell_full_sets{") && !strstr(text, "tatcell_longest_debt"));
    info.size = sizeof info, info.algorithm = TATCELL_ALGORITHM_OVERRIDES;
    EXPECT(tatcell_metrics_text(m, 1, TATCELL_METRICS_PROMETHEUS, text, sizeof text) > 1000);
    EXPECT(!strstr(text, "tatcell_overrides"));
    stats.size = sizeof stats, stats.exemptions = 1;
    EXPECT(tatcell_metrics_text(m, 1, TATCELL_METRICS_PROMETHEUS, text, sizeof text) > 1000);
    EXPECT(has(text, "tatcell_overrides{table=\"a\",kind=\"ban\"} 0"));
    EXPECT(has(text, "tatcell_overrides{table=\"a\",kind=\"exemption\"} 1"));
    kit_free(&k);
}

int main(void) {
    RUN(the_text_is_what_the_table_and_the_counters_say);
    RUN(buffers_of_every_length_are_filled_ended_and_never_passed);
    RUN(what_is_not_given_is_not_said);
    RUN(names_are_escaped_or_refused);
    RUN(bad_arguments_write_nothing);
    RUN(structures_of_other_releases_are_read_as_far_as_both_sides_know);
    return check_end();
}
