// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * measure.c - what a decision costs, in instructions: for QEMU with -icount shift=0, whose time stamp counter moves by
 * one for each instruction. A loop of known length says whether it does. Loading it prints; it then has nothing to do.
 */
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>

#include <tatcell.h>

#define CALLS 2000
#define LOOP 100000
#define SLOTS 65536
#define NOW 1000000		/* one instant: nothing drains */

enum what { NOTHING, CLOCK, CELL, TABLE, DECISION };

static tatcell_cell_t cell;
static tatcell_table_t table;
static tatcell_counters_t counters = TATCELL_COUNTERS_INIT;
static u32 passed;

/* Two instructions a turn. */
static noinline void turns(unsigned long n)
{
	asm volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc");
}

static noinline u64 took(enum what what, const tatcell_limit_t *limit, u32 key, u32 step)
{
	tatcell_decision_t decision = TATCELL_DECISION_INIT;
	unsigned long flags;
	u64 start, end;
	s32 rc = 0;
	int i;

	passed = 0;
	local_irq_save(flags);
	start = rdtsc_ordered();
	for (i = 0; i < CALLS; i++, key += step) {
		switch (what) {
		case NOTHING:
			barrier();
			break;
		case CLOCK:
			rc = ktime_get_ns() == 0;
			break;
		case CELL:
			rc = tatcell_cell_check(&cell, limit, NOW, 1, NULL);
			break;
		case TABLE:
			rc = tatcell_table_check(&table, limit, NOW, &key, sizeof(key), 1, NULL);
			break;
		case DECISION:
			rc = tatcell_table_check_ex(&table, limit, NOW, &key, sizeof(key), 1, 0, &decision, &counters);
			break;
		}
		passed += rc == 0;
	}
	end = rdtsc_ordered();
	local_irq_restore(flags);
	return end - start;
}

static int told(const char *name, u64 ticks, u64 nothing, u32 wanted)
{
	if (passed != wanted) {
		pr_err("tatcell_measure: FAIL %s: %u of %d pass, %u wanted\n", name, passed, CALLS, wanted);
		return -EIO;
	}
	pr_info("tatcell_measure: %s: %llu\n", name, (ticks - nothing + CALLS / 2) / CALLS);
	return 0;
}

static int __init measure_start(void)
{
	tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
	tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
	tatcell_limit_t one, all, in_table, none_left;
	size_t bytes = tatcell_table_bytes(SLOTS);
	void *memory = vzalloc(bytes);
	u8 seed[16] = "sixteen bytes: x";
	unsigned long flags;
	u64 start, nothing;
	int rc = -EINVAL;

	if (!memory)
		return -ENOMEM;
	local_irq_save(flags);
	start = rdtsc_ordered();
	turns(LOOP);
	start = rdtsc_ordered() - start;
	local_irq_restore(flags);
	if (start < 2 * LOOP || start > 2 * LOOP + 50) {
		pr_err("tatcell_measure: FAIL a loop of %d instructions is %llu ticks: -icount shift=0\n", 2 * LOOP, start);
		goto out;
	}
	pr_info("tatcell_measure: a loop of %d instructions: %llu\n", 2 * LOOP, start);

	spec.units = 1000;
	spec.period = NSEC_PER_SEC;
	spec.burst = 100000;
	options.fastest = &spec;
	options.seed = seed;
	if (tatcell_limit_init_spec(&all, &spec) < 0 || tatcell_table_init(&table, memory, bytes, &options) < 0 ||
	    tatcell_limit_init_table(&in_table, &table, &spec) < 0)
		goto out;
	spec.burst = 1;
	if (tatcell_limit_init_spec(&one, &spec) < 0 || tatcell_limit_init_table(&none_left, &table, &spec) < 0)
		goto out;

	nothing = took(NOTHING, NULL, 0, 0);
	rc = told("the clock, ktime_get_ns", took(CLOCK, NULL, 0, 0), nothing, CALLS);
	rc = rc ?: told("a cell, passes", took(CELL, &all, 0, 0), nothing, CALLS);
	rc = rc ?: told("a cell, does not", took(CELL, &one, 0, 0), nothing, 0);
	rc = rc ?: told("a table, 2000 new keys", took(TABLE, &in_table, 1, 1), nothing, CALLS);
	rc = rc ?: told("a table, 2000 known keys pass", took(TABLE, &in_table, 1, 1), nothing, CALLS);
	rc = rc ?: told("a table, they do not", took(TABLE, &none_left, 1, 1), nothing, 0);
	rc = rc ?: told("with decision and counters, they pass", took(DECISION, &in_table, 1, 1), nothing, CALLS);
	rc = rc ?: told("with decision and counters, they do not", took(DECISION, &none_left, 1, 1), nothing, 0);
out:
	vfree(memory);
	return rc;
}

static void __exit measure_stop(void)
{
}

module_init(measure_start);
module_exit(measure_stop);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Counts the instructions of decisions in QEMU");
