/* Stands in for FreeRTOS on one core: a nesting critical section. */
#include <stdint.h>

typedef struct {
    uint32_t nesting, mie;
} portMUX_TYPE;
#define portMUX_INITIALIZER_UNLOCKED {0, 0}

static inline void portENTER_CRITICAL_SAFE(portMUX_TYPE *mux) {
    uint32_t mstatus;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(mstatus)::"memory");
    if (mux->nesting++ == 0) mux->mie = mstatus & 8;
}
static inline void portEXIT_CRITICAL_SAFE(portMUX_TYPE *mux) {
    if (--mux->nesting == 0) __asm__ volatile("csrs mstatus, %0" ::"r"(mux->mie) : "memory");
}
