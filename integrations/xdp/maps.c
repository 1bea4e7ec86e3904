/* maps.c - making, pinning and finding the maps of a policer, and handing its program to an interface. */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/if_link.h>

#define PINS "/sys/fs/bpf/tatcell"

static const char *const MAPS[] = {"image", "settings", "all", "counts", "refused"};
static struct bpf_object *object;
/* What is pinned and not attached yet: it goes if that does not come about. */
static struct policer *unfinished;

void die(const char *format, ...) {
    struct policer *p = unfinished;
    va_list args;
    unfinished = NULL;
    if (p) detach(p);
    va_start(args, format);
    fputs("policer: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void must(int32_t rc, const char *what) {
    if (rc < 0) die("%s: %s", what, tatcell_strerror(rc));
}

uint64_t now(void) {
    uint64_t ns = 0;
    must(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &ns, NULL), "the clock");
    return ns;
}

/* The pin of a map, or the folder of all where there is no name. */
static const char *pin(const struct policer *p, const char *name) {
    static char path[sizeof PINS + IFNAMSIZ + 32];
    snprintf(path, sizeof path, "%s/%s%s%s", PINS, p->interface, name ? "/" : "", name ? name : "");
    return path;
}

static void *mapped(int fd, size_t bytes, int flags) {
    void *memory = mmap(NULL, (bytes + 4095) & ~(size_t)4095, flags, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) die("a map cannot be mapped: %s", strerror(errno));
    return memory;
}

static int opened(const struct policer *p, const char *name) {
    int fd = bpf_obj_get(pin(p, name));
    if (fd < 0) die("no policer on %s (%s: %s)", p->interface, pin(p, name), strerror(errno));
    return fd;
}

static void know(struct policer *p) {
    p->index = (int)if_nametoindex(p->interface);
    if (p->index == 0) die("no interface %s", p->interface);
}

static int map_fd(const char *name) {
    return bpf_object__find_map_fd_by_name(object, name);
}

void make(struct policer *p, const char *path, const struct shape *shape) {
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    size_t bytes = tatcell_table_bytes(shape->slots);
    uint8_t seed[16];
    void *image;
    know(p);
    if (access(pin(p, NULL), F_OK) == 0) die("%s has a policer: detach it first", p->interface);
    object = bpf_object__open_file(path, NULL);
    if (!object) die("%s: %s", path, strerror(errno));
    if (bytes / 64 > UINT32_MAX) die("%llu slots are more than a map can hold", (unsigned long long)shape->slots);
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "image"), (uint32_t)(bytes / 64));
    if (bpf_object__load(object)) die("%s is not loaded: %s", path, strerror(errno));
    image = mapped(map_fd("image"), bytes, PROT_READ | PROT_WRITE);
    p->settings = mapped(map_fd("settings"), sizeof *p->settings, PROT_READ | PROT_WRITE);
    p->all = mapped(map_fd("all"), sizeof *p->all, PROT_READ | PROT_WRITE);
    p->counts = map_fd("counts");
    must(tatcell_host_random(seed, sizeof seed, NULL), "no secret bytes");
    options.fastest = &shape->fastest, options.slowest = &shape->slowest, options.seed = seed;
    options.policy = shape->policy, options.tick_hz = 1000000000;
    must(tatcell_table_init(&p->table, image, bytes, &options), "the table");
    must(tatcell_bpf_table_init(&p->settings->table, &p->table, seed), "the table");
    explicit_bzero(seed, sizeof seed);
    mkdir(PINS, 0700);
    if (mkdir(pin(p, NULL), 0700)) die("%s: %s; mount -t bpf bpf /sys/fs/bpf", pin(p, NULL), strerror(errno));
    unfinished = p;
    for (size_t i = 0; i < sizeof MAPS / sizeof MAPS[0]; i++)
        if (bpf_obj_pin(map_fd(MAPS[i]), pin(p, MAPS[i]))) die("%s: %s", pin(p, MAPS[i]), strerror(errno));
}

static struct bpf_tc_hook hook_of(const struct policer *p) {
    struct bpf_tc_hook hook = {.sz = sizeof hook, .ifindex = p->index, .attach_point = BPF_TC_INGRESS};
    return hook;
}

void attach(struct policer *p, enum mode mode) {
    static const uint32_t FLAGS[] = {0, XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE};
    int program, link;
    if (mode == TC) {
        struct bpf_tc_hook hook = hook_of(p);
        LIBBPF_OPTS(bpf_tc_opts, options, .handle = 1, .priority = 1, );
        options.prog_fd = bpf_program__fd(bpf_object__find_program_by_name(object, "policer_tc"));
        /* The hook may be there already; libbpf would say so. */
        libbpf_print_fn_t before = libbpf_set_print(NULL);
        link = bpf_tc_hook_create(&hook);
        libbpf_set_print(before);
        if (link && link != -EEXIST) goto bad;
        link = bpf_tc_attach(&hook, &options);
        if (link) goto bad;
        p->settings->tc = (uint32_t)p->index;
        unfinished = NULL;
        return;
    }
    LIBBPF_OPTS(bpf_link_create_opts, options, .flags = FLAGS[mode]);
    program = bpf_program__fd(bpf_object__find_program_by_name(object, "policer_xdp"));
    link = bpf_link_create(program, p->index, BPF_XDP, &options);
    if (link < 0) goto bad;
    /* The link lives as long as its pin. */
    if (bpf_obj_pin(link, pin(p, "link")) == 0) {
        unfinished = NULL;
        return;
    }
bad:
    die("%s does not take the program: %s", p->interface, strerror(errno));
}

void find(struct policer *p) {
    tatcell_attach_options_t options = TATCELL_ATTACH_OPTIONS_INIT;
    struct bpf_map_info info = {0};
    uint32_t size = sizeof info;
    uint8_t seed[16];
    size_t bytes;
    int image;
    know(p);
    image = opened(p, "image");
    if (bpf_obj_get_info_by_fd(image, &info, &size)) die("image: %s", strerror(errno));
    bytes = (size_t)info.max_entries * 64;
    p->settings = mapped(opened(p, "settings"), sizeof *p->settings, PROT_READ | PROT_WRITE);
    p->all = mapped(opened(p, "all"), sizeof *p->all, PROT_READ | PROT_WRITE);
    p->refused = mapped(opened(p, "refused"), REFUSED_PLACES * sizeof *p->refused, PROT_READ);
    p->counts = opened(p, "counts");
    for (int i = 0; i < 8; i++) {
        seed[i] = (uint8_t)(p->settings->table.seed_low >> 8 * i);
        seed[8 + i] = (uint8_t)(p->settings->table.seed_high >> 8 * i);
    }
    options.seed = seed;
    must(tatcell_table_attach(&p->table, mapped(image, bytes, PROT_READ | PROT_WRITE), bytes, &options), "the table");
    explicit_bzero(seed, sizeof seed);
}

void alone(const struct policer *p) {
    int fd = open(pin(p, NULL), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX)) die("%s: %s", pin(p, NULL), strerror(errno));
}

int detach(struct policer *p) {
    struct bpf_tc_hook hook;
    struct settings settings;
    uint32_t zero = 0;
    int fd;
    LIBBPF_OPTS(bpf_tc_opts, options, .handle = 1, .priority = 1);
    /* An interface that is gone has left its pins; another one of its name has filters that are not this policer's. */
    p->index = (int)if_nametoindex(p->interface);
    if (access(pin(p, NULL), F_OK)) return 0;
    fd = bpf_obj_get(pin(p, "settings"));
    if (fd >= 0 && bpf_map_lookup_elem(fd, &zero, &settings) == 0 && settings.tc && settings.tc == (uint32_t)p->index) {
        hook = hook_of(p);
        bpf_tc_detach(&hook, &options);
    }
    explicit_bzero(&settings, sizeof settings);
    unlink(pin(p, "link"));
    for (size_t i = 0; i < sizeof MAPS / sizeof MAPS[0]; i++) unlink(pin(p, MAPS[i]));
    rmdir(pin(p, NULL));
    return 1;
}

struct counts total(const struct policer *p) {
    int cpus = libbpf_num_possible_cpus();
    struct counts sum = {{0}}, *each = calloc((size_t)(cpus > 0 ? cpus : 1), sizeof *each);
    uint32_t zero = 0;
    if (each && cpus > 0 && bpf_map_lookup_elem(p->counts, &zero, each) == 0)
        for (int cpu = 0; cpu < cpus; cpu++)
            for (int i = 0; i < COUNT; i++) sum.of[i] += each[cpu].of[i];
    free(each);
    return sum;
}
