/* policer.c - limits the packets of an interface by their source. See `usage` below.
 *
 * The table lives in the memory of a map, which this tool initialises, sweeps and reads through the library while the
 * program in the kernel decides in it. Everything is pinned, so the tool need not stay. */
#include "maps.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ticks: the clock counts nanoseconds. */
#define SECOND 1000000000ULL

static const char USAGE[] =
    "policer attach IF --rate N --burst N [...]   limit the packets that IF receives, by source\n"
    "policer limit IF --rate N --burst N [...]    other limits, at once; the debts of sources stay\n"
    "policer stats IF                             what packets came to, and what the table holds\n"
    "policer top IF [--count N]                   the sources with the longest debts\n"
    "policer reset IF --source ADDRESS            forgive one source\n"
    "policer sweep IF                             empty all slots that have long expired\n"
    "policer watch IF [--every SECONDS]           statistics again and again, sweeping as often as is needed\n"
    "policer detach IF\n"
    "\n"
    "Limits:\n"
    "  --rate N[/TIME]      packets, or bytes with --bytes, of each source: 100, 5/m, 2MB/s, \"10/s burst 20\"\n"
    "  --burst N            most of them at one instant after idle: 200, 64kB\n"
    "  --all N[/TIME]       and of all sources together, with --all-burst N; 0: no such limit\n"
    "  --dry-run            refuse nothing, count what would be refused\n"
    "  --undecided NAME     what a packet gets that gets no verdict, as other CPUs won every attempt: pass (default),\n"
    "                       refuse\n"
    "attach, too:\n"
    "  --slots N            of the table (65536), 8 bytes each: twice the sources that are busy at once, or more\n"
    "  --policy NAME        what a source finds that finds no slot: admit (default), inherit, deny, sampled\n"
    "  --fastest N --slowest N --longest N\n"
    "                       limits up to this rate, down to this rate and up to this burst can be set later\n"
    "                       (default: 100 times the rate, a tenth of it, 10 times the burst)\n"
    "  --bytes              packets cost their bytes\n"
    "  --mode NAME          auto (default), native, generic (both XDP), tc\n"
    "  --object FILE        of the program (policer.bpf.o next to this tool)\n";

struct options {
    const char *rate, *burst, *all, *all_burst, *fastest, *slowest, *object, *source;
    uint64_t slots, longest, count, every;
    uint32_t policy;
    enum mode mode;
    int bytes, dry_run, undecided;
};

static uint64_t number(const char *text, const char *name) {
    char *end;
    unsigned long long n;
    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') die("--%s %s: no number", name, text);
    return n;
}

/* A name's place in a list that ends with NULL. */
static int choice(const char *text, const char *name, const char *const *list) {
    char known[128] = "";
    for (int i = 0; list[i]; i++) {
        if (!strcmp(list[i], text)) return i;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", list[i]);
    }
    die("--%s %s: it is one of %s", name, text, known);
}

static struct options read_options(int argc, char **argv) {
    static const char *const POLICIES[] = {"admit", "inherit", "deny", "sampled", NULL};
    static const char *const UNDECIDED[] = {"pass", "refuse", NULL};
    static const char *const MODES[] = {"auto", "native", "generic", "tc", NULL};
    static const struct option LONG[] = {
        {"rate", 1, NULL, 'r'},    {"burst", 1, NULL, 'b'},   {"all", 1, NULL, 'a'},    {"all-burst", 1, NULL, 'A'},
        {"dry-run", 0, NULL, 'd'}, {"slots", 1, NULL, 's'},   {"policy", 1, NULL, 'p'}, {"fastest", 1, NULL, 'F'},
        {"slowest", 1, NULL, 'S'}, {"longest", 1, NULL, 'L'}, {"bytes", 0, NULL, 'B'},  {"mode", 1, NULL, 'm'},
        {"object", 1, NULL, 'o'},  {"count", 1, NULL, 'c'},   {"source", 1, NULL, 'x'}, {"every", 1, NULL, 'e'},
        {"undecided", 1, NULL, 'u'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.slots = 65536, .count = 10, .every = 1, .undecided = -1};
    int at, c;
    while ((c = getopt_long(argc, argv, "", LONG, &at)) != -1) {
        const char *name = c == '?' ? "" : LONG[at].name;
        switch (c) {
        case 'r': o.rate = optarg; break;
        case 'b': o.burst = optarg; break;
        case 'a': o.all = optarg; break;
        case 'A': o.all_burst = optarg; break;
        case 'd': o.dry_run = 1; break;
        case 's': o.slots = number(optarg, name); break;
        case 'p': o.policy = (uint32_t)choice(optarg, name, POLICIES); break;
        case 'F': o.fastest = optarg; break;
        case 'S': o.slowest = optarg; break;
        case 'L': o.longest = number(optarg, name); break;
        case 'B': o.bytes = 1; break;
        case 'm': o.mode = (enum mode)choice(optarg, name, MODES); break;
        case 'o': o.object = optarg; break;
        case 'c': o.count = number(optarg, name); break;
        case 'x': o.source = optarg; break;
        case 'e': o.every = number(optarg, name); break;
        case 'u': o.undecided = choice(optarg, name, UNDECIDED); break;
        default: fputs(USAGE, stderr), exit(2);
        }
    }
    if (optind < argc) die("%s: what is it for?", argv[optind]);
    return o;
}

/* A limit as the library reads it, in nanoseconds; a number alone is a second's. The burst may be in the text. */
static tatcell_limit_spec_t spec_of(const char *name, const char *rate, const char *burst) {
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    char text[128];
    size_t at = 0;
    int length = snprintf(text, sizeof text, "%s%s%s%s", rate, strchr(rate, '/') ? "" : "/s", burst ? " burst " : "",
                          burst ? burst : "");
    if (length >= (int)sizeof text) die("--%s %s: a limit has at most %zu bytes", name, rate, sizeof text - 1);
    if (tatcell_limit_spec_parse(&spec, text, (size_t)length, 1000000000, &at) != 0)
        die("--%s: \"%s\", byte %zu, \"%s\": write 100, 5/m or \"2MB/s burst 64kB\"", name, text, at, text + at);
    return spec;
}

/* Whether something says what may come at one instant. */
static int has_burst(const char *rate, const char *burst) {
    return burst || strstr(rate, "burst");
}

/* Writes the limits of the other turn, then the turn. A dry run is said in the limit of a source, for both. */
static void set_limits(struct policer *p, const struct options *o) {
    struct settings *set = p->settings;
    uint32_t turn = (set->turn ^ 1) & 1;
    tatcell_limit_spec_t spec;
    tatcell_limit_t limit;
    tatcell_bpf_limit_t source, all = set->all[turn ^ 1];
    if (!o->rate || !has_burst(o->rate, o->burst)) die("--rate and --burst: what may a source send?");
    spec = spec_of("rate", o->rate, o->burst);
    if (o->dry_run) spec.flags |= TATCELL_LIMIT_SHADOW;
    must(tatcell_limit_init_table(&limit, &p->table, &spec), "--rate and --burst");
    must(tatcell_bpf_limit_init_table(&source, &p->table, &limit), "--rate and --burst");
    if (o->all && !strcmp(o->all, "0")) {
        memset(&all, 0, sizeof all);
    } else if (o->all) {
        if (!has_burst(o->all, o->all_burst)) die("--all needs --all-burst");
        spec = spec_of("all", o->all, o->all_burst);
        /* One resolution for all such limits, so that a debt in the cell stays what it is. */
        spec.flags |= TATCELL_LIMIT_RESOLUTION, spec.resolution = 10;
        must(tatcell_limit_init_spec(&limit, &spec), "--all and --all-burst");
        must(tatcell_bpf_limit_init(&all, &limit), "--all and --all-burst");
    }
    set->source[turn] = source;
    set->all[turn] = all;
    if (o->undecided >= 0) set->refuse_undecided = (uint32_t)o->undecided;
    __atomic_store_n(&set->turn, turn, __ATOMIC_RELEASE);
}

static void do_attach(struct policer *p, const struct options *o) {
    struct shape shape = {.slots = o->slots, .policy = o->policy};
    tatcell_limit_spec_t spec;
    char beside[4096] = "policer.bpf.o";
    ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - 8);
    if (length > 0) strcpy(beside + length, ".bpf.o");
    if (!o->rate || !has_burst(o->rate, o->burst)) die("--rate and --burst: what may a source send?");
    spec = spec_of("rate", o->rate, o->burst);
    shape.fastest = o->fastest ? spec_of("fastest", o->fastest, NULL) : spec;
    shape.slowest = o->slowest ? spec_of("slowest", o->slowest, NULL) : spec;
    shape.fastest.burst = shape.slowest.burst = o->longest ? o->longest : spec.burst * 10;
    if (!o->fastest) shape.fastest.units *= 100;
    if (!o->slowest) shape.slowest.period *= 10;
    make(p, o->object ? o->object : beside, &shape);
    p->settings->bytes = (uint32_t)o->bytes;
    set_limits(p, o);
    attach(p, o->mode);
}

static void print_key(uint64_t low, uint64_t high) {
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[16] = {0};
    uint64_t rest = low >> 16 | high << 48;
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(rest >> 8 * i); /* the first in the lowest bits */
    if ((low & 0xff) == 4) {
        inet_ntop(AF_INET, bytes, text, sizeof text);
        printf("%s", text);
    } else {
        inet_ntop(AF_INET6, bytes, text, sizeof text);
        printf("%s/64", text);
    }
}

static uint64_t hash_of(const struct policer *p, uint64_t low, uint64_t high) {
    return tatcell_bpf_hash(&p->settings->table, low, high, (low & 0xff) == 4 ? KEY_BYTES_4 : KEY_BYTES_6);
}

static void do_top(const struct policer *p, uint64_t count) {
    tatcell_slot_t top[64];
    uint32_t found = 0;
    must(tatcell_table_top(&p->table, now(), top, (uint32_t)(count < 64 ? count : 64), &found), "top");
    for (uint32_t i = 0; i < found; i++) {
        int named = 0;
        printf("%10.3f ms  ", (double)top[i].reset_after / 1e6);
        for (uint32_t at = 0; at < REFUSED_PLACES && !named; at++) {
            struct refused r = p->refused[at];
            uint64_t hash = hash_of(p, r.low, r.high);
            if (r.low == 0 || (hash & (REFUSED_PLACES - 1)) != at) continue; /* none, or half of two */
            named = tatcell_table_may_be(&p->table, &top[i], hash) == 0;
            if (named) print_key(r.low, r.high);
        }
        printf("%s\n", named ? "" : "not refused so far");
    }
}

static void do_stats(const struct policer *p) {
    static const char *const NAMES[] = COUNTS;
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    struct counts sum = total(p);
    must(tatcell_table_stats(&p->table, now(), &stats), "stats");
    for (int i = 0; i < COUNT; i++) printf("%-26s %llu\n", NAMES[i], (unsigned long long)sum.of[i]);
    printf("%-26s %llu of %llu (%.2f %%)\n", "slots in use", (unsigned long long)stats.live,
           (unsigned long long)stats.slots, (double)stats.load_ppm / 1e4);
}

static void do_watch(const struct policer *p, uint64_t seconds) {
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    struct counts before = total(p);
    uint64_t from = 0, at = now(), slice, pause;
    if (seconds == 0 || seconds > 1000000000) die("--every takes 1 to 1000000000 seconds");
    must(tatcell_table_info(&p->table, &info), "info");
    /* Sweeps all slots within half of the interval, and at least a 60th of them a time, however seldom it tells. */
    pause = info.sweep_interval / 8 < SECOND ? info.sweep_interval / 8 : SECOND;
    slice = info.slots / (info.sweep_interval / 2 / pause) + info.slots / 60 + 1;
    printf("%12s %12s %12s %12s %12s %10s\n", "passed/s", "refused/s", "all/s", "undecided/s", "new/s", "in use");
    for (;;) {
        tatcell_stats_t stats = TATCELL_STATS_INIT;
        struct counts sum;
        const uint64_t begin = at, end = begin + seconds * SECOND;
        for (; at < end; at = now()) {
            const uint64_t nap = end - at < pause ? end - at : pause;
            const struct timespec rest = {(time_t)(nap / SECOND), (long)(nap % SECOND)};
            (void)nanosleep(&rest, NULL);
            must(tatcell_table_sweep(&p->table, now(), from, slice, &from), "sweep");
        }
        sum = total(p);
        must(tatcell_table_stats(&p->table, now(), &stats), "stats");
#define PER_SECOND(i) (unsigned long long)((double)(sum.of[i] - before.of[i]) * SECOND / (double)(at - begin))
        printf("%12llu %12llu %12llu %12llu %12llu %10llu\n", PER_SECOND(PASSED), PER_SECOND(REFUSED), PER_SECOND(ALL),
               PER_SECOND(UNDECIDED), PER_SECOND(INSERTED), (unsigned long long)stats.live);
        fflush(stdout);
        before = sum;
    }
}

static void do_reset(const struct policer *p, const char *source) {
    uint8_t address[16], bytes[16];
    uint64_t words[2] = {0, 0};
    size_t length = 0;
    uint64_t hash;
    if (!source) die("--source: which?");
    if (inet_pton(AF_INET, source, address) == 1) length = 4;
    if (!length && inet_pton(AF_INET6, source, address) == 1) length = 16;
    if (!length) die("%s is no address", source);
    must(tatcell_address_canonical(address, length, bytes, &length), "the address");
    for (size_t i = 0; i < 8; i++) words[i / 6] |= (uint64_t)bytes[i] << (i < 6 ? 8 * i + 16 : 8 * (i - 6));
    if (length == 4) words[0] = (words[0] & 0xffffffff0000) | 4 | 32 << 8, words[1] = 0;
    if (length == 16) words[0] |= 6 | 64 << 8;
    hash = hash_of(p, words[0], words[1]);
    must(tatcell_table_reset_hash(&p->table, now(), hash), "reset");
}

int main(int argc, char **argv) {
    struct policer p = {0};
    struct options o;
    const char *verb = argc > 2 ? argv[1] : "";
    if (argc < 3) return fputs(USAGE, stderr), 2;
    p.interface = argv[2];
    o = read_options(argc - 2, argv + 2);
    if (!strcmp(verb, "attach")) return do_attach(&p, &o), 0;
    if (!strcmp(verb, "detach")) {
        if (!detach(&p)) die("no policer on %s", p.interface);
        return 0;
    }
    find(&p);
    if (!strcmp(verb, "limit")) return alone(&p), set_limits(&p, &o), 0;
    if (!strcmp(verb, "stats")) return do_stats(&p), 0;
    if (!strcmp(verb, "top")) return do_top(&p, o.count), 0;
    if (!strcmp(verb, "watch")) return do_watch(&p, o.every), 0;
    if (!strcmp(verb, "reset")) return do_reset(&p, o.source), 0;
    if (!strcmp(verb, "sweep")) {
        must(tatcell_table_sweep(&p.table, now(), 0, UINT64_MAX, NULL), "sweep");
        return 0;
    }
    return fputs(USAGE, stderr), 2;
}
