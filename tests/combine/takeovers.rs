//! Chains on full sets of tables whose inserts take over the slots of other keys: `Inherit` and `Sampled`.

use crate::common::{hash_of, memory};
use tatcell::{
    Cell, Chain, Counters, Decision, FullPolicy, Limit, LimitSpec, Line, Link, PreparedChain, Request, Table,
    TableLimit, TableOptions, Verdict,
};

const T: u64 = 1 << 12;
const SPEC: LimitSpec = LimitSpec::new(1, T, 3).resolution(0);
const X: u32 = 1;
/// Keys that have no slot.
const Z: u32 = 77;
const W: u32 = 78;

/// Key `tag` of the only set, home line by its parity.
fn key(tag: u32) -> u64 {
    hash_of(tag % 2, 2, tag)
}

/// A table of 16 slots. X owes `x` units, the 15 others owe three.
fn full(lines: &[Line], spec: LimitSpec, policy: FullPolicy, x: u64) -> (Table<'_>, TableLimit) {
    let table = Table::init(lines, &TableOptions::new(spec).caller_hash().policy(policy)).unwrap();
    let limit = table.limit(&spec).unwrap();
    for tag in 1..=16 {
        let request = Request { limit: &limit, now: 0, cost: if tag == X { x } else { 3 }, room: 0 };
        assert!(table.check_ex(&request, key(tag), None).unwrap().passes());
    }
    (table, limit)
}

/// Returns the ticks that each key owes; a key without a slot owes none.
fn owed(table: &Table<'_>, limit: &TableLimit) -> Vec<u64> {
    (1..=16).chain([Z, W]).map(|tag| table.peek(limit, 0, key(tag), 0).unwrap().reset_after).collect()
}

/// The ways to decide a chain. Each returns the verdict, and the link that decided if it tells that.
const FORMS: u32 = 5;
fn decide(links: &[Link<'_>], hashes: &[u64], form: u32) -> (Verdict, Option<u32>) {
    let (chain, prepared) = (Chain::new(links).unwrap(), PreparedChain::new(links).unwrap());
    let told = |decision: Decision| (decision.verdict, Some(decision.policy));
    match form {
        0 => told(chain.check(0)),
        1 => (chain.verdict(0), None),
        2 => told(chain.check_ex(0, Some(&mut Counters::default()), |_, _| ())),
        3 => (prepared.verdict(0, hashes, None).unwrap(), None),
        _ => told(prepared.check(0, hashes, None).unwrap()),
    }
}

/// Decides a chain of one unit of each key in each form, in a table of its own each time, with plain links and with
/// one that is not: the answer and the debts are the same. Returns them.
fn decided(policy: FullPolicy, x: u64, tags: &[u32]) -> (Verdict, u32, Vec<u64>) {
    let (all, over_all) = (Cell::new(), Limit::new(1_000, 1, 1_000_000).unwrap());
    let mut first = None;
    for (form, plain) in (0..FORMS).flat_map(|form| [(form, true), (form, false)]) {
        let lines = memory(4);
        let (table, limit) = full(&lines, SPEC, policy, x);
        let mut hashes: Vec<u64> = tags.iter().map(|tag| key(*tag)).collect();
        let mut links: Vec<_> = hashes.iter().map(|hash| Link::hash(&table, &limit, *hash, 1)).collect();
        if !plain {
            links.push(Link::cell(&all, &over_all, 1).extra(1));
            hashes.push(0);
        }
        let (verdict, policy) = decide(&links, &hashes, form);
        let debts = owed(&table, &limit);
        let (known, at, before) = first.get_or_insert_with(|| (verdict, policy.unwrap(), debts.clone()));
        let place = std::format!("form {form}, plain: {plain}");
        assert_eq!((verdict, &debts), (*known, &*before), "{place}");
        assert!(policy.is_none_or(|policy| policy == *at), "{place}: link {policy:?} instead of {at}");
    }
    first.unwrap()
}

/// Z comes first, but X has a slot: it is charged before Z looks for one, and no slot has room for both.
#[test]
fn keys_that_are_absent_are_charged_last() {
    let (verdict, at, debts) = decided(FullPolicy::Inherit, 2, &[Z, X]);
    assert_eq!((verdict, at), (Verdict::NonConforming, 0));
    assert_eq!((debts[0], &debts[1..16], &debts[16..]), (2 * T, &[3 * T; 15][..], &[0, 0][..]));
}

/// The slot of X has the smallest debt, and room for Z. But X is asked in the same request.
#[test]
fn a_chain_takes_over_no_slot_of_its_own_keys() {
    for tags in [&[X, Z, W][..], &[Z, X], &[X, Z], &[Z, W, X]] {
        let (verdict, at, debts) = decided(FullPolicy::Inherit, 1, tags);
        let first = tags.iter().position(|tag| *tag == Z).unwrap();
        assert_eq!((verdict, at), (Verdict::NonConforming, first as u32), "{tags:?}");
        assert_eq!((debts[0], &debts[1..16], &debts[16..]), (T, &[3 * T; 15][..], &[0, 0][..]), "{tags:?}");
    }
}

/// What the documentation names: Z takes over the slot of X, which is not asked, and W finds none. Z keeps the slot and
/// the debt that it took over, and X has lost its slot.
#[test]
fn a_refused_chain_leaves_the_debt_that_an_insert_has_inherited() {
    let (verdict, at, debts) = decided(FullPolicy::Inherit, 1, &[Z, W]);
    assert_eq!((verdict, at), (Verdict::NonConforming, 1));
    assert_eq!((debts[0], &debts[1..16], debts[17]), (0, &[3 * T; 15][..], 0));
    // The payload of a takeover is odd.
    assert_eq!(debts[16], T + 1);
}

/// One insert in 16 forgives the smallest debt of its set: never one that the same request has just charged.
#[test]
fn a_sampled_insert_forgives_no_debt_of_its_own_chain() {
    for spec in [SPEC, SPEC.penalty(1), LimitSpec::fixed_window(3, T), LimitSpec::sliding_counter(3, T)] {
        let mut forgiven = 0;
        for tag in 100..1_000 {
            let lines = memory(4);
            let (table, limit) = full(&lines, spec, FullPolicy::Sampled, 1);
            let links = [X, tag].map(|tag| Link::hash(&table, &limit, key(tag), 1));
            let mut counters = Counters::default();
            assert!(Chain::new(&links).unwrap().check_ex(0, Some(&mut counters), |_, _| ()).passes());
            forgiven += counters.inserted;
            let left = table.peek(&limit, 0, key(X), 0).unwrap().remaining;
            assert_eq!(left, 1, "{tag} under {spec:?}");
        }
        assert!(forgiven > 20, "{forgiven} under {spec:?}");
    }
}

/// A charge and a reservation leave the other links of their chain their slots, too, and so does an extra. X owes one
/// unit, and one more each time.
#[test]
fn charges_reservations_and_extras_take_over_no_slot_of_their_chain() {
    let spec = SPEC.max_delay(2 * T).max_debt(2);
    for (policy, form) in
        [FullPolicy::Inherit, FullPolicy::Sampled].into_iter().flat_map(|p| [(p, 0), (p, 1), (p, 2)])
    {
        let mut inserted = 0;
        for tag in 100..1_000 {
            let lines = memory(4);
            let (table, limit) = full(&lines, spec, policy, 1);
            let link = |tag, cost| Link::hash(&table, &limit, key(tag), cost);
            let of_z = if form == 2 { link(tag, 0).extra(1) } else { link(tag, 1) };
            let chain = Chain::new(&[link(X, 1), of_z]).unwrap();
            let decided = match form {
                0 => chain.charge(0),
                1 => chain.reserve(0).unwrap(),
                _ => chain.check(0),
            };
            assert!(decided.passes(), "{policy:?}, form {form}, {tag}");
            inserted += u32::from(table.peek(&limit, 0, key(tag), 0).unwrap().reset_after != 0);
            let left = table.peek(&limit, 0, key(X), 0).unwrap().remaining;
            assert_eq!(left, 1, "{policy:?}, form {form}, {tag}");
        }
        assert!(inserted > 20, "{policy:?}, form {form}: {inserted}");
    }
}

/// The last link refuses, and the peek sees it: nobody loses a slot or owes more, whatever the policy.
#[test]
fn a_reservation_that_a_link_refuses_stores_nothing() {
    let (cell, spec) = (Cell::new(), SPEC.max_delay(2 * T));
    let busy = LimitSpec::new(1, T, 3).build().unwrap();
    assert!(cell.check(&busy, 0, 3).passes());
    for policy in [FullPolicy::Inherit, FullPolicy::Sampled, FullPolicy::Admit, FullPolicy::Deny] {
        for tag in 100..200 {
            let lines = memory(4);
            let (table, limit) = full(&lines, spec, policy, 1);
            let debts = || (owed(&table, &limit), table.peek(&limit, 0, key(tag), 0).unwrap().reset_after);
            let before = debts();
            let links = [X, tag].map(|tag| Link::hash(&table, &limit, key(tag), 1));
            let refused =
                Chain::new(&[links[0], links[1], Link::cell(&cell, &busy, 1)]).unwrap().reserve(0).unwrap();
            assert_eq!((refused.verdict, refused.policy), (Verdict::NonConforming, 2), "{policy:?}, {tag}");
            assert_eq!(debts(), before, "{policy:?}, {tag}");
        }
    }
}
