/* The critical section of libtatcell-critical.a, by FreeRTOS. SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdint.h>

#include "freertos/FreeRTOS.h"

uint32_t tatcell_critical_enter(void);
void tatcell_critical_exit(uint32_t state);

static portMUX_TYPE lock = portMUX_INITIALIZER_UNLOCKED;

/* The _SAFE form may be called by tasks and by interrupts; it nests. */
uint32_t tatcell_critical_enter(void) {
    portENTER_CRITICAL_SAFE(&lock);
    return 0;
}

void tatcell_critical_exit(uint32_t state) {
    (void)state;
    portEXIT_CRITICAL_SAFE(&lock);
}
