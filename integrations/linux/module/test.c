// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test.c - kernel threads and a timer in hard-interrupt context share a cell, two cells of a chain, the keys of a
 * table, and addresses with their networks: what is admitted must be exactly the burst. Its claims are lines in the log
 * of the kernel; loading fails where one does not hold. ladders.h has those that need no threads.
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
#define NET_EVERY 4		/* of so many calls of a thread, one asks for an address, too */
#define HOST_BURST 100
#define NET_BURST 20000		/* less than what comes for a network, or for a chain of two keys */
#define PAIR_BURST 15000	/* of the second key, so that it refuses what the first one passes */
#define V4_HOSTS 150		/* all together have less than their network, so that each is refused itself */
#define V6_HOSTS 250		/* all together have more, so that the network refuses */

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
static const tatcell_rung_t net_v4[] = { { 32, 1 }, { 24, NET_BURST / HOST_BURST } };
static const tatcell_rung_t net_v6[] = { { 128, 1 }, { 64, NET_BURST / HOST_BURST } };
static tatcell_table_t net_table;
static tatcell_ladder_t net_ladder;
static tatcell_limit_t net_tiers[2], pair_limit;
static atomic64_t net_turn, pairs_passed;
static atomic_t hosts_passed[2][V6_HOSTS];
static int bad;

static void claim(bool holds, const char *what, u64 found, u64 wanted)
{
	pr_info("tatcell_test: %s %s: %llu, %llu wanted\n", holds ? "PASS" : "FAIL", what, found, wanted);
	bad |= !holds;
}

#include "ladders.h"

/* A host of the network of a family; returns the bytes of its address. */
static size_t host_address(bool v6, unsigned int host, u8 address[16])
{
	memset(address, 0, 16);
	address[0] = 0x20;
	address[v6 ? 15 : 3] = host;
	return v6 ? 16 : 4;
}

/* One request of a host, and one under two keys of one table, which threads name in opposite orders. */
static void ask_networks(bool swap)
{
	u64 turn = atomic64_inc_return(&net_turn);
	bool v6 = turn % 2;
	unsigned int host = turn / 2 % (v6 ? V6_HOSTS : V4_HOSTS);
	tatcell_link_t links[2] = { TATCELL_LINK_INIT, TATCELL_LINK_INIT };
	tatcell_chain_t chain = TATCELL_CHAIN_INIT;
	u8 address[16];
	size_t length = host_address(v6, host, address);
	int tries;
	s32 rc;

	for (tries = 0; tries < 100; tries++) {
		rc = tatcell_ladder_verdict(&net_ladder, &net_table, NULL, NULL, NOW, address, length, 1);
		if (rc != TATCELL_CONTENDED)
			break;
	}
	if (rc == TATCELL_PASS)
		atomic_inc(&hosts_passed[v6][host]);
	if (rc == TATCELL_CONTENDED || rc < 0)
		atomic64_inc(&unheard);
	for (tries = 0; tries < 2; tries++) {
		links[tries].table = &net_table;
		links[tries].limit = (tries == 0) == swap ? &pair_limit : &net_tiers[1];
		links[tries].key = (tries == 0) == swap ? "q" : "p";
		links[tries].key_len = 1;
		links[tries].cost = 1;
	}
	chain.links = links;
	chain.count = 2;
	chain.link_size = sizeof(links[0]);
	for (tries = 0; tries < 100; tries++) {
		rc = tatcell_chain_verdict(&chain, NOW);
		if (rc != TATCELL_CONTENDED)
			break;
	}
	if (rc == TATCELL_PASS)
		atomic64_inc(&pairs_passed);
	if (rc == TATCELL_CONTENDED || rc < 0)
		atomic64_inc(&unheard);
}

static void claim_networks(void)
{
	tatcell_decision_t p = TATCELL_DECISION_INIT, q = TATCELL_DECISION_INIT;
	u64 passed[2] = { 0, 0 }, differ = 0, pairs = atomic64_read(&pairs_passed), left;
	unsigned int v6, host, count;
	u8 address[16];
	size_t length;

	for (v6 = 0; v6 < 2; v6++) {
		for (host = 0; host < (v6 ? V6_HOSTS : V4_HOSTS); host++) {
			count = atomic_read(&hosts_passed[v6][host]);
			passed[v6] += count;
			length = host_address(v6, host, address);
			left = ladder_left(&net_table, &net_tiers[0], v6 ? net_v6 : net_v4, address, length);
			differ += left != HOST_BURST - count || (!v6 && left);
		}
		left = ladder_left(&net_table, &net_tiers[1], v6 ? &net_v6[1] : &net_v4[1], address, length);
		differ += left != NET_BURST - passed[v6];
	}
	claim(passed[0] == V4_HOSTS * HOST_BURST, "each host of a network is admitted exactly its burst", passed[0],
	      V4_HOSTS * HOST_BURST);
	claim(passed[1] == NET_BURST, "a network of more hosts is admitted exactly its own", passed[1], NET_BURST);
	claim(differ == 0, "hosts and networks owe what passed, so a refusal charged none of them", differ, 0);
	tatcell_table_peek(&net_table, &net_tiers[1], NOW, "p", 1, 1, &p);
	tatcell_table_peek(&net_table, &pair_limit, NOW, "q", 1, 1, &q);
	claim(NET_BURST - p.remaining == pairs && PAIR_BURST - q.remaining == pairs,
	      "two keys that are named in both orders owe what passed", NET_BURST - p.remaining, pairs);
	/* A request that lost the second key may have refused the last ones, which now pass. */
	for (host = 0; host < 2 * THREADS; host++)
		ask_networks(host % 2);
	pairs = atomic64_read(&pairs_passed);
	claim(pairs == PAIR_BURST, "and are admitted exactly the smaller burst", pairs, PAIR_BURST);
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
	ask_networks(false);
	atomic64_add(20, &irq_calls);
	hrtimer_forward_now(t, ns_to_ktime(200000));
	return HRTIMER_RESTART;
}

static int worker(void *swap)
{
	s64 passed = 0;
	int i;

	for (i = 0; i < CALLS; i++) {
		ask();
		if (i % NET_EVERY == 0)
			ask_networks(swap);
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

static int round_of(void *memory, void *net_memory, const tatcell_table_options_t *options)
{
	struct task_struct *workers[THREADS];
	u64 keys = 0, expected = 0, wrong = 0;
	tatcell_stats_t stats = TATCELL_STATS_INIT;
	tatcell_limit_spec_t host = TATCELL_LIMIT_SPEC_INIT;
	tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
	s32 rc = tatcell_table_init(&table, memory, tatcell_table_bytes(SLOTS), options);
	int i;

	host.units = 1;
	host.period = NSEC_PER_SEC;
	host.burst = HOST_BURST;
	rungs.v4 = net_v4;
	rungs.v6 = net_v6;
	rungs.v4_count = rungs.v6_count = 2;
	if (rc == 0)
		rc = tatcell_limit_init_table(&key_limit, &table, options->fastest);
	if (rc == 0)
		rc = ladder_make(&net_table, &net_ladder, net_tiers, net_memory, &host, &rungs);
	host.units *= NET_BURST / HOST_BURST;
	host.burst = PAIR_BURST;
	if (rc == 0)
		rc = tatcell_limit_init_table(&pair_limit, &net_table, &host);
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
	atomic64_set(&net_turn, 0);
	atomic64_set(&pairs_passed, 0);
	memset(key_passed, 0, KEYS * sizeof(*key_passed));
	memset(hosts_passed, 0, sizeof(hosts_passed));
	atomic_set(&left, THREADS);
	reinit_completion(&done);
	hrtimer_start(&timer, ns_to_ktime(200000), HRTIMER_MODE_REL_HARD);
	for (i = 0; i < THREADS; i++) {
		workers[i] = kthread_create(worker, i % 2 ? &net_table : NULL, "tatcell_test/%d", i);
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
	claim_networks();
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
	void *memory = vzalloc(bytes), *net_memory = vzalloc(2 * tatcell_table_bytes(LADDER_SLOTS));
	u8 seed[16] = "sixteen bytes: x";
	u64 over = 0;
	unsigned int i;
	s32 aes;
	int rc = -ENOMEM;

	key_passed = vzalloc(KEYS * sizeof(*key_passed));
	if (!memory || !net_memory || !key_passed)
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
	ladder_claims(net_memory);
	/* More rounds, if the threads of the first ones took turns on a busy machine. */
	for (i = 0; i < rounds || (!over && i < 10 * rounds); i++) {
		rc = round_of(memory, net_memory, &options);
		if (rc)
			goto out;
		over += atomic64_read(&owned_passed) != OWNED_BURST;
	}
	claim(over > 0, "a cell for one owner does not, so this test sees what it must; rounds", over, 1);
	rc = bad ? -EIO : nf_register_net_hook(&init_net, &hook);
out:
	vfree(key_passed);
	vfree(net_memory);
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
