// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test.c - kernel threads and a timer in hard-interrupt context share a cell, two cells of a chain and the keys of a
 * table: what is admitted must be exactly the burst. Its claims are lines in the log of the kernel; loading fails where
 * one does not hold.
 *
 * One claim is a negative control: the same threads on a cell for one owner admit something else, or the test would not
 * see what it is for.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>

#include <tatcell.h>

#define THREADS 4
#define CALLS 100000		/* of a thread in a round */
#define OWNED_CALLS 400000	/* and then, of the control */
#define OWNED_BURST 1500000	/* nearly all that they ask for, so that the threads are at it together */
#define BURST 150000		/* less than all of them ask for */
#define KEYS 4000
#define KEY_BURST 3
#define SLOTS 65536
#define NOW 1000000		/* one instant: nothing drains */

static unsigned int rounds = 3;
module_param(rounds, uint, 0444);

static tatcell_cell_t cell, owned, both[2];
static tatcell_limit_t cell_limit, owned_limit, key_limit;
static tatcell_table_t table;
static atomic64_t cell_passed, both_passed, owned_passed, irq_calls, unheard;
static atomic_t *key_passed;
static atomic_t left;
static atomic64_t turn;
static struct completion done;
static struct hrtimer timer;
static int bad;

static void claim(bool holds, const char *what, u64 found, u64 wanted)
{
	pr_info("tatcell_test: %s %s: %llu, %llu wanted\n", holds ? "PASS" : "FAIL", what, found, wanted);
	bad |= !holds;
}

/* One request of each; a request without a verdict is asked again, so that none is lost. */
static void ask(void)
{
	u64 key = atomic64_inc_return(&turn) / 16 % KEYS;
	tatcell_link_t links[2] = { TATCELL_LINK_INIT, TATCELL_LINK_INIT };
	tatcell_chain_t chain = TATCELL_CHAIN_INIT;
	int tries;
	s32 rc;

	for (tries = 0; tries < 2; tries++) {
		links[tries].cell = &both[tries];
		links[tries].limit = &cell_limit;
		links[tries].cost = 1;
	}
	chain.links = links;
	chain.count = 2;
	chain.link_size = sizeof(links[0]);
	for (tries = 0; tries < 100; tries++) {
		rc = tatcell_cell_check(&cell, &cell_limit, NOW, 1, NULL);
		if (rc != TATCELL_CONTENDED)
			break;
	}
	if (rc == TATCELL_PASS)
		atomic64_inc(&cell_passed);
	if (rc == TATCELL_CONTENDED || rc < 0)
		atomic64_inc(&unheard);
	for (tries = 0; tries < 100; tries++) {
		rc = tatcell_chain_verdict(&chain, NOW);
		if (rc != TATCELL_CONTENDED)
			break;
	}
	if (rc == TATCELL_PASS)
		atomic64_inc(&both_passed);
	if (rc == TATCELL_CONTENDED || rc < 0)
		atomic64_inc(&unheard);
	for (tries = 0; tries < 100; tries++) {
		rc = tatcell_table_check(&table, &key_limit, NOW, &key, sizeof(key), 1, NULL);
		if (rc != TATCELL_CONTENDED)
			break;
	}
	if (rc == TATCELL_PASS)
		atomic_inc(&key_passed[key]);
	if (rc == TATCELL_CONTENDED || rc < 0)
		atomic64_inc(&unheard);
}

static enum hrtimer_restart tick(struct hrtimer *t)
{
	int i;

	for (i = 0; i < 20; i++)
		ask();
	atomic64_add(20, &irq_calls);
	hrtimer_forward_now(t, ns_to_ktime(200000));
	return HRTIMER_RESTART;
}

static int worker(void *unused)
{
	s64 passed = 0;
	int i;

	for (i = 0; i < CALLS; i++) {
		ask();
		if (i % 4096 == 0)
			cond_resched();
	}
	/* The control: loads and stores, as if this thread were alone. */
	for (i = 0; i < OWNED_CALLS; i++) {
		passed += tatcell_cell_check_exclusive(&owned, &owned_limit, NOW, 1, NULL) == TATCELL_PASS;
		if (i % 4096 == 0)
			cond_resched();
	}
	atomic64_add(passed, &owned_passed);
	if (atomic_dec_and_test(&left))
		complete(&done);
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

static int round_of(void *memory, size_t bytes, const tatcell_table_options_t *options)
{
	struct task_struct *workers[THREADS];
	u64 keys = 0, expected = 0, wrong = 0;
	tatcell_stats_t stats = TATCELL_STATS_INIT;
	s32 rc = tatcell_table_init(&table, memory, bytes, options);
	int i;

	if (rc == 0)
		rc = tatcell_limit_init_table(&key_limit, &table, options->fastest);
	if (rc < 0) {
		pr_err("tatcell_test: %s\n", tatcell_strerror(rc));
		return -EINVAL;
	}
	tatcell_cell_reset(&cell);
	tatcell_cell_reset(&owned);
	tatcell_cell_reset(&both[0]);
	tatcell_cell_reset(&both[1]);
	atomic64_set(&cell_passed, 0);
	atomic64_set(&both_passed, 0);
	atomic64_set(&owned_passed, 0);
	atomic64_set(&irq_calls, 0);
	atomic64_set(&turn, 0);
	memset(key_passed, 0, KEYS * sizeof(*key_passed));
	atomic_set(&left, THREADS);
	reinit_completion(&done);
	hrtimer_start(&timer, ns_to_ktime(200000), HRTIMER_MODE_REL_HARD);
	for (i = 0; i < THREADS; i++) {
		workers[i] = kthread_create(worker, NULL, "tatcell_test/%d", i);
		if (IS_ERR(workers[i]))
			return PTR_ERR(workers[i]);
		kthread_bind(workers[i], i % num_online_cpus());
	}
	for (i = 0; i < THREADS; i++)
		wake_up_process(workers[i]);
	wait_for_completion(&done);
	hrtimer_cancel(&timer);
	for (i = 0; i < THREADS; i++)
		kthread_stop(workers[i]);
	for (i = 0; i < KEYS; i++) {
		keys += atomic_read(&key_passed[i]);
		expected += KEY_BURST;
		wrong += atomic_read(&key_passed[i]) != KEY_BURST;
	}
	tatcell_table_stats(&table, NOW, &stats);
	pr_info("tatcell_test: %lld calls from hard interrupts beside %d threads on %d CPUs, %lld without a verdict\n",
		atomic64_read(&irq_calls), THREADS, num_online_cpus(), atomic64_read(&unheard));
	claim(atomic64_read(&irq_calls) > 0, "interrupts came in between", atomic64_read(&irq_calls), 1);
	claim(atomic64_read(&cell_passed) == BURST, "a shared cell admits exactly its burst",
	      atomic64_read(&cell_passed), BURST);
	/* Every chain names the cells in the same order, so none is refused by the second one. */
	claim(atomic64_read(&both_passed) == BURST, "a chain of two cells admits exactly the burst of both",
	      atomic64_read(&both_passed), BURST);
	claim(wrong == 0, "each key of a table is admitted exactly its burst", keys, expected);
	claim(stats.live == KEYS, "each key has one slot", stats.live, KEYS);
	return 0;
}

/*
 * A hook that passes all, for as long as this module is loaded. With it the kernel need not patch its code whenever the
 * hooks of tatcell_limit come and go. QEMU without KVM does not survive that under packets: one of its processors may
 * run the temporary breakpoint for ever.
 */
static unsigned int pass_all(void *unused, struct sk_buff *skb, const struct nf_hook_state *state)
{
	return NF_ACCEPT;
}

static const struct nf_hook_ops hook = {
	.hook = pass_all, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_IN, .priority = NF_IP_PRI_LAST
};

static int __init test_start(void)
{
	tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT, key = TATCELL_LIMIT_SPEC_INIT;
	tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
	size_t bytes = tatcell_table_bytes(SLOTS);
	void *memory = vzalloc(bytes);
	u8 seed[16] = "sixteen bytes: x";
	u64 over = 0;
	unsigned int i;
	s32 aes;
	int rc = -ENOMEM;

	key_passed = vzalloc(KEYS * sizeof(*key_passed));
	if (!memory || !key_passed)
		goto out;
	init_completion(&done);
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = tick;
	spec.units = 1000;
	spec.period = NSEC_PER_SEC;
	spec.burst = BURST;
	key.units = 10;
	key.period = NSEC_PER_SEC;
	key.burst = KEY_BURST;
	options.fastest = &key;
	options.seed = seed;
	options.policy = TATCELL_FULL_DENY;
	rc = -EINVAL;
	if (tatcell_limit_init_spec(&cell_limit, &spec) < 0)
		goto out;
	spec.burst = OWNED_BURST;
	if (tatcell_limit_init_spec(&owned_limit, &spec) < 0)
		goto out;
	options.hash = TATCELL_HASH_AES;
	aes = tatcell_table_init(&table, memory, bytes, &options);
	claim(aes == TATCELL_ERR_HASH_UNAVAILABLE, "AES is refused: its registers are not the kernel's", -aes,
	      -TATCELL_ERR_HASH_UNAVAILABLE);
	options.hash = TATCELL_HASH_SIPHASH13;
	/* More rounds, if the threads of the first ones took turns on a busy machine. */
	for (i = 0; i < rounds || (!over && i < 10 * rounds); i++) {
		rc = round_of(memory, bytes, &options);
		if (rc)
			goto out;
		over += atomic64_read(&owned_passed) != OWNED_BURST;
	}
	claim(over > 0, "a cell for one owner does not, so this test sees what it must; rounds", over, 1);
	rc = bad ? -EIO : nf_register_net_hook(&init_net, &hook);
out:
	vfree(key_passed);
	vfree(memory);
	return rc;
}

static void __exit test_stop(void)
{
	nf_unregister_net_hook(&init_net, &hook);
}

module_init(test_start);
module_exit(test_stop);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Tests tatcell among kernel threads and interrupts");
