//! What a set of a new table gets, word by word.

use std::vec::Vec;

use super::*;
use crate::limit::LimitSpec;
use crate::table::handle::Table;
use crate::table::layout::fit::choose;
use crate::table::layout::options::TableOptions;

const T: u64 = 1 << 12;
const NOW: u64 = 1 << 40;

fn options() -> TableOptions {
    TableOptions::new(LimitSpec::new(1, T, 64)).caller_hash().resolution(0).claim_lifetime(2)
}

/// Chooses a geometry with this many lines of slots.
fn geometry(options: &TableOptions, lines: u32) -> Geometry {
    choose(options, lines as usize + 2).unwrap()
}

fn memory(lines: u32) -> Vec<Line> {
    (0..lines).map(|_| Line::new()).collect()
}

fn put(line: &Line, slot: usize, word: u64) {
    // ORDERING: Relaxed; one thread.
    line.words[slot].store(word, Ordering::Relaxed);
}

/// A smooth state and a used-up quota of one tag, in either order: what is kept owes what both do, although it is a
/// smaller number than the smooth state.
#[test]
fn debts_of_one_tag_are_kept_as_what_they_are_together() {
    let options = TableOptions::new(LimitSpec::quota_linear(10, 1_000)).caller_hash().resolution(0);
    let to = choose(&options, 4).unwrap();
    let (bits, mask) = (to.shl as u32, (1u64 << to.shl) - 1);
    let lead = |ahead: u64, aux: u64| (ahead << bits | aux) - mask;
    let (smooth, used_up) = (lead(500, mask), lead(400, 10));
    let both = to.merge(smooth, used_up);
    assert!(both < smooth, "the case that it is about");
    for leads in [[smooth, used_up], [used_up, smooth]] {
        let mut kept = Kept::default();
        for lead in leads {
            assert!(!kept.keep(&to, Debt { tag: 1 << 60, lead, second: false }));
        }
        assert_eq!((kept.count, kept.leads[0]), (1, both));
    }
}

/// If there are more debts than slots, the smallest goes; of equal ones, the one that came last.
#[test]
fn a_debt_that_is_larger_than_none_displaces_none() {
    let to = geometry(&options(), 2);
    let mut kept = Kept::default();
    for tag in 1..=SLOTS as u64 {
        assert!(!kept.keep(&to, Debt { tag: tag << 48, lead: T, second: false }));
    }
    let tags = kept.tags;
    for lead in [T - 1, T] {
        assert!(kept.keep(&to, Debt { tag: 99 << 48, lead, second: false }));
        assert_eq!(kept.tags, tags, "{lead}");
    }
    assert!(kept.keep(&to, Debt { tag: 99 << 48, lead: T + 1, second: false }));
    assert!(kept.tags.contains(&(99 << 48)));
}

/// A line's debts go to the line where a hash in its middle is searched first, whatever the sizes are.
#[test]
fn a_debt_lies_in_the_line_where_the_middle_of_its_old_line_looks_first() {
    for (from, to) in [(4, 4), (4, 8), (8, 4), (6, 10), (10, 6), (8, 24), (24, 8), (16, 14), (6, 44), (44, 6)]
    {
        let (from, to) = (geometry(&options(), from), geometry(&options(), to));
        let mut placed = [0; 2];
        for number in 0..from.lines as usize {
            let old = memory(from.lines);
            put(&old[number], 3, from.layout.live(from.layout.tag(7), NOW + T));
            let plan = Plan::new(&old, [from, to], None, NOW).unwrap();
            let middle = ((2 * number as u64 + 1) << 31).div_ceil(from.lines.into()) << 32;
            let middle = home_line(middle, to.lines) as u64;
            let mut copies = 0;
            for set in 0..u64::from(to.lines) / 2 {
                let mut report = Migrated::default();
                let words = plan.fill(set, &mut report);
                let second = usize::from(middle > 2 * set);
                let found = words.map(|line| line.iter().filter(|word| **word != 0).count() as u64);
                let mut expected = [0; 2];
                expected[second] = report.copied;
                assert_eq!(found, expected, "line {number} of {}, set {set} of {}", from.lines, to.lines);
                copies += report.copied;
                placed[second] += report.copied;
            }
            assert!(copies > 0, "line {number} of {} has gone", from.lines);
        }
        assert!(placed[1] > 0 && (placed[0] > 0 || to.lines >= 2 * from.lines), "{placed:?}");
    }
}

/// A lead is reported as cut if it is, also where words count; any other lead stays whole.
#[test]
fn a_lead_is_cut_to_the_horizon_and_no_earlier() {
    let counts = TableOptions::new(LimitSpec::fixed_window(10, 1_000)).caller_hash().resolution(0);
    for options in [options(), counts] {
        let (from, old) = (geometry(&options, 2), memory(2));
        let plan = Plan::new(&old, [from, from], None, NOW).unwrap();
        for (lead, cut) in [
            (1, None),
            (from.horizon - 1, None),
            (from.horizon, None),
            // The time alone: it counts nothing.
            (from.horizon + 1, Some(from.horizon - from.aux_mask())),
        ] {
            assert_eq!(plan.convert(lead), (cut.unwrap_or(lead), cut.is_some()), "{options:?}");
        }
    }
}

/// A full set bounds absent keys only while none of its slots may be taken.
#[test]
fn a_set_has_a_floor_while_no_slot_of_it_may_be_taken() {
    let from = geometry(&options().policy(FullPolicy::Deny), 2);
    let layout = &from.layout;
    let mut taken = [0; 2];
    for ahead in (0..64).map(|n| 2 * n) {
        let old = memory(2);
        for (i, line) in old.iter().enumerate() {
            for slot in 0..SLOTS_PER_LINE {
                put(line, slot, layout.live(layout.tag((8 * i + slot) as u64 + 1), NOW + 9 * T));
            }
        }
        // A tombstone.
        let word = (NOW + ahead) & layout.mask;
        put(&old[1], 5, word);
        let floor = Plan::new(&old, [from, from], None, NOW).unwrap().floor(&old);
        let reusable = layout.is_reusable(word, NOW);
        assert_eq!(floor, if reusable { 0 } else { ahead }, "{ahead} ahead, grace {}", layout.grace);
        taken[usize::from(reusable)] += 1;
    }
    assert!(taken.iter().all(|&n| n > 5), "{taken:?}");
}

/// Wherever the clock stands, the word is not 0: a slot that never held anything would be taken at once.
#[test]
fn a_tombstone_is_never_the_word_of_a_fresh_slot() {
    let to = geometry(&options().policy(FullPolicy::Deny), 2);
    let (layout, old) = (to.layout, memory(2));
    for before in 0..4 * T {
        let plan = Plan::new(&old, [to, to], None, layout.mask.wrapping_sub(before)).unwrap();
        for lead in [1, 2, 99] {
            let word = plan.tombstone(lead);
            let left = layout.tombstone_lead(word, plan.to_q);
            let least = lead + layout.grace;
            assert!((least..least + 5).contains(&left), "{word:#x} {before} before the wrap: {left}");
        }
        assert_eq!(plan.tombstone(0), 0);
    }
}

/// What is foreseen covers all sets and no other.
#[test]
fn what_is_foreseen_is_what_is_reported() {
    let spec = LimitSpec::new(1, T, 64);
    let (old_lines, new_lines) = (memory(26), memory(20));
    let old = Table::init(&old_lines, &options()).unwrap();
    let limit = old.limit(&spec).unwrap();
    for i in 0..150u64 {
        let hash = (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) << 32) + i + 1;
        let _ = old.check_hash(&limit, NOW, hash, 1 + i % 60).unwrap();
    }
    let foreseen = old.foresee_migration(new_lines.len(), &options(), NOW).unwrap();
    let (_, report) = old.migrate(&new_lines, &options(), NOW).unwrap();
    assert!(report.copied > 100, "{report:?}");
    assert_eq!(foreseen, report);
}
