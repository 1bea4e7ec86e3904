/* process.c - a table in shared memory: one process initialises, others attach, at other addresses, and die; by single
 * calls and by bursts. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

enum { CHILDREN = 3 };

/* Beside the table in the same memory. */
typedef struct shared {
    unsigned char table[TATCELL_TABLE_BYTES(1024)];
    int go, waiting, refused_early[CHILDREN];
    long admitted[CHILDREN + 1], errors[CHILDREN + 1];
} shared;

static int memory_fd = -1;

static shared *map_shared(void) {
    void *p = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
    return p == MAP_FAILED ? NULL : (shared *)p;
}

static shared *fresh_shared(void) {
    if (memory_fd >= 0) close(memory_fd);
    memory_fd = memfd_create("tatcell-test", MFD_CLOEXEC);
    if (memory_fd < 0 || ftruncate(memory_fd, (off_t)sizeof(shared)) != 0) return NULL;
    return map_shared();
}

static long drain(const tatcell_table_t *t, const tatcell_limit_t *l, const char *key, long tries, long *errors) {
    long admitted = 0;
    for (long i = 0; i < tries; i++) {
        int32_t rc;
        while ((rc = tatcell_table_check(t, l, 0, key, strlen(key), 1, NULL)) == TATCELL_CONTENDED) {}
        admitted += rc == 0;
        *errors += rc < 0;
    }
    return admitted;
}

/* The same by bursts of one key, short ones and the longest in turn. What has lost every race does not pass. */
static long drain_by_bursts(const tatcell_table_t *t, const tatcell_limit_t *l, const char *key, long tries,
    long *errors) {
    const size_t len = strlen(key);
    const void *keys[TATCELL_BURST_MAX];
    size_t lens[TATCELL_BURST_MAX];
    long admitted = 0;
    for (int i = 0; i < TATCELL_BURST_MAX; i++) keys[i] = key, lens[i] = len;
    uint32_t count = 5;
    for (long i = 0; i < tries; i += count) {
        tatcell_burst_t b = TATCELL_BURST_INIT;
        count = count == 5 ? TATCELL_BURST_MAX : 5;
        b.limit = l, b.count = count, b.key_pointers = keys, b.key_lens = lens;
        *errors += tatcell_table_check_burst(t, &b, NULL) != 0;
        admitted += __builtin_popcountll(b.pass);
    }
    return admitted;
}

/* A child's own mapping, handle and limit. */
static int attach(shared **s, tatcell_table_t *t, tatcell_limit_t *l, const tatcell_limit_spec_t *spec,
    int *not_ready) {
    int32_t rc;
    *s = map_shared();
    if (!*s) return 0;
    while ((rc = tatcell_table_attach(t, (*s)->table, sizeof (*s)->table,
        kit_attach(kit_seed, 0))) == TATCELL_ERR_NOT_READY) {
        if (not_ready && !*not_ready) {
            *not_ready = 1;
            __atomic_fetch_add(&(*s)->waiting, 1, __ATOMIC_SEQ_CST);
        }
        usleep(100);
    }
    return rc == 0 && tatcell_limit_init_table(l, t, spec) == 0;
}

TEST(processes_share_one_limit_from_the_first_request) {
    /* More than three of the processes try, so that each form must have its share. */
    enum { TRIES = 200000, BURST = 700000 };
    shared *s = fresh_shared();
    if (!s) SKIP("memfd_create: %s", strerror(errno));
    tatcell_limit_spec_t spec = kit_spec(1, 1024, BURST);
    pid_t pid[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        EXPECT((pid[i] = fork()) >= 0);
        if (pid[i] == 0) {
            shared *mine = NULL;
            tatcell_table_t t;
            tatcell_limit_t l;
            int not_ready = 0;
            if (!attach(&mine, &t, &l, &spec, &not_ready)) _exit(2);
            if (mine == s) _exit(3);
            mine->refused_early[i] = not_ready;
            mine->admitted[i] = (i % 2 == 0 ? drain_by_bursts : drain)(&t, &l, "one key", TRIES, &mine->errors[i]);
            _exit(0);
        }
    }
    /* Every child has been told NOT_READY before the table is made. */
    while (__atomic_load_n(&s->waiting, __ATOMIC_SEQ_CST) < CHILDREN) usleep(100);
    tatcell_table_t t;
    tatcell_limit_t l;
    tatcell_table_options_t o = kit_options(&spec);
    EQ(tatcell_table_init(&t, s->table, sizeof s->table, &o), 0);
    EQ(tatcell_limit_init_table(&l, &t, &spec), 0);
    s->admitted[CHILDREN] = drain(&t, &l, "one key", TRIES, &s->errors[CHILDREN]);
    long admitted = s->admitted[CHILDREN], errors = s->errors[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        int status = -1;
        EXPECT(waitpid(pid[i], &status, 0) == pid[i]);
        EQ(status, 0);
        EQ(s->refused_early[i], 1);
        admitted += s->admitted[i];
        errors += s->errors[i];
    }
    EQ(errors, 0);
    EQ(admitted, BURST);
    munmap(s, sizeof *s);
}

/* What the header says of fork: the child uses the handle that it has a copy of. */
TEST(a_handle_survives_fork) {
    shared *s = fresh_shared();
    if (!s) SKIP("memfd_create: %s", strerror(errno));
    tatcell_limit_spec_t spec = kit_spec(1, 1 << 20, 3);
    tatcell_table_options_t o = kit_options(&spec);
    tatcell_table_t t;
    tatcell_limit_t l;
    EQ(tatcell_table_init(&t, s->table, sizeof s->table, &o), 0);
    EQ(tatcell_limit_init_table(&l, &t, &spec), 0);
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) _exit(tatcell_table_check(&t, &l, 5, "key", 3, 2, NULL) != 0);
    int status = -1;
    EXPECT(waitpid(pid, &status, 0) == pid);
    EQ(status, 0);
    EQ(tatcell_table_check(&t, &l, 5, "key", 3, 2, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_table_check(&t, &l, 5, "key", 3, 1, NULL), 0);
}

TEST(a_killed_process_leaves_nothing_locked_or_minted) {
    enum { KILLS = 40, KEYS = 512, BURST = 3 };
    shared *s = fresh_shared();
    if (!s) SKIP("memfd_create: %s", strerror(errno));
    tatcell_limit_spec_t spec = kit_spec(1, 1 << 20, BURST);
    tatcell_table_options_t o = kit_options(&spec);
    tatcell_table_t t;
    tatcell_limit_t l;
    o.policy = TATCELL_FULL_DENY;
    EQ(tatcell_table_init(&t, s->table, sizeof s->table, &o), 0);
    EQ(tatcell_limit_init_table(&l, &t, &spec), 0);
    for (int round = 0; round < KILLS; round++) {
        NOTE("round %d", round);
        s->go = 0;
        pid_t pid = fork();
        EXPECT(pid >= 0);
        if (pid == 0) {
            shared *mine = NULL;
            tatcell_table_t ct;
            tatcell_limit_t cl;
            if (!attach(&mine, &ct, &cl, &spec, NULL)) _exit(2);
            for (uint64_t n = 0;; n++) { /* inserts, charges, denials, resets, until killed */
                char key[32];
                snprintf(key, sizeof key, "victim %d", (int)(n * 7919 % 4096));
                if (n % 2 == 0) {
                    TATCELL_IGNORE(tatcell_table_check(&ct, &cl, n, key, strlen(key), 1, NULL));
                } else {
                    uint32_t keys[8];
                    for (uint32_t i = 0; i < 8; i++) keys[i] = (uint32_t)(n * 7919 + i * 509) % 4096;
                    tatcell_burst_t b = kit_burst(&cl, n, keys, sizeof *keys, sizeof *keys, 8);
                    if (tatcell_table_check_burst(&ct, &b, NULL) != 0) _exit(4);
                }
                __atomic_store_n(&mine->go, 1, __ATOMIC_RELAXED);
            }
        }
        while (!__atomic_load_n(&s->go, __ATOMIC_RELAXED)) usleep(50);
        usleep((unsigned)(round * 53 % 997));
        kill(pid, SIGKILL);
        EXPECT(waitpid(pid, NULL, 0) == pid);
        /* Much later, every slot that the dead process held has drained: each key gets its burst and no more. */
        uint64_t now = (uint64_t)(round + 1) << 34;
        int none = 0;
        for (int k = 0; k < KEYS / 8; k++) {
            char key[64];
            int passed = 0;
            snprintf(key, sizeof key, "round %d key %d", round, k);
            for (int i = 0; i < 2 * BURST; i++) {
                int32_t rc = tatcell_table_check(&t, &l, now, key, strlen(key), 1, NULL);
                EXPECT(rc == 0 || rc == TATCELL_NON_CONFORMING);
                passed += rc == 0;
            }
            EXPECT(passed == BURST || passed == 0); /* 0: its set was full of the others */
            none += passed == 0;
        }
        EXPECT(none <= 2);
    }
    munmap(s, sizeof *s);
}

int main(void) {
    RUN(processes_share_one_limit_from_the_first_request);
    RUN(a_handle_survives_fork);
    RUN(a_killed_process_leaves_nothing_locked_or_minted);
    return check_end();
}
