/* http.c - header fields: buffers of every length, every argument, several policies, and what snprintf would answer. */
#include "kit.h"

static tatcell_limit_t limit;
static tatcell_decision_t pass, refused, never;

/* A limit of 2 a second (ticks are milliseconds), 10 at once; 3 units are left, or 7 were asked for. */
static void decide(void) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_decision_t fresh = TATCELL_DECISION_INIT;
    pass = refused = never = fresh;
    EQ(tatcell_limit_init(&limit, 2, 1000, 10), 0);
    EQ(tatcell_cell_check_ex(&cell, &limit, 0, 7, 0, &pass, NULL), 0);
    EQ(tatcell_cell_check_ex(&cell, &limit, 100, 7, 0, &refused, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_cell_check_ex(&cell, &limit, 100, 11, 0, &never, NULL), TATCELL_NEVER);
}

static tatcell_http_policy_t policy(const char *name, const tatcell_decision_t *decision) {
    tatcell_http_policy_t p = TATCELL_HTTP_POLICY_INIT;
    p.name = name, p.limit = &limit, p.decision = decision;
    return p;
}

static const char ALL_OF_A_REFUSAL[] = "RateLimit-Policy: \"burst\";q=10;w=5\r\nRateLimit: \"burst\";r=3;t=2\r\n"
                                       "Retry-After: 2\r\nX-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 3\r\n"
                                       "X-RateLimit-Reset: 2\r\n";

TEST(each_field_has_its_value_and_its_line) {
    static const struct { uint32_t field; const char *name, *pass, *refused, *never; } fields[] = {
        {TATCELL_HTTP_RATELIMIT_POLICY, "RateLimit-Policy", "\"p\";q=10;w=5", "\"p\";q=10;w=5", "\"p\";q=10;w=5"},
        {TATCELL_HTTP_RATELIMIT, "RateLimit", "\"p\";r=3;t=4", "\"p\";r=3;t=2", "\"p\";r=3;t=4"},
        {TATCELL_HTTP_RETRY_AFTER, "Retry-After", "", "2", ""},
        {TATCELL_HTTP_X_LIMIT, "X-RateLimit-Limit", "10", "10", "10"},
        {TATCELL_HTTP_X_REMAINING, "X-RateLimit-Remaining", "3", "3", "3"},
        {TATCELL_HTTP_X_RESET, "X-RateLimit-Reset", "4", "2", "4"},
    };
    DO(decide());
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const tatcell_decision_t *decisions[] = {&pass, &refused, &never};
        const char *wants[] = {fields[i].pass, fields[i].refused, fields[i].never};
        for (int k = 0; k < 3; k++) {
            NOTE("%s, decision %d", fields[i].name, k);
            tatcell_http_policy_t p = policy("p", decisions[k]);
            char text[100], line[160] = "";
            EQ(tatcell_http_value(&p, 1, 1000, fields[i].field, text, sizeof text), strlen(wants[k]));
            EXPECT(strcmp(text, wants[k]) == 0);
            if (wants[k][0]) snprintf(line, sizeof line, "%s: %s\r\n", fields[i].name, wants[k]);
            EQ(tatcell_http_lines(&p, 1, 1000, fields[i].field, text, sizeof text), strlen(line));
            EXPECT(strcmp(text, line) == 0);
        }
    }
}

/* From the heap, so that sanitizers see its end. */
TEST(buffers_of_every_length_are_filled_ended_and_never_passed) {
    DO(decide());
    tatcell_http_policy_t p = policy("burst", &refused);
    size_t full = strlen(ALL_OF_A_REFUSAL);
    for (size_t bytes = 0; bytes <= full + 2; bytes++) {
        NOTE("%d bytes", (int)bytes);
        char *buffer = (char *)malloc(bytes ? bytes : 1), want[200];
        EXPECT(buffer != NULL);
        memset(buffer, 'x', bytes ? bytes : 1);
        EQ(tatcell_http_lines(&p, 1, 1000, TATCELL_HTTP_ALL, buffer, bytes), full);
        EQ(snprintf(want, bytes, "%s", ALL_OF_A_REFUSAL), full);
        if (bytes) EXPECT(strcmp(buffer, want) == 0);
        else EQ(buffer[0], 'x');
        for (size_t i = bytes ? strlen(buffer) + 1 : 0; i < bytes; i++) EQ(buffer[i], 'x');
        EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_RATELIMIT, buffer, bytes), 15);
        if (bytes) EXPECT(strlen(buffer) == (bytes > 15 ? 15 : bytes - 1));
        free(buffer);
    }
    EQ(tatcell_http_lines(&p, 1, 1000, TATCELL_HTTP_ALL, NULL, 0), full);
}

TEST(several_policies_stand_in_one_field) {
    DO(decide());
    static const unsigned char key[] = {'A', 'p', 'p', '-', '9', '9', '9'};
    tatcell_http_policy_t p[3] = {policy("say \"hi\" \\", &pass), policy("", &refused), TATCELL_HTTP_POLICY_INIT};
    p[2].name = "bytes", p[2].unit = "content-bytes", p[2].quota = 65536, p[2].window = 60000;
    p[2].partition = key, p[2].partition_len = sizeof key, p[2].decision = &pass;
    char text[300];
    EXPECT(tatcell_http_value(p, 3, 1000, TATCELL_HTTP_RATELIMIT_POLICY, text, sizeof text) > 0);
    EXPECT(strcmp(text, "\"say \\\"hi\\\" \\\\\";q=10;w=5, \"\";q=10;w=5, "
                        "\"bytes\";q=65536;qu=\"content-bytes\";w=60;pk=:QXBwLTk5OQ==:") == 0);
    EXPECT(tatcell_http_value(p, 3, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text) > 0);
    EXPECT(strcmp(text, "\"say \\\"hi\\\" \\\\\";r=3;t=2, \"\";r=3;t=2, \"bytes\";r=3;t=2;pk=:QXBwLTk5OQ==:") == 0);
    EQ(tatcell_http_lines(NULL, 0, 1, TATCELL_HTTP_ALL, text, sizeof text), 0);
    EQ(text[0], 0);
}

TEST(limits_of_every_kind_give_quota_and_window) {
    kit_table k;
    tatcell_limit_t narrow, free_for_all;
    char text[100];
    EQ(kit_make(&k, kit_spec(2, 1000, 10), 64, NULL), 0);
    EQ(tatcell_limit32_init(&narrow, 2, 1000, 10), 0);
    const tatcell_limit_t *limits[] = {&k.limit, &narrow};
    for (int i = 0; i < 2; i++) {
        tatcell_http_policy_t p = TATCELL_HTTP_POLICY_INIT;
        p.name = "p", p.limit = limits[i];
        EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_RATELIMIT_POLICY, text, sizeof text), 12);
        EXPECT(strcmp(text, "\"p\";q=10;w=5") == 0);
    }
    /* An unlimited limit promises nothing and asks nothing. */
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    EQ(tatcell_limit_init_unlimited(&free_for_all), 0);
    EQ(tatcell_cell_check_ex(&cell, &free_for_all, 0, 1, 0, &d, NULL), 0);
    tatcell_http_policy_t p = policy("all", &d);
    p.limit = &free_for_all;
    EQ(tatcell_http_lines(&p, 1, 1000, TATCELL_HTTP_ALL, text, sizeof text), 0);
    kit_free(&k);
}

/* Every byte a name can have, and no other. */
TEST(names_are_texts_of_structured_fields) {
    char name[4] = "a?b", text[40];
    tatcell_http_policy_t p = TATCELL_HTTP_POLICY_INIT;
    p.quota = 1;
    for (int byte = 1; byte < 256; byte++) {
        NOTE("byte %d", byte);
        int good = byte >= 0x20 && byte <= 0x7e, escaped = byte == '"' || byte == '\\';
        name[1] = (char)byte;
        p.name = name, p.unit = NULL;
        int32_t rc = tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, text, sizeof text);
        EQ(rc, good ? 9 + escaped : TATCELL_ERR_HTTP_NAME);
        p.name = "p", p.unit = name;
        rc = tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, text, sizeof text);
        EQ(rc, good ? 16 + escaped : TATCELL_ERR_HTTP_NAME);
    }
    char long_name[1026];
    memset(long_name, 'n', sizeof long_name);
    p.name = long_name, p.unit = NULL;
    long_name[1025] = 0;
    EQ(tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, NULL, 0), TATCELL_ERR_TOO_LARGE);
    long_name[1024] = 0;
    EQ(tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, NULL, 0), 1024 + 6);
    p.name_len = 1025; /* a length stands for the NUL */
    EQ(tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, NULL, 0), TATCELL_ERR_TOO_LARGE);
    p.name = "plain", p.name_len = 1, p.unit = "unit-a", p.unit_len = 4;
    EQ(tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, text, sizeof text), 17);
    EXPECT(strcmp(text, "\"p\";q=1;qu=\"unit\"") == 0);
    p.unit_len = 7; /* a NUL is no part of a text */
    EQ(tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, text, sizeof text), TATCELL_ERR_HTTP_NAME);
    p.name = NULL, p.unit = NULL, p.unit_len = 0;
    EQ(tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, text, sizeof text), TATCELL_ERR_NULL);
    p.name = "p", p.name_len = 0, p.partition = long_name, p.partition_len = 1025;
    EQ(tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, NULL, 0), TATCELL_ERR_TOO_LARGE);
    p.partition_len = 1024; /* "p";q=1;pk=:: and four characters for three bytes */
    EQ(tatcell_http_value(&p, 1, 1, TATCELL_HTTP_RATELIMIT_POLICY, NULL, 0), 13 + (1024 + 2) / 3 * 4);
}

TEST(bad_arguments_write_nothing) {
    DO(decide());
    tatcell_http_policy_t p = policy("p", &pass), two[2] = {policy("p", &pass), policy("q", &pass)};
    tatcell_limit_t none;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    char text[64];
    memset(&none, 0, sizeof none);
    memset(text, 'x', sizeof text);
#define BAD(want, policies, count, hz, bits, to, bytes) \
    EQ(tatcell_http_value(policies, count, hz, bits, to, bytes), want); \
    EQ(tatcell_http_lines(policies, count, hz, bits, to, bytes), want)
#define REFUSED(want, policies) BAD(want, policies, 1, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text)
    BAD(TATCELL_ERR_NULL, NULL, 1, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text);
    BAD(TATCELL_ERR_NULL, &p, 1, 1000, TATCELL_HTTP_RATELIMIT, NULL, 1);
    BAD(TATCELL_ERR_TOO_LARGE, &p, 1, 1000, TATCELL_HTTP_RATELIMIT, text, SIZE_MAX);
    BAD(TATCELL_ERR_FREQUENCY, &p, 1, 0, TATCELL_HTTP_RATELIMIT, text, sizeof text);
    BAD(TATCELL_ERR_POLICIES, &p, 9, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text);
    BAD(TATCELL_ERR_POLICIES, &p, UINT32_MAX, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text);
    BAD(TATCELL_ERR_OPTION, &p, 1, 1000, 64, text, sizeof text);
    BAD(TATCELL_ERR_ALIGN, (tatcell_http_policy_t *)(void *)((char *)&p + 4), 1, 1000, 1, text, sizeof text);
    EQ(tatcell_http_value(&p, 1, 1000, 0, text, sizeof text), TATCELL_ERR_OPTION);
    EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_ALL, text, sizeof text), TATCELL_ERR_OPTION);
    p.name = NULL;
    REFUSED(TATCELL_ERR_NULL, &p);
    p = policy("p", &d); /* no call has made it */
    REFUSED(TATCELL_ERR_OPTION, &p);
    d = pass, d.verdict = TATCELL_ERR_NULL;
    REFUSED(TATCELL_ERR_OPTION, &p);
    d.verdict = TATCELL_END;
    REFUSED(TATCELL_ERR_OPTION, &p);
    d = pass, d.size = 8;
    REFUSED(TATCELL_ERR_SIZE, &p);
    p = policy("p", &pass), p.limit = &none;
    REFUSED(TATCELL_ERR_LIMIT, &p);
    p = policy("p", &pass), p.quota = 1;
    REFUSED(TATCELL_ERR_OPTION, &p);
    p = policy("p", &pass), p.window = 1;
    REFUSED(TATCELL_ERR_OPTION, &p);
    p = policy("p", &pass), p.flags = 1;
    REFUSED(TATCELL_ERR_OPTION, &p);
    p = policy("p", &pass), p.size = 0;
    REFUSED(TATCELL_ERR_SIZE, &p);
    two[1].size = sizeof *two + 8;
    BAD(TATCELL_ERR_SIZE, two, 2, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text);
    for (size_t i = 0; i < sizeof text; i++) EQ(text[i], 'x');
    p = policy("p", &pass);
    BAD(TATCELL_ERR_OVERLAP, &p, 1, 1000, TATCELL_HTTP_RATELIMIT, (char *)&p, sizeof p);
    char name[16] = "name";
    p.name = name;
    BAD(TATCELL_ERR_OVERLAP, &p, 1, 1000, TATCELL_HTTP_RATELIMIT, name + 2, 1);
    EXPECT(strcmp(name, "name") == 0);
}

/* A structure of a later release: what is added lies behind, and must be 0. */
/* It passes, and what it would have waited for is nobody's affair. */
TEST(a_decision_in_the_shadow_holds_the_client_to_nothing) {
    DO(decide());
    char text[100];
    for (int shadow = 0; shadow < 2; shadow++) {
        NOTE("shadow %d", shadow);
        tatcell_limit_spec_t s = kit_spec(2, 1000, 10);
        tatcell_cell_t cell = TATCELL_CELL_INIT;
        tatcell_decision_t d = TATCELL_DECISION_INIT;
        s.flags = shadow ? TATCELL_LIMIT_SHADOW : 0;
        EQ(tatcell_limit_init_spec(&limit, &s), 0);
        for (int i = 0; i < 2; i++) EXPECT(tatcell_cell_check_ex(&cell, &limit, 0, 7, 0, &d, NULL) >= 0);
        EQ(d.flags, shadow ? TATCELL_FLAG_SHADOW : 0);
        tatcell_http_policy_t p = policy("p", &d);
        EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text), shadow ? 0 : 11);
        EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_RETRY_AFTER, text, sizeof text), shadow ? 0 : 1);
        tatcell_cell_t other = TATCELL_CELL_INIT;
        EXPECT(tatcell_cell_check_ex(&other, &limit, 0, 1, 0, &d, NULL) >= 0);
        EQ(tatcell_http_lines(&p, 1, 1000, TATCELL_HTTP_ALL, text, sizeof text) == 0, shadow);
    }
}

TEST(policies_of_a_later_release_are_read_as_far_as_both_sides_know) {
    DO(decide());
    struct { tatcell_http_policy_t p; uint64_t more; } later[2] = {{policy("a", &pass), 0}, {policy("b", &pass), 0}};
    char text[64];
    later[0].p.size = later[1].p.size = sizeof later[0];
    EQ(tatcell_http_value(&later[0].p, 2, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text), 24);
    EXPECT(strcmp(text, "\"a\";r=3;t=4, \"b\";r=3;t=4") == 0);
    later[1].more = 1;
    EQ(tatcell_http_value(&later[0].p, 2, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text), TATCELL_ERR_OPTION);
}

/* A status page is no refusal; a check of cost 0 is one. */
TEST(a_peek_of_cost_0_in_debt_has_no_retry_after) {
    tatcell_limit_spec_t s = kit_spec(2, 1000, 10);
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    char text[40];
    s.max_debt = 6;
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    EQ(tatcell_cell_charge(&cell, &limit, 0, 14, NULL), 0);
    tatcell_http_policy_t p = policy("p", &d);
    EQ(tatcell_cell_peek(&cell, &limit, 0, 0, &d), TATCELL_NON_CONFORMING);
    EXPECT(d.in_debt == 1 && d.retry_after == 2000);
    EQ(tatcell_http_lines(&p, 1, 1000, TATCELL_HTTP_RATELIMIT | TATCELL_HTTP_RETRY_AFTER, text, sizeof text), 24);
    EXPECT(strcmp(text, "RateLimit: \"p\";r=0;t=7\r\n") == 0);
    EQ(tatcell_cell_check_ex(&cell, &limit, 0, 0, 0, &d, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_RETRY_AFTER, text, sizeof text), 1);
    EQ(tatcell_cell_peek(&cell, &limit, 0, 1, &d), TATCELL_NON_CONFORMING);
    EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_RETRY_AFTER, text, sizeof text), 1);
    EQ(d.in_debt, 0);
}

/* A chain takes decisions that were zeroed, and so do the fields; one that no call has filled is refused. */
TEST(zeroed_decisions_of_a_chain_are_taken) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_link_t link = TATCELL_LINK_INIT;
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    tatcell_decision_t each[2];
    char text[40];
    memset(each, 0, sizeof each);
    EQ(tatcell_limit_init(&limit, 2, 1000, 10), 0);
    link.cell = &cell, link.limit = &limit, link.cost = 7;
    chain.links = &link, chain.link_size = sizeof link, chain.count = 1;
    chain.decisions = each, chain.decision_size = sizeof *each;
    EQ(tatcell_chain_check(&chain, 0, NULL), 0);
    tatcell_http_policy_t p = policy("p", &each[0]);
    EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text), 11);
    EXPECT(strcmp(text, "\"p\";r=3;t=4") == 0);
    p.decision = &each[1];
    EQ(tatcell_http_value(&p, 1, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text), TATCELL_ERR_OPTION);
}

int main(void) {
    RUN(each_field_has_its_value_and_its_line);
    RUN(buffers_of_every_length_are_filled_ended_and_never_passed);
    RUN(several_policies_stand_in_one_field);
    RUN(limits_of_every_kind_give_quota_and_window);
    RUN(names_are_texts_of_structured_fields);
    RUN(bad_arguments_write_nothing);
    RUN(a_decision_in_the_shadow_holds_the_client_to_nothing);
    RUN(policies_of_a_later_release_are_read_as_far_as_both_sides_know);
    RUN(a_peek_of_cost_0_in_debt_has_no_retry_after);
    RUN(zeroed_decisions_of_a_chain_are_taken);
    return check_end();
}
