//! What the plan says of logs whose truth is known.

use std::fs;

use tatcell_cli::plan::report::Report;

use crate::accuracy::plan;
use crate::folder;
use crate::logs::{Log, PRECISE};

const MINUTE: u64 = 60_000;

/// The answer for a log with milliseconds.
fn answer(name: &str, log: &Log, arguments: &[&str]) -> Report {
    let file = folder(name).join("access.log");
    fs::write(&file, log.precise()).expect("a file");
    let base = [file.to_str().expect("a name"), "--log-format", PRECISE];
    let report = plan(&[&base, arguments].concat());
    assert_eq!((report.input.records, report.input.bad), (log.len(), 0));
    report
}

#[test]
fn a_steady_client_needs_a_burst_of_one_at_its_own_rate() {
    let mut log = Log::default();
    log.steady("192.0.2.1", 500, 0, 10 * MINUTE);
    let report =
        answer("steady", &log, &["-r", "2/s", "-r", "1/s", "-l", "2/s burst 1", "-l", "1/s burst 1"]);
    assert_eq!(report.rates[0].max, 1);
    // 1200 requests in 599.5 s: what a rate of 1/s leaves of them is 600.5.
    assert_eq!(report.rates[1].max, 601);
    assert_eq!((report.limits[0].refused, report.limits[1].refused), (0, 600));
}

#[test]
fn a_bursty_client_needs_its_burst() {
    let mut log = Log::default();
    log.bursty("192.0.2.1", 30, MINUTE, 0, 60 * MINUTE);
    let report = answer("bursty", &log, &["-r", "1/s", "-l", "1/s burst 30", "-l", "1/s burst 29"]);
    assert_eq!(report.rates[0].max, 30);
    assert_eq!((report.limits[0].refused, report.limits[1].refused), (0, 60));
    assert_eq!(report.limits[1].worst.as_ref().map(|worst| (worst.refused, worst.records)), Some((1, 30)));
}

#[test]
fn an_attack_from_one_network_is_seen_by_its_prefix_only() {
    let mut log = Log::default();
    log.attack("192.0.2.", 200, 1_000, 0, 5 * MINUTE);
    let limit = ["-l", "2/s burst 5"];
    let alone = answer("attack", &log, &limit);
    assert_eq!((alone.input.keys, alone.limits[0].keys_hit), (200, 0));
    let network = answer("attack24", &log, &[&limit[..], &["-k", "address/24"]].concat());
    assert_eq!((network.input.keys, network.limits[0].keys_hit), (1, 1));
    assert_eq!(network.limits[0].top_refused[0].key, "192.0.2.0/24");
    // 200 a second, of which 2 a second and 5 at once pass.
    let passed = log.len() - network.limits[0].refused;
    assert!((2 * 299 + 5..=2 * 300 + 5).contains(&passed), "{passed}");
}

#[test]
fn people_behind_one_address_count_as_one_client() {
    let mut log = Log::default();
    log.nat("192.0.2.1", 50, 5_000, 0, 10 * MINUTE).steady("192.0.2.2", 5_000, 0, 10 * MINUTE);
    let report = answer("nat", &log, &["-r", "10/s", "-l", "5/s burst 20", "--good", "192.0.2.1"]);
    assert_eq!((report.rates[0].max, report.rates[0].good_needs), (1, Some(1)));
    assert_eq!(report.limits[0].good_hit, ["192.0.2.1"]);
    assert_eq!(report.good[0].records, 6_000);
}

#[test]
fn the_smallest_limit_leaves_the_share_and_the_good_keys_alone() {
    let mut log = Log::default();
    for host in 1..=100u64 {
        log.bursty(&format!("192.0.2.{host}"), host as usize, 60 * MINUTE, 0, MINUTE);
    }
    let report = answer("smallest", &log, &["-r", "1/s", "--spare", "90"]);
    assert_eq!((report.rates[0].smallest, report.rates[0].smallest_hits), (90, 10));
    assert_eq!((report.rates[0].p50, report.rates[0].p99, report.rates[0].max), (50, 99, 100));
    let good =
        answer("good", &log, &["-r", "1/s", "--spare", "90", "--good", "192.0.2.97", "--good", "192.0.2.3"]);
    assert_eq!((good.rates[0].smallest, good.rates[0].smallest_hits), (97, 3));
}

#[test]
fn whole_seconds_move_a_needed_burst_by_less_than_is_said() {
    let folder = folder("seconds");
    let (whole, precise) = (folder.join("whole.log"), folder.join("precise.log"));
    let mut log = Log::default();
    for host in 1..=60 {
        log.steady(&format!("192.0.2.{host}"), 20 + 13 * host, host * 7, 5 * MINUTE);
    }
    fs::write(&whole, log.combined()).expect("a file");
    fs::write(&precise, log.precise()).expect("a file");
    let coarse = plan(&[whole.to_str().expect("a name"), "--top", "1000"]);
    let fine = plan(&[precise.to_str().expect("a name"), "--log-format", PRECISE, "--top", "1000"]);
    assert_eq!((coarse.input.grain_ns, fine.input.grain_ns), (1_000_000_000, 1_000_000));
    assert_eq!((coarse.input.keys, fine.input.keys), (60, 60));
    let mut differ = 0;
    for key in &fine.neediest {
        let other = coarse.neediest.iter().find(|other| other.key == key.key).expect("the same keys");
        for (rate, (a, b)) in key.needed.iter().zip(&other.needed).enumerate() {
            let bound = coarse.rates[rate].uncertain;
            // Both are rounded up to a unit.
            assert!(a.abs_diff(*b) <= bound, "{} at {}: {a} and {b}", key.key, coarse.rates[rate].rate);
            differ += u64::from(a != b);
        }
    }
    assert!(differ > 100, "only {differ} bursts differ: the bound is not tried");
}

#[test]
fn beyond_max_keys_a_sample_is_counted_and_said() {
    let mut log = Log::default();
    for network in 0..40 {
        // One in four sends 10 at once, the others 2.
        for host in 1..=250u64 {
            let count = if host % 4 == 0 { 10 } else { 2 };
            log.bursty(&format!("10.0.{network}.{host}"), count, 60 * MINUTE, host * 1_000, 250 * 1_000 + 1);
        }
    }
    let limit = ["-l", "1/s burst 5", "--good", "10.0.7.4", "--top", "1"];
    let exact = answer("exact", &log, &limit);
    let sampled = answer("sampled", &log, &[&limit[..], &["--max-keys", "1000"]].concat());
    assert_eq!((exact.input.one_in, exact.input.keys, exact.limits[0].keys_hit), (1, 10_000, 2_480));
    assert!(sampled.input.one_in >= 10 && sampled.input.keys_kept <= 1_000, "{:?}", sampled.input);
    // What is refused is exact; what is counted by key is within a few per cent, also of more than 1000 keys hit.
    let (all, some) = (&exact.limits[0], &sampled.limits[0]);
    assert_eq!((some.refused, all.keys_hit_one_in), (all.refused, 1));
    assert!(some.keys_hit_one_in >= 4 && some.keys_hit.abs_diff(2_480) < 700, "{} keys hit", some.keys_hit);
    assert_eq!(some.worst.as_ref().map(|w| w.refused), all.worst.as_ref().map(|w| w.refused));
    assert!(sampled.input.keys.abs_diff(10_000) < 1_500, "{} keys", sampled.input.keys);
    assert_eq!(sampled.good[0].records, 10, "a good key is always counted");
    let text = sampled.to_string();
    assert!(
        text.contains("Sampled: one key in ") && text.contains(&format!(", of about {} keys", some.keys_hit))
    );
}

#[test]
fn what_comes_from_a_sample_says_so() {
    // 2000 keys send once, and one of them 520 at once: seldom one of the sample.
    let mut log = Log::default();
    for network in 0..8 {
        for host in 1..=250u64 {
            log.steady(&format!("10.0.{network}.{host}"), 1_000_000, host * 100, host * 100 + 1);
        }
    }
    log.bursty("192.0.2.1", 520, MINUTE, 0, 1);
    let arguments = ["-r", "10/s", "-l", "10/s burst 5", "--max-keys", "100"];
    let report = answer("of-a-sample", &log, &arguments);
    let (input, rate, limit) = (&report.input, &report.rates[0], &report.limits[0]);
    assert!(input.one_in >= 16 && input.records_kept < 200, "{input:?}");
    // The neediest key is not among those that were counted; the table has seen it.
    assert!(rate.max < 520 && rate.max_is_least, "{rate:?}");
    assert!(limit.refused > 500 && limit.keys_hit == 1 && limit.keys_hit_one_in == 1, "{limit:?}");
    assert!(limit.top_refused.is_empty() && limit.table.one_in == input.one_in, "{limit:?}");
    let (text, page) = (report.to_string(), report.html());
    for claim in ["nobody in this input is refused", "of 0 keys", "Nobody is refused"] {
        assert!(!text.contains(claim) && !page.contains(claim), "{claim}\n{text}\n{page}");
    }
    for want in [
        &format!("Sampled: one key in {} was counted", input.one_in),
        "Records refused are those of all keys, and so are keys hit unless \"about\" stands before their number.",
        "The burst that a key of the sample needs",
        &format!(" >={} ", rate.max),
        "(about 0 keys hit)",
        "With the burst `max` no key of the sample is refused; the others",
        " refused (20.",
        "%), of 1 key (about 0.0",
        "at most about ",
    ] {
        assert!(text.contains(want), "{want}\n{text}");
    }
    for want in [
        "Sampled: one key in ",
        "No key of the sample is refused.",
        "The largest burst that a key of the sample needs is ",
        "leaves the stated share of keys of the sample alone; it refuses no key of the sample",
        ", of 1 key (about 0.0",
        " At most about ",
        ", as estimated from the sample",
        "Of the keys of the sample: the burst",
    ] {
        assert!(page.contains(want), "{want}\n{page}");
    }
    // With all of them counted nothing of this is there.
    let report = answer("of-all", &log, &arguments[..4]);
    let (text, page) = (report.to_string(), report.html());
    assert!(
        report.rates[0].max == 520 && !report.rates[0].max_is_least && !text.contains("about "),
        "{text}"
    );
    assert!(!text.contains("sample") && !page.contains("sample"), "{page}");
}

#[test]
fn a_table_that_is_too_small_says_so() {
    let mut log = Log::default();
    for network in 0..8 {
        log.attack(&format!("10.0.{network}."), 250, 1_000, 0, 10_000);
    }
    let arguments = ["-l", "1/min burst 2", "--slots", "512", "-p", "admit,deny"];
    let report = answer("small", &log, &arguments);
    let [admit, deny] = &report.limits[..] else { panic!("two answers") };
    assert_eq!((&*admit.policy, &*deny.policy), ("admit", "deny"));
    assert!(admit.table.peak_load > 0.95 && admit.table.full_set_chance > 0.05, "{:?}", admit.table);
    assert!(admit.table.met_full_set > 0 && admit.refused < deny.refused);
    assert!(
        admit.table.peak_live <= 512
            && report.to_string().contains("met a full set: for a size, replay it with")
    );
    // With enough slots it says how many are in debt, and a table of the size that it recommends has no full set.
    let roomy = answer("roomy", &log, &["-l", "1/min burst 2"]);
    let table = &roomy.limits[0].table;
    assert_eq!((table.peak_live, table.met_full_set, roomy.limits[0].keys_hit), (2_000, 0, 2_000));
    let slots = (table.recommended_bytes / 8 - 16).to_string();
    let sized = answer("sized", &log, &["-l", "1/min burst 2", "--slots", &slots]);
    assert_eq!((sized.limits[0].table.met_full_set, sized.limits[0].keys_hit), (0, 2_000));
}

#[test]
fn every_algorithm_is_replayed() {
    let mut log = Log::default();
    log.bursty("192.0.2.1", 120, MINUTE + 1_000, 0, 10 * MINUTE);
    let limits = ["100/min", "fixed 100/min", "sliding 100/min", "quota 100/min", "decay 100/min burst 100"];
    let arguments: Vec<_> = limits.iter().flat_map(|limit| ["-l", *limit]).collect();
    let report = answer("algorithms", &log, &arguments);
    let refused: Vec<_> = report.limits.iter().map(|limit| limit.refused).collect();
    // A window and a bucket have refilled after 61 s; the sliding counter still sees what came a window ago; the quota
    // goes on at its rate; the level has lost half in 41 s.
    assert_eq!(&refused[..2], [200, 200]);
    assert!(refused[2..].iter().all(|refused| *refused > 200 && *refused < 1200), "{refused:?}");
}

#[test]
fn debts_end_in_a_gap_that_is_longer_than_a_word_lasts() {
    // A table's word of this limit wraps after some hours; the log has gaps of days, and one request a day.
    let folder = folder("gaps");
    let file = folder.join("log.csv");
    let mut text = String::from("time,user\n");
    for day in 0..400u64 {
        for _ in 0..3 {
            text += &format!("{},ann\n", 1_700_000_000 + day * 86_400 + day * day * 137 % 50_000);
        }
    }
    fs::write(&file, text).expect("a file");
    let report = plan(&[file.to_str().expect("a name"), "-k", "user", "-l", "1/s burst 3", "-r", "1/s"]);
    assert_eq!((report.limits[0].refused, report.rates[0].max), (0, 3));
}
