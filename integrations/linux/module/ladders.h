/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ladders.h - what the verdicts of a ladder of prefixes promise, for the module of tests and for a program: a refusal
 * charges no prefix, whichever tier refuses; what is not plain has an error of its own, and a wrong argument changes
 * nothing. The file that includes this one has claim().
 *
 * One claim is a negative control: the same prefixes, checked one after the other, do charge a refused address.
 */
#define LADDER_NOW 1000000	/* one instant: nothing drains */
#define LADDER_SLOTS 4096
#define LADDER_BURST 4		/* of an address; its networks have twice and three times as many */
#define LADDER_TIERS 3

static const tatcell_rung_t ladder_v4[LADDER_TIERS] = { { 32, 1 }, { 24, 2 }, { 16, 3 } };
static const tatcell_rung_t ladder_v6[LADDER_TIERS] = { { 128, 1 }, { 64, 2 }, { 48, 3 } };
static const uint8_t ladder_seed[] = "sixteen bytes: x";

static tatcell_table_t ladder_table, ladder_bans;
static tatcell_ladder_t ladder, ladder_other, ladder_before;
static tatcell_limit_t ladder_tiers[LADDER_TIERS];

/* A table of overrides if there is no spec; else a table for a ladder, the ladder, and the limit of each tier. */
static int32_t ladder_make(tatcell_table_t *table, tatcell_ladder_t *made, tatcell_limit_t *tiers, void *memory,
			   const tatcell_limit_spec_t *spec, const tatcell_ladder_spec_t *rungs)
{
	tatcell_limit_spec_t fastest = TATCELL_LIMIT_SPEC_INIT, slowest = TATCELL_LIMIT_SPEC_INIT, tier;
	tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
	int32_t rc = 0;
	uint32_t i;

	options.seed = ladder_seed;
	options.policy = TATCELL_FULL_DENY;
	if (spec) {
		rc = tatcell_ladder_table_specs(spec, rungs, &fastest, &slowest);
		options.fastest = &fastest;
		options.slowest = &slowest;
	} else {
		options.overrides = 1000000000;
	}
	if (rc == 0)
		rc = tatcell_table_init(table, memory, tatcell_table_bytes(LADDER_SLOTS), &options);
	if (rc == 0 && spec)
		rc = tatcell_ladder_init(made, table, spec, rungs);
	for (i = 0; rc == 0 && spec && i < rungs->v4_count; i++) {
		tier = *spec;
		tier.units *= rungs->v4[i].multiplier;
		tier.burst *= rungs->v4[i].multiplier;
		rc = tatcell_limit_init_table(&tiers[i], table, &tier);
	}
	return rc;
}

/* Units that a prefix of an address has left. */
static uint64_t ladder_left(const tatcell_table_t *table, const tatcell_limit_t *tier, const tatcell_rung_t *rung,
			    const uint8_t *address, size_t length)
{
	tatcell_decision_t decision = TATCELL_DECISION_INIT;
	uint64_t hash;

	if (tatcell_address_prefix_hash(table, address, length, rung->bits, rung->bits, &hash) < 0 ||
	    tatcell_table_peek_hash(table, tier, LADDER_NOW, hash, 1, &decision) < 0)
		return (uint64_t)-1;
	return decision.remaining;
}

/* The same of each tier, two digits each: 040812 is an address without debt. */
static uint64_t ladder_all_left(const uint8_t *address, size_t length)
{
	uint64_t all = 0;
	int i;

	for (i = 0; i < LADDER_TIERS; i++)
		all = 100 * all + ladder_left(&ladder_table, &ladder_tiers[i],
					      (length == 4 ? ladder_v4 : ladder_v6) + i, address, length);
	return all;
}

/* How many of a number of requests of an address pass; an answer that is no verdict counts a million. */
static uint64_t ladder_passed(const uint8_t *address, size_t length, const tatcell_table_t *overrides,
			      const tatcell_prefix_lengths_t *lengths, int requests)
{
	uint64_t passed = 0;
	int32_t rc;

	while (requests--) {
		rc = tatcell_ladder_verdict(&ladder, &ladder_table, overrides, lengths, LADDER_NOW, address, length, 1);
		passed += rc == TATCELL_PASS ? 1 : rc == TATCELL_NON_CONFORMING ? 0 : 1000000;
	}
	return passed;
}

static void ladder_code(const char *what, int32_t rc, int32_t wanted)
{
	claim(rc == wanted, what, (uint64_t)-(int64_t)rc, (uint64_t)-(int64_t)wanted);
}

static void ladder_claims_of(size_t length, const char *const *what)
{
	uint8_t address[16] = { 0x20, 1, 0xd, 0xb8 };
	uint8_t *network = length == 4 ? &address[2] : &address[7], *host = length == 4 ? &address[3] : &address[15];
	const tatcell_rung_t *rungs = length == 4 ? ladder_v4 : ladder_v6;
	uint64_t passed, left, hash;
	int i;

	*network = 1;
	*host = 1;
	passed = ladder_passed(address, length, NULL, NULL, 6);
	left = ladder_all_left(address, length);
	claim(passed == 4 && left == 408, what[0], left, 408);
	*host = 2;
	passed = ladder_passed(address, length, NULL, NULL, 4);
	*host = 3;
	passed += 100 * ladder_passed(address, length, NULL, NULL, 2);
	left = ladder_all_left(address, length);
	claim(passed == 4 && left == 40004, what[1], left, 40004);
	*network = 2;
	passed = ladder_passed(address, length, NULL, NULL, 6);
	*network = 3;
	passed += 100 * ladder_passed(address, length, NULL, NULL, 3);
	left = ladder_all_left(address, length);
	claim(passed == 4 && left == 40800, what[2], left, 40800);
	/* The control. */
	for (i = 0; i < LADDER_TIERS; i++) {
		if (tatcell_address_prefix_hash(&ladder_table, address, length, rungs[i].bits, rungs[i].bits, &hash) < 0 ||
		    tatcell_table_check_hash(&ladder_table, &ladder_tiers[i], LADDER_NOW, hash, 1, NULL) != TATCELL_PASS)
			break;
	}
	left = ladder_all_left(address, length);
	claim(i == 2 && left == 30700, what[3], left, 30700);
}

static void ladder_claims_of_overrides(void)
{
	static const uint8_t v4[] = { 16, 32 };
	uint8_t address[4] = { 10, 9, 8, 7 };
	tatcell_prefix_lengths_t lengths = TATCELL_PREFIX_LENGTHS_INIT;
	uint64_t passed, left;
	int32_t rc;

	lengths.v4 = v4;
	lengths.v4_count = 2;
	rc = tatcell_table_ban_address(&ladder_bans, LADDER_NOW, address, 4, 16, 0, 2 * LADDER_NOW);
	passed = ladder_passed(address, 4, &ladder_bans, &lengths, 3);
	left = ladder_all_left(address, 4);
	claim(rc == 0 && passed == 0 && left == 40812, "a banned network is refused and not charged", left, 40812);
	rc = tatcell_table_exempt_address(&ladder_bans, LADDER_NOW, address, 4, 32, 0, 2 * LADDER_NOW);
	passed = ladder_passed(address, 4, &ladder_bans, &lengths, 9);
	left = ladder_all_left(address, 4);
	claim(rc == 0 && passed == 9 && left == 40812, "an exempt address of it passes and is not charged", left, 40812);
	ladder_code("an override is asked in a table of overrides only",
		    tatcell_ladder_verdict(&ladder, &ladder_table, &ladder_table, NULL, LADDER_NOW, address, 4, 1),
		    TATCELL_ERR_ALGORITHM);
}

static void ladder_claims_of_errors(const tatcell_limit_spec_t *spec, const tatcell_ladder_spec_t *rungs)
{
	static const tatcell_rung_t rising[] = { { 64, 1 }, { 128, 1 } }, fast[] = { { 128, 1 }, { 64, 1000000 } };
	static const uint8_t address[4] = { 10, 11, 12, 13 };
	tatcell_ladder_spec_t wrong = *rungs;
	tatcell_limit_spec_t shadow = *spec;
	int32_t rc;

#define VERDICT(ladder, table, address, length, cost) \
	tatcell_ladder_verdict(ladder, table, NULL, NULL, LADDER_NOW, address, length, cost)
	ladder_code("a cost of 0 is not plain", VERDICT(&ladder, &ladder_table, address, 4, 0), TATCELL_ERR_NOT_PLAIN);
	ladder_code("nor is one above the burst", VERDICT(&ladder, &ladder_table, address, 4, LADDER_BURST + 1),
		    TATCELL_ERR_NOT_PLAIN);
	shadow.flags |= TATCELL_LIMIT_SHADOW;
	rc = tatcell_ladder_init(&ladder_other, &ladder_table, &shadow, rungs);
	ladder_code("nor is a limit with an option",
		    rc ? rc : VERDICT(&ladder_other, &ladder_table, address, 4, 1), TATCELL_ERR_NOT_PLAIN);
	ladder_code("no ladder", VERDICT(NULL, &ladder_table, address, 4, 1), TATCELL_ERR_NULL);
	ladder_code("no address", VERDICT(&ladder, &ladder_table, NULL, 4, 1), TATCELL_ERR_NULL);
	ladder_code("a ladder at an odd address",
		    VERDICT((void *)((char *)&ladder + 1), &ladder_table, address, 4, 1), TATCELL_ERR_ALIGN);
	ladder_code("an address of 5 bytes", VERDICT(&ladder, &ladder_table, address, 5, 1), TATCELL_ERR_ADDRESS);
	ladder_code("the ladder of another table", VERDICT(&ladder, &ladder_bans, address, 4, 1), TATCELL_ERR_FOREIGN);
#undef VERDICT
	claim(ladder_all_left(address, 4) == 40812, "and none of them charges", ladder_all_left(address, 4), 40812);

	memset(&ladder_other, 0x5a, sizeof(ladder_other));
	ladder_before = ladder_other;
	wrong.v6 = rising;
	wrong.v6_count = 2;
	ladder_code("prefixes that become longer are no ladder",
		    tatcell_ladder_init(&ladder_other, &ladder_table, spec, &wrong), TATCELL_ERR_LADDER);
	wrong.v6 = fast;
	ladder_code("a last tier that the table has no room for",
		    tatcell_ladder_init(&ladder_other, &ladder_table, spec, &wrong), TATCELL_ERR_TOO_FAST);
	ladder_code("a ladder over its table",
		    tatcell_ladder_init((void *)&ladder_table, &ladder_table, spec, rungs), TATCELL_ERR_OVERLAP);
	rc = memcmp(&ladder_other, &ladder_before, sizeof(ladder_other)) != 0;
	claim(!rc, "and none of them writes", (uint64_t)rc, 0);
	memset(&ladder_other, 0, sizeof(ladder_other));
	ladder_code("a ladder that was never made",
		    tatcell_ladder_verdict(&ladder_other, &ladder_table, NULL, NULL, LADDER_NOW, address, 4, 1),
		    TATCELL_ERR_HANDLE);
}

/* Memory: twice that of a table of LADDER_SLOTS, aligned to 64 bytes. */
static void ladder_claims(void *memory)
{
	static const char *const of_v4[] = {
		"IPv4, refused by its first tier: no prefix is charged",
		"IPv4, refused by the second: none is",
		"IPv4, refused by the last: none is",
		"IPv4, the control: a check for each prefix does charge",
	}, *const of_v6[] = {
		"IPv6, refused by its first tier: no prefix is charged",
		"IPv6, refused by the second: none is",
		"IPv6, refused by the last: none is",
		"IPv6, the control: a check for each prefix does charge",
	};
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff, [12] = 0x20, [13] = 1, [14] = 1, [15] = 1 };
	tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
	tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
	int32_t rc;

	spec.units = 1;
	spec.period = 1000000000;
	spec.burst = LADDER_BURST;
	rungs.v4 = ladder_v4;
	rungs.v6 = ladder_v6;
	rungs.v4_count = rungs.v6_count = LADDER_TIERS;
	rc = ladder_make(&ladder_table, &ladder, ladder_tiers, memory, &spec, &rungs);
	if (rc == 0)
		rc = ladder_make(&ladder_bans, NULL, NULL, (char *)memory + tatcell_table_bytes(LADDER_SLOTS), NULL, NULL);
	ladder_code("a ladder of prefixes is made", rc, 0);
	if (rc)
		return;
	ladder_claims_of(4, of_v4);
	claim(ladder_passed(mapped, 16, NULL, NULL, 3) == 0, "IPv4 written as IPv6 is that address",
	      ladder_passed(mapped, 16, NULL, NULL, 3), 0);
	ladder_claims_of(16, of_v6);
	ladder_claims_of_overrides();
	ladder_claims_of_errors(&spec, &rungs);
}
