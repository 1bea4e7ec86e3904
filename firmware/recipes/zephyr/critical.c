/* The critical section of libtatcell-critical.a, by Zephyr. SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdint.h>
#include <zephyr/kernel.h>

uint32_t tatcell_critical_enter(void);
void tatcell_critical_exit(uint32_t key);

/* irq_lock nests, works in interrupts, and on several cores is a global lock. */
uint32_t tatcell_critical_enter(void) { return irq_lock(); }

void tatcell_critical_exit(uint32_t key) { irq_unlock(key); }
