/* freestanding.c - no libc, no start files: the archive decides in a program that has nothing else (x86-64, aarch64).
 * Exit code 0 = the answers were right. The compiler may call the four functions below anywhere; nothing else. */
#include "tatcell.h"

void *memcpy(void *to, const void *from, size_t n) {
    for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int c, size_t n) {
    for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = (char)c;
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    volatile char *t = (volatile char *)to;
    const char *f = (const char *)from;
    if ((uintptr_t)to < (uintptr_t)from) return memcpy(to, from, n);
    while (n--) t[n] = f[n];
    return to;
}

int memcmp(const void *a, const void *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (((const volatile unsigned char *)a)[i] != ((const unsigned char *)b)[i]) return 1;
    return 0;
}

static tatcell_cell_t cell;
static union { char bytes[TATCELL_TABLE_BYTES(16)]; char align TATCELL_ALIGNED(64); } memory;

static int run(void) {
    static const uint8_t seed[16] = {1};
    tatcell_limit_t limit;
    tatcell_table_t table;
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    uint64_t retry = 0;
    if (tatcell_limit_init(&limit, 1, 1000000000, 5) != 0) return 1;
    for (int i = 0; i < 5; i++)
        if (tatcell_cell_check(&cell, &limit, 0, 1, &retry) != 0) return 2;
    if (tatcell_cell_check(&cell, &limit, 0, 1, &retry) != TATCELL_NON_CONFORMING || retry != 1000000000) return 3;
    spec.units = 1;
    spec.period = 1000000000;
    spec.burst = 1;
    options.fastest = &spec;
    options.seed = seed;
    if (tatcell_table_init(&table, &memory, sizeof memory, &options) != 0) return 4;
    if (tatcell_limit_init_table(&limit, &table, &spec) != 0) return 5;
    if (tatcell_table_check(&table, &limit, 0, "key", 3, 1, &retry) != 0) return 6;
    if (tatcell_table_check(&table, &limit, 0, "key", 3, 1, &retry) != TATCELL_NON_CONFORMING) return 7;
    return 0;
}

__attribute__((used)) _Noreturn void start(void) {
    long code = run();
#if defined(__x86_64__)
    __asm__ volatile("syscall" : : "a"(60L), "D"(code) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x0 __asm__("x0") = code, x8 __asm__("x8") = 93;
    __asm__ volatile("svc 0" : : "r"(x0), "r"(x8) : "memory");
#else
#error "no exit system call for this machine"
#endif
    for (;;) {}
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n and $-16, %rsp\n call start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n bl start\n");
#endif
