/* Stands in for Zephyr's kernel: irq_lock of one core. */
#include <stdint.h>

#if defined(__arm__)
static inline unsigned int irq_lock(void) {
    uint32_t primask;
    __asm__ volatile("mrs %0, PRIMASK\n cpsid i" : "=r"(primask)::"memory");
    return primask;
}
static inline void irq_unlock(unsigned int key) { __asm__ volatile("msr PRIMASK, %0" ::"r"(key) : "memory"); }
#else
static inline unsigned int irq_lock(void) {
    uint32_t mstatus;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(mstatus)::"memory");
    return mstatus & 8;
}
static inline void irq_unlock(unsigned int key) { __asm__ volatile("csrs mstatus, %0" ::"r"(key) : "memory"); }
#endif
