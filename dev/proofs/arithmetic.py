#!/usr/bin/env python3
"""The arithmetic of the shipped formulas, proved by z3 for every value.

    python3 dev/proofs/arithmetic.py [part of a name ...]

Debian: apt-get install python3-z3; elsewhere: pip install z3-solver. Each obligation is a claim under preconditions and
a broken twin of the formula. It holds where the preconditions can be met, the negated claim cannot, and the negated
claim about the twin can: a check that would pass whatever the code says proves nothing. The formulas are those of the
files named beside them, to the operator; words are bit vectors of the real widths, and only what has no wrap (shown
above it) is stated over integers, or over reals, of which they are some.
"""
import sys

from z3 import (And, BitVec, BitVecs, BitVecVal, Extract, If, Ints, LShR, Not, Or, Reals, Solver, UGE, UGT, ULE, ULT,
                ZeroExt, sat, unsat)

OBLIGATIONS = []


def obligation(name, given, claim, broken):
    OBLIGATIONS.append((name, given, claim, broken))


def largest(a, b):
    return If(a > b, a, b)


def least(a, b):
    return If(a < b, a, b)


def ceil_div(a, b):
    return (a + b - 1) / b


# ---- the window decode: src/algorithms/gcra.rs, lead_of
for W in (24, 32, 43, 51, 64):
    wide = W + 8  # of unbounded time, so much as tells every case apart
    tat, now, window = BitVecs("tat now window", wide)
    mask = (1 << W) - 1
    low = lambda x: ZeroExt(8, Extract(W - 1, 0, x))
    d = low(low(tat) - low(now))
    ahead = tat - now
    one_test = If(ULT(low(d - 1), window), d, BitVecVal(0, wide))
    true_lead = If(ahead > 0, ahead, BitVecVal(0, wide))
    given = [window > 0, window < 1 << (W - 1), tat >= 0, now >= 0, tat < 1 << (W + 5), now < 1 << (W + 5),
             ahead <= window, ahead > window - (1 << W)]
    off_by_one = If(ULE(low(d - 1), window), d, BitVecVal(0, wide))
    obligation(f"decode_is_the_true_lead_w{W}", given, one_test == true_lead, off_by_one == true_lead)
    # Beyond the window it may be wrong in one way only: a debt where there is none, never less than there is.
    far = [c for c in given[:-2]] + [ahead <= window]
    signed = If(And(d != 0, ULT(d, 1 << (W - 1))), BitVecVal(0, wide), d)
    obligation(f"decode_never_forgets_a_debt_w{W}", far, UGE(one_test, true_lead), UGE(signed, true_lead))

# ---- the decode of a table's words, without a comparison: src/table/layout/word.rs, lead
for W in (39, 43, 51):
    word, now, window = BitVecs("word now window", 64)
    mask = BitVecVal((1 << W) - 1, 64)
    d = (word - now) & mask
    past = window + 1
    shipped = d & ((d - past) >> 56)
    plain = If(ULT(d - 1, window), d, BitVecVal(0, 64))
    given = [UGT(window, 0), ULE(window, 1 << (W - 3))]
    obligation(f"table_decode_equals_lead_of_w{W}", given, shipped == plain, d & ((d - window) >> 56) == plain)

# ---- 0 is EMPTY and a computed 0 is stored as 1: gcra.rs, encode and whole_lead
now, lead, window = BitVecs("now lead window", 64)
encoded = lambda sum_: sum_ | If(sum_ == 0, BitVecVal(1, 64), BitVecVal(0, 64))
read = lambda word: If(word == 0, BitVecVal(0, 64), If(ULT(word - now - 1, window), word - now, BitVecVal(0, 64)))
given = [UGT(window, 0), ULT(window, 1 << 63), UGT(lead, 0), ULT(lead, window)]
obligation("a_stored_lead_reads_as_itself_or_one_more", given,
           Or(read(encoded(now + lead)) == lead, And(now + lead == 0, read(encoded(now + lead)) == lead + 1)),
           read(now + lead) == lead)

# ---- no overflow: gcra.rs, check, charge, reserve and fits
cost, most, t = Reals("cost most t")
obligation("a_cost_within_burst_and_room_stays_below_2_to_63", [cost >= 0, cost <= most, t >= 1, most >= 0,
           most * t < 2**63], cost * t < 2**63, (cost + 1) * t < 2**63)
lead, charge, limit = BitVecs("lead charge limit", 64)
given = [ULT(lead, 1 << 63), ULT(charge, 1 << 63)]
obligation("lead_and_charge_do_not_wrap", given, UGE(lead + charge, lead), UGE(lead + charge + charge, lead))
over = lead + charge - limit
obligation("what_is_too_much_is_the_difference", given + [UGT(lead + charge, limit)],
           And(UGT(over, 0), limit + over == lead + charge), UGT(over - 1, 0))

# ---- rounding: src/limit/rate.rs, emission_q
period, units, t, scaled, n = Reals("period units t scaled n")
rounded_up = [units >= 1, scaled >= units, t * units >= scaled, (t - 1) * units < scaled]
obligation("the_rate_is_never_exceeded", rounded_up + [n >= 0], n * units * t >= n * scaled,
           n * units * (t - 1) >= n * scaled)
obligation("the_rate_is_lower_by_less_than_one_in_t", rounded_up, t * units - scaled < units,
           t * units - scaled < units - 1)

# ---- what remains and the next unit: gcra.rs, numbers (available = D - lead)
available, t, left, lead, burst = Reals("available t left lead burst")
division = [t >= 1, available >= 0, left * t <= available, (left + 1) * t > available, burst >= 1,
            available == burst * t - lead, lead >= 0, left < burst]
obligation("what_remains_conforms_and_one_more_does_not", division,
           And(lead + left * t <= burst * t, lead + (left + 1) * t > burst * t), lead + (left + 1) * t <= burst * t)
wait = lead + (left + 1) * t - burst * t
early = Reals("early")[0]
obligation("the_next_unit_comes_after_exactly_this_wait", division + [early > 0, early <= wait],
           And(wait > 0, lead - wait + (left + 1) * t <= burst * t, lead - (wait - early) + (left + 1) * t > burst * t),
           lead - (wait - early) + (left + 1) * t <= burst * t)

# ---- retry_after, minimal in whole ticks: src/time.rs, ticks_up
for shl, shr in ((0, 0), (1, 0), (10, 0), (22, 0), (0, 1), (0, 5), (0, 20)):
    now, tat, charge, limit, more = Ints("now tat charge limit more")
    fine, coarse = 2**shl, 2**shr
    clock = lambda tick: tick / coarse * fine
    passes = lambda tick: largest(tat - clock(tick), 0) + charge <= limit
    q = tat - clock(now) + charge - limit
    ticks_up = lambda q: ceil_div(q, fine) * coarse - now % coarse
    given = [now >= 0, charge > 0, charge <= limit, Not(passes(now))]
    early = (ceil_div(q, fine) - 1) * coarse - now % coarse
    obligation(f"retry_after_is_the_first_tick_that_passes_shl{shl}_shr{shr}", given,
               And(ticks_up(q) >= 1, passes(now + ticks_up(q)), Not(passes(now + ticks_up(q) - 1))),
               And(early >= 1, passes(now + early)))

# ---- ITU-T I.371 and the token bucket, in unbounded time (decode: above)
ta, tat, T, tau, x, lct = Reals("ta tat T tau x lct")
lead = largest(tat - ta, 0)
vs_conforms = Not(ta < tat - tau)
vs_next = If(vs_conforms, largest(ta, tat) + T, tat)
ours = lead + T <= tau + T
ours_next = If(ours, ta + lead + T, tat)
given = [T > 0, tau >= 0]
obligation("virtual_scheduling_conforms_alike", given, ours == vs_conforms, (lead + T < tau + T) == vs_conforms)
obligation("virtual_scheduling_leaves_the_same_tat", given, ours_next == vs_next,
           If(ours, tat + T, tat) == vs_next)
drained = largest(x - (ta - lct), 0)
bucket_conforms = drained <= tau
given = given + [tat == x + lct, ta >= lct, x >= 0]
obligation("continuous_leaky_bucket_conforms_alike", given, ours == bucket_conforms,
           ours == (x - (ta - lct) < tau))
obligation("continuous_leaky_bucket_keeps_tat_equal_to_x_plus_lct", given,
           ours_next == If(bucket_conforms, drained + T + ta, x + lct),
           ours_next == If(bucket_conforms, x + T + ta, x + lct))
tokens, last, depth, cost = Reals("tokens last depth cost")
filled = least(tokens + (ta - last), depth)
lead = largest(tat - ta, 0)
given = [depth > 0, cost >= 0, ta >= last, tokens <= depth, tokens >= 0, tat == last + depth - tokens]
obligation("token_bucket_conforms_alike_for_any_cost", given, (filled >= cost) == (lead + cost <= depth),
           (tokens + (ta - last) >= cost) == (lead + cost <= depth))
obligation("token_bucket_and_tat_stay_in_step", given,
           If(filled >= cost, ta + depth - (filled - cost) == largest(tat, ta) + cost,
              largest(ta + depth - filled, ta) == largest(tat, ta)),
           If(filled >= cost, ta + depth - (filled - cost) == tat + cost, True))
total, first, r, c = Reals("total first r c")
t = Reals("t_now")[0]
obligation("a_window_admits_at_most_its_length_and_a_burst", [total <= r - first, c >= 0, t >= first,
           largest(r, t) + c <= t + depth], And(total + c <= largest(r, t) + c - first, total + c <= t - first + depth),
           total + c <= t - first)

# ---- refunds by permit: gcra.rs, credit and refund (two later charges)
r, t0, t1, t2, t3, c0, c1, c2 = Reals("r t0 t1 t2 t3 c0 c1 c2")
after = largest(r, t0) + c0
with_it = largest(largest(after, t1) + c1, t2) + c2
without = largest(largest(r, t1) + c1, t2) + c2
credit = least(c0, largest(after - t3, 0))
lead = lambda z: largest(z - t3, 0)
back = least(credit, lead(with_it))
given = [t0 <= t1, t1 <= t2, t2 <= t3, c0 >= 0, c1 >= 0, c2 >= 0]
obligation("a_refund_leaves_at_least_the_debt_of_a_life_without_the_charge", given,
           lead(with_it) - back >= lead(without), lead(with_it - c0) >= lead(without))
obligation("a_refund_never_lifts_a_key_above_a_full_burst", given, lead(with_it) - back >= 0,
           lead(with_it) - credit - c0 >= 0)
# Of two permits the newer first, the older at any later time. The other way round it mints, and the documents say so.
second = largest(after, t1) + c1
credits = lambda stored, tat, at: least(stored, largest(tat - at, 0))
gives = lambda tat, credit, at: tat - least(credit, largest(tat - at, 0))
between = Reals("between")[0]  # another charge, c2, comes between the two refunds
later = lambda tat: largest(tat, between) + c2
newest_first = gives(later(gives(second, credits(c1, second, t2), t2)), credits(c0, after, t3), t3)
oldest_first = gives(later(gives(second, credits(c0, after, t2), t2)), credits(c1, second, t3), t3)
given = given + [t2 <= between, between <= t3]
obligation("two_refunds_newest_first_mint_nothing", given, lead(newest_first) >= lead(later(r)),
           lead(oldest_first) >= lead(later(r)))

# ---- claims of a table: src/table/layout/word.rs
for W in (39, 43, 51):
    old, now, life, window = BitVecs("old now life window", 64)
    mask = BitVecVal((1 << W) - 1, 64)
    lead_of = lambda word: If(ULT(((word - now) & mask) - 1, window), (word - now) & mask, BitVecVal(0, 64))
    ahead = If(old == 0, BitVecVal(0, 64), lead_of(old))
    above = ahead + 1
    ahead_of_claim = If(UGT(above, life), above, life)
    version = now + ahead_of_claim
    claim = (version + (version & 1)) & mask
    given = [UGT(window, 3), ULE(window, 1 << (W - 3)), UGE(life, 1), ULE(life, LShR(window, 1)), ULT(old, 1 << W),
             ULT(lead_of(old), window - 3)]
    obligation(f"a_claim_is_even_above_what_was_there_and_lives_g_w{W}", given,
               And(claim & 1 == 0, UGT(lead_of(claim), ahead), UGE(lead_of(claim), life),
                   ULE(lead_of(claim), ahead_of_claim + 1)),
               UGT(lead_of((now + If(UGT(ahead, life), ahead, life)) & mask & ~BitVecVal(1, 64)), ahead))
    debt = ((old + 1) | 1) & mask
    dropped = (debt + 2) & mask
    given = given + [UGT(lead_of(old), 0)]
    obligation(f"a_claim_on_a_debt_is_odd_and_keeps_it_w{W}", given,
               And(debt & 1 == 1, ULE((debt - 1 - old) & mask, 1), UGT(lead_of(debt), lead_of(old)),
                   dropped & 1 == 1, UGT(lead_of(dropped), lead_of(debt))),
               UGT(lead_of((debt - 1) & mask), lead_of(old)))
    version = (old + 2 + (old & 1)) & mask
    tombstone = version | If(version == 0, BitVecVal(2, 64), BitVecVal(0, 64))
    given = given + [ULT(lead_of(old), window - 6)]
    obligation(f"a_tombstone_is_even_and_at_least_two_above_w{W}", given,
               And(tombstone & 1 == 0, tombstone != 0, UGE((tombstone - old) & mask, 2)),
               UGE(((old + 1 + (old & 1)) & mask) - old & mask, 2))
    # A commit stores max(lead, lead of the claim): the payload does not fall.
    lead, claimed = BitVecs("lead claimed", 64)
    obligation(f"a_commit_never_lowers_a_payload_w{W}", [ULE(lead, window), ULE(claimed, window)],
               UGE(If(UGT(lead, claimed), lead, claimed), claimed), UGE(lead, claimed))

# ---- states of a time and a count: src/algorithms/state.rs, split and join
for bits in (1, 7, 20, 32):
    lead = BitVec("lead", 64)
    aux_mask = BitVecVal((1 << bits) - 1, 64)
    place = lead + aux_mask
    ahead, aux = LShR(place, bits), place & aux_mask
    joined = If(ahead == 0, BitVecVal(0, 64), ((ahead << bits) | aux) - aux_mask)
    given = [UGT(lead, 0), ULT(lead, 1 << 63)]
    obligation(f"a_state_is_busy_exactly_while_its_time_lies_ahead_{bits}_bits", given,
               And(joined == lead, ahead != 0), LShR(lead, bits) != 0)

# ---- aligned windows without a division: src/algorithms/fixed_window.rs, until_end
since, period, reciprocal, windows = Reals("since period reciprocal windows")
# reciprocal = ceil(2^64 / period) - 1, windows = since * reciprocal >> 64
given = [period >= 1, since >= 0, since < 2**64, reciprocal >= 0, reciprocal * period < 2**64,
         (reciprocal + 1) * period >= 2**64, windows >= 0, windows * 2**64 <= since * reciprocal,
         since * reciprocal < (windows + 1) * 2**64]
rest = since - windows * period
obligation("the_reciprocal_is_at_most_one_window_short", given, And(rest >= 0, rest < 2 * period), rest < period)

# ---- quota-linear as one time, against its pseudocode: quota_linear.rs
bucket, last, now, T, w, start, quota, y, cost = Reals("bucket last now T w start quota y cost")
grown = least(bucket + (now - last), w)  # in time: the bucket times T; quota * T = w
given = [T > 0, w >= T, now >= last, bucket <= w, y == last - bucket + w, cost >= 0]
full = largest(y - now, 0)
obligation("quota_linear_smooth_conforms_alike", given, (grown >= cost * T) == (full + cost * T <= w),
           (grown > cost * T) == (full + cost * T <= w))
obligation("quota_linear_smooth_moves_alike", given + [grown >= cost * T],
           now - (grown - cost * T) + w == now + full + cost * T, now - (grown - cost * T) + w == y + cost * T)
# The switch: the bucket is 1 - (end - now) / T then, so that the first unit passes at the window's end.
end = Reals("end")[0]
obligation("quota_linear_switches_to_the_window_end", [T > 0, w >= T, end >= now],
           now - (T - (end - now)) + w == end + w - T, now - (T - (end - now)) + w == end + w)

# ---- the marker of RFC 2697 as two debts: src/algorithms/meters.rs (CBS, EBS)
tc, te, dt, cbs, ebs, c, l1, l2 = Reals("tc te dt cbs ebs c l1 l2")
tc1 = least(tc + dt, cbs)
te1 = least(te + (tc + dt - tc1), ebs)
green, yellow = tc1 >= c, And(tc1 < c, te1 >= c)
d1, d2 = largest(l1 - dt, 0), largest(l2 - dt, 0)  # the debt of C, and that of both together
green2 = d1 + c <= cbs
yellow2 = And(Not(green2), (d2 - d1) + c <= ebs)
given = [dt >= 0, cbs >= 0, ebs >= 0, c >= 0, tc >= 0, tc <= cbs, te >= 0, te <= ebs, l1 == cbs - tc,
         l2 == cbs - tc + ebs - te]
obligation("rfc_2697_colours_are_those_of_two_debts", given, And(green == green2, yellow == yellow2),
           yellow == And(Not(green2), d2 + c <= ebs))
tc2, te2 = If(green, tc1 - c, tc1), If(yellow, te1 - c, te1)
n1, n2 = If(green2, d1 + c, d1), If(Or(green2, yellow2), d2 + c, d2)
obligation("rfc_2697_buckets_are_those_of_two_debts", given, And(n1 == cbs - tc2, n2 == cbs - tc2 + ebs - te2),
           And(n1 == cbs - tc2, If(yellow2, d2 + c, d2) == cbs - tc2 + ebs - te2))

# ---- IEEE 802.1Qcr's eligibility is a reservation: src/combine/shaper, reserve_from
t, group, empty, depth, c = Reals("t group empty depth c")
scheduled, full = empty + c, empty + depth
eligible = largest(largest(t, group), scheduled)
next_empty = If(eligible < full, scheduled, scheduled + eligible - full)
tat, at = empty + depth, largest(t, group)
ours = largest(at, tat + c - depth)
obligation("ats_eligibility_is_a_reservation", [c > 0, c <= depth],
           And(ours == eligible, next_empty + depth == largest(tat, at) + c),
           largest(t, tat + c - depth) == eligible)


def decide(given, claim):
    solver = Solver()
    solver.set("timeout", 120000)
    solver.add(*given)
    solver.add(claim)
    return solver.check()


def main(parts):
    failed = ran = 0
    for name, given, claim, broken in OBLIGATIONS:
        if parts and not any(part in name for part in parts):
            continue
        ran += 1
        why = []
        if decide(given, True) != sat:
            why.append("its preconditions cannot be met")
        verdict = decide(given, Not(claim))
        if verdict != unsat:
            why.append(f"not proved: {verdict}")
        verdict = decide(given, Not(broken))
        if verdict != sat:
            why.append(f"its broken twin is not refuted: {verdict}")
        failed += bool(why)
        print(f"FAIL z3: {name}: {'; '.join(why)}" if why else f"PASS z3: {name}", flush=True)
    if ran == 0:
        print("FAIL z3: no obligation has such a name")
    return 1 if failed or ran == 0 else 0


sys.exit(main(sys.argv[1:]))
