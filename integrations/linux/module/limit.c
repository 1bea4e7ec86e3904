// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * limit.c - limits the packets of the first network namespace by their source: an IPv4 address, or the first 64 bits of
 * an IPv6 address. With networks=1 it limits the networks of a source as well. A netfilter hook decides;
 * /proc/tatcell_limit tells; delayed work sweeps.
 *
 *   insmod tatcell_limit.ko rate=1000 burst=200 slots=65536 policy=0 networks=0 dry_run=0 detail=0
 *   echo 500 > /sys/module/tatcell_limit/parameters/rate
 */
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/random.h>
#include <linux/ratelimit.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include <tatcell.h>

/* Rates that can be set while the module is loaded lie between a tenth and 100 times of that at load; with networks,
 * whose limits are many times that of a source, 10 times. */
#define FASTER (networks ? 10 : 100)
#define SLOWER 10

static unsigned int rate = 1000, burst = 200, policy = TATCELL_FULL_ADMIT;
static unsigned long slots = 65536;
static bool dry_run, refuse_undecided, detail, networks;

/* What a packet is decided by: its source alone, or with `networks` the ladder. */
struct limits {
	tatcell_limit_t source;
	tatcell_ladder_t ladder;
};

/* IPv4 has the default prefixes: /32, /24 with 32 times the limit of a source, /20 with 256 and /18 with 768 times. */
static const tatcell_rung_t v6_prefixes[] = { { 64, 1 }, { 56, 2 }, { 48, 4 }, { 32, 64 } };
static tatcell_ladder_spec_t prefixes = TATCELL_LADDER_SPEC_INIT;

static tatcell_table_t table;
static void *memory;
static struct limits __rcu *limit;
static DEFINE_MUTEX(limit_lock);
static DEFINE_PER_CPU(tatcell_counters_t, counters);
static DEFINE_PER_CPU(u64, passed);
static DEFINE_PER_CPU(u64, refused);
static DEFINE_PER_CPU(u64, undecided);
static DEFINE_PER_CPU(u64, network_would_refuse);
static DEFINE_RATELIMIT_STATE(undecided_lines, HZ, 1);
static struct delayed_work sweeper;
static u64 sweep_from, sweep_slice;

static tatcell_limit_spec_t spec_of(u64 units, u64 at_once)
{
	tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;

	spec.units = units;
	spec.period = NSEC_PER_SEC;
	spec.burst = at_once;
	return spec;
}

/* A code of the library as one of the kernel; it has been printed. */
static int failed(const char *what, s32 rc)
{
	pr_err("tatcell_limit: %s: %s\n", what, tatcell_strerror(rc));
	return -EINVAL;
}

/* Makes the limit of these parameters and lets the hooks have it; the old one goes when nobody reads it. */
static int set_limit(unsigned int new_rate, unsigned int new_burst, bool shadow)
{
	tatcell_limit_spec_t spec = spec_of(new_rate, new_burst);
	struct limits *made = kzalloc(sizeof(*made), GFP_KERNEL), *old;
	s32 rc;

	if (!made)
		return -ENOMEM;
	/* A verdict of a ladder needs plain limits, so decide_networks does a dry run itself. */
	if (shadow && !networks)
		spec.flags |= TATCELL_LIMIT_SHADOW;
	rc = networks ? tatcell_ladder_init(&made->ladder, &table, &spec, &prefixes) :
			tatcell_limit_init_table(&made->source, &table, &spec);
	if (rc < 0) {
		kfree(made);
		return failed("rate and burst", rc);
	}
	old = rcu_replace_pointer(limit, made, lockdep_is_held(&limit_lock));
	synchronize_rcu();
	kfree(old);
	return 0;
}

/*
 * Frees the limit and the table, when no hook is registered any more. Hooks that are running may still read both, so
 * they are waited for; and parameters can be written for as long as the module is not gone, and find no limit.
 */
static void release(void)
{
	struct limits *old;

	mutex_lock(&limit_lock);
	old = rcu_replace_pointer(limit, NULL, lockdep_is_held(&limit_lock));
	mutex_unlock(&limit_lock);
	synchronize_rcu();
	kfree(old);
	vfree(memory);
}

/* A parameter that is written before the table is there is only noted; afterwards it is a new limit, or refused. */
static int set_number(const char *text, const struct kernel_param *param)
{
	unsigned int value, *place = param->arg;
	int rc = kstrtouint(text, 0, &value);

	if (rc)
		return rc;
	mutex_lock(&limit_lock);
	if (rcu_access_pointer(limit))
		rc = set_limit(place == &rate ? value : rate, place == &burst ? value : burst, dry_run);
	if (!rc)
		*place = value;
	mutex_unlock(&limit_lock);
	return rc;
}

static int set_dry_run(const char *text, const struct kernel_param *param)
{
	bool value;
	int rc = kstrtobool(text, &value);

	if (rc)
		return rc;
	mutex_lock(&limit_lock);
	if (rcu_access_pointer(limit))
		rc = set_limit(rate, burst, value);
	if (!rc)
		dry_run = value;
	mutex_unlock(&limit_lock);
	return rc;
}

static const struct kernel_param_ops number_ops = { .set = set_number, .get = param_get_uint };
static const struct kernel_param_ops dry_run_ops = { .set = set_dry_run, .get = param_get_bool };

module_param_cb(rate, &number_ops, &rate, 0644);
MODULE_PARM_DESC(rate, "packets a second of each source");
module_param_cb(burst, &number_ops, &burst, 0644);
MODULE_PARM_DESC(burst, "packets of a source at one instant after idle");
module_param_cb(dry_run, &dry_run_ops, &dry_run, 0644);
MODULE_PARM_DESC(dry_run, "refuse nothing, count what would be refused");
module_param(refuse_undecided, bool, 0644);
MODULE_PARM_DESC(refuse_undecided, "packets that get no verdict: N they pass, Y they are refused");
module_param(detail, bool, 0644);
MODULE_PARM_DESC(detail, "count new sources and full sets, some 550 instructions a packet; not with networks");
module_param(networks, bool, 0444);
MODULE_PARM_DESC(networks, "limit the networks of a source, too: IPv4 /24 /20 /18, IPv6 /56 /48 /32");
module_param(slots, ulong, 0444);
MODULE_PARM_DESC(slots, "of the table, 8 bytes each");
module_param(policy, uint, 0444);
MODULE_PARM_DESC(policy, "of full sets: 0 admit, 1 inherit, 2 deny, 3 sampled");

/* No verdict: other CPUs won every attempt, or worse. Counted, told once a second, and done as it is set. */
static unsigned int without_verdict(s32 rc)
{
	bool refuse = READ_ONCE(refuse_undecided) && !READ_ONCE(dry_run);

	this_cpu_inc(undecided);
	if (__ratelimit(&undecided_lines))
		pr_err("tatcell_limit: no verdict, %s: %s\n", refuse ? "refused" : "passes", tatcell_strerror(rc));
	return refuse ? NF_DROP : NF_ACCEPT;
}

/* With the counters of this CPU, which also say what would be refused in a dry run. */
static noinline s32 counted(const tatcell_limit_t *now_valid, const u8 *key, size_t length)
{
	tatcell_decision_t decision = TATCELL_DECISION_INIT;

	return tatcell_table_check_ex(&table, now_valid, ktime_get_ns(), key, length, 1, 0, &decision,
				      this_cpu_ptr(&counters));
}

/* In softirq, or with softirqs off: the counters of this CPU are its own. */
static unsigned int done(s32 rc)
{
	if (rc == TATCELL_PASS) {
		this_cpu_inc(passed);
		return NF_ACCEPT;
	}
	if (unlikely(rc < 0 || rc == TATCELL_CONTENDED))
		return without_verdict(rc);
	this_cpu_inc(refused);
	return NF_DROP;
}

/* May a packet of this source pass? */
static unsigned int decide(const u8 *key, size_t length)
{
	const struct limits *now_valid = rcu_dereference(limit); /* there before the hooks, and gone after them */

	if (unlikely(READ_ONCE(detail) || READ_ONCE(dry_run)))
		return done(counted(&now_valid->source, key, length));
	return done(tatcell_table_check(&table, &now_valid->source, ktime_get_ns(), key, length, 1, NULL));
}

/* May a packet of this source and of each of its networks pass? All are charged, or none. */
static unsigned int decide_networks(const void *address, size_t length)
{
	const struct limits *now_valid = rcu_dereference(limit);
	s32 rc = tatcell_ladder_verdict(&now_valid->ladder, &table, NULL, NULL, ktime_get_ns(), address, length, 1);

	if (unlikely(rc == TATCELL_NON_CONFORMING && READ_ONCE(dry_run))) {
		this_cpu_inc(network_would_refuse);
		rc = TATCELL_PASS;
	}
	return done(rc);
}

/* Keys are family, bits and prefix. */
static unsigned int decide4(const void *address)
{
	u8 key[2 + 4] = { 4, 32 };

	memcpy(key + 2, address, 4);
	return decide(key, sizeof(key));
}

static unsigned int hook4(void *unused, struct sk_buff *skb, const struct nf_hook_state *state)
{
	return networks ? decide_networks(&ip_hdr(skb)->saddr, 4) : decide4(&ip_hdr(skb)->saddr);
}

/* An IPv4 address inside an IPv6 one is that IPv4 address. */
static unsigned int hook6(void *unused, struct sk_buff *skb, const struct nf_hook_state *state)
{
	u8 key[2 + 16] = { 6, 64 };
	size_t bytes;
	s32 rc;

	if (networks)
		return decide_networks(&ipv6_hdr(skb)->saddr, 16);
	rc = tatcell_address_canonical((const u8 *)&ipv6_hdr(skb)->saddr, 16, key + 2, &bytes);
	if (unlikely(rc < 0))
		return without_verdict(rc);
	return bytes == 4 ? decide4(key + 2) : decide(key, 2 + 8);
}

static const struct nf_hook_ops hooks[] = {
	{ .hook = hook4, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_IN, .priority = NF_IP_PRI_FIRST },
	{ .hook = hook6, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_IN, .priority = NF_IP6_PRI_FIRST },
};

static int show(struct seq_file *file, void *unused)
{
	tatcell_stats_t stats = TATCELL_STATS_INIT;
	tatcell_counters_t sum = TATCELL_COUNTERS_INIT;
	u64 pass = 0, refuse = 0, no_verdict = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		const tatcell_counters_t *own = per_cpu_ptr(&counters, cpu);

		pass += READ_ONCE(*per_cpu_ptr(&passed, cpu));
		refuse += READ_ONCE(*per_cpu_ptr(&refused, cpu));
		no_verdict += READ_ONCE(*per_cpu_ptr(&undecided, cpu));
		sum.shadow += READ_ONCE(own->shadow) + READ_ONCE(*per_cpu_ptr(&network_would_refuse, cpu));
		sum.inserted += READ_ONCE(own->inserted);
		sum.untracked += READ_ONCE(own->untracked);
		sum.inherited += READ_ONCE(own->inherited);
		sum.forgiven += READ_ONCE(own->forgiven);
	}
	tatcell_table_stats(&table, ktime_get_ns(), &stats);
	seq_printf(file, "passed %llu\nrefused %llu\nwould_be_refused %llu\nundecided %llu\nin_use %llu\nslots %llu\n",
		   pass, refuse, sum.shadow, no_verdict, stats.live, stats.slots);
	if (READ_ONCE(detail) && !networks)
		seq_printf(file, "new_sources %llu\nfound_no_slot %llu\ntook_over_a_debt %llu\ndebts_forgiven %llu\n",
			   sum.inserted, sum.untracked, sum.inherited, sum.forgiven);
	return 0;
}

/* A part of the slots a second: all of them well within the interval. Beside packets. */
static void sweep(struct work_struct *unused)
{
	tatcell_table_sweep(&table, ktime_get_ns(), sweep_from, sweep_slice, &sweep_from);
	schedule_delayed_work(&sweeper, HZ);
}

static int __init limit_start(void)
{
	tatcell_limit_spec_t fastest = spec_of((u64)rate * FASTER, (u64)burst * FASTER);
	tatcell_limit_spec_t slowest = spec_of(rate, (u64)burst * SLOWER), one, unused = slowest;
	tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
	tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
	u8 seed[16];
	u64 bytes = tatcell_table_bytes(slots);
	int rc;

	if (policy > TATCELL_FULL_SAMPLED) {
		pr_err("tatcell_limit: policy: %u is none of 0 admit, 1 inherit, 2 deny, 3 sampled\n", policy);
		return -EINVAL;
	}
	slowest.period *= SLOWER;
	if (networks) {
		prefixes.v6 = v6_prefixes;
		prefixes.v6_count = ARRAY_SIZE(v6_prefixes);
		one = fastest;
		rc = tatcell_ladder_table_specs(&one, &prefixes, &fastest, &unused);
		one = slowest;
		if (rc == 0)
			rc = tatcell_ladder_table_specs(&one, &prefixes, &unused, &slowest);
		if (rc < 0)
			return failed("rate and burst", rc);
	}
	memory = bytes ? vzalloc(bytes) : NULL; /* 0: more than there are addresses */
	if (!memory) {
		pr_err("tatcell_limit: slots: no memory for %lu, 8 bytes each\n", slots);
		return -ENOMEM;
	}
	get_random_bytes(seed, sizeof(seed));
	options.fastest = &fastest;
	options.slowest = &slowest;
	options.seed = seed;
	options.policy = policy;
	options.tick_hz = NSEC_PER_SEC;
	rc = tatcell_table_init(&table, memory, bytes, &options);
	memzero_explicit(seed, sizeof(seed));
	if (rc < 0) {
		rc = failed("the table", rc);
		goto free;
	}
	mutex_lock(&limit_lock);
	rc = set_limit(rate, burst, dry_run);
	mutex_unlock(&limit_lock);
	if (rc)
		goto free;
	tatcell_table_info(&table, &info);
	sweep_slice = info.slots / (div_u64(info.sweep_interval, NSEC_PER_SEC) / 2 + 1) + info.slots / 60 + 1;
	rc = -ENOMEM;
	if (!proc_create_single("tatcell_limit", 0444, NULL, show))
		goto free;
	rc = nf_register_net_hooks(&init_net, hooks, ARRAY_SIZE(hooks));
	if (rc)
		goto remove;
	INIT_DELAYED_WORK(&sweeper, sweep);
	schedule_delayed_work(&sweeper, HZ);
	pr_info("tatcell_limit: %u packets a second and %u at once of each source%s, %llu slots\n", rate, burst,
		networks ? ", more of its networks" : "", info.slots);
	return 0;
remove:
	remove_proc_entry("tatcell_limit", NULL);
free:
	release();
	return rc;
}

static void __exit limit_stop(void)
{
	nf_unregister_net_hooks(&init_net, hooks, ARRAY_SIZE(hooks));
	cancel_delayed_work_sync(&sweeper);
	remove_proc_entry("tatcell_limit", NULL);
	release();
}

module_init(limit_start);
module_exit(limit_stop);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Limits packets by their source with tatcell");
