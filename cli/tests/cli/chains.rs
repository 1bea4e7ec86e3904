//! Several limits at once: against an oracle that keeps exact debts, and on a log whose truth is known.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;

use crate::accuracy::plan;
use crate::logs::{incident, Log};
use crate::{folder, Random};

/// A limit whose interval is whole nanoseconds: units a second, burst, and by how many bits of the address it counts.
type Limit = (u64, u64, u8);

/// How many requests are refused, and by which limit first. Debts are in nanoseconds, so they are exact.
fn oracle(log: &[(u64, [u8; 4])], limits: &[Limit]) -> Vec<u64> {
    let mut debts: Vec<HashMap<u32, u64>> = vec![HashMap::new(); limits.len()];
    let mut refused = vec![0; limits.len()];
    for (now, address) in log {
        let key = |bits: u8| u32::from_be_bytes(*address) >> (32 - u32::from(bits));
        let first = limits.iter().zip(&debts).position(|((rate, burst, bits), debts)| {
            let interval = 1_000_000_000 / rate;
            debts.get(&key(*bits)).map_or(0, |until| until.saturating_sub(*now)) + interval > burst * interval
        });
        match first {
            Some(limit) => refused[limit] += 1,
            None => {
                for ((rate, _, bits), debts) in limits.iter().zip(&mut debts) {
                    let until = debts.entry(key(*bits)).or_insert(0);
                    *until = (*until).max(*now) + 1_000_000_000 / rate;
                }
            }
        }
    }
    refused
}

#[test]
fn a_request_passes_all_limits_or_is_charged_to_none() {
    let folder = folder("chains");
    let mut random = Random(11);
    let rates = [1, 2, 4, 5, 8, 10, 16, 20, 25];
    let (mut decided, mut tried) = ([0u64; 3], 0);
    for round in 0..60 {
        let mut now = 1_700_000_000_000_000_000;
        let mut log = Vec::new();
        for _ in 0..400 {
            now += random.below(80) * 1_000_000;
            log.push((now, [10, 0, random.below(3) as u8, random.below(4) as u8]));
        }
        let mut limit = |bits| (rates[random.below(9) as usize], 1 + random.below(12), bits);
        let limits: Vec<Limit> = match round % 3 {
            0 => vec![limit(32), limit(32)],
            1 => vec![limit(32), limit(24)],
            _ => vec![limit(32), limit(24), limit(16)],
        };
        let file = folder.join(format!("{round}.log"));
        let mut text = String::new();
        for (time, address) in &log {
            let [a, b, c, d] = address;
            let (second, part) = (time / 1_000_000_000, time % 1_000_000_000);
            writeln!(text, "{a}.{b}.{c}.{d} {second}.{part:09}").expect("a string");
        }
        fs::write(&file, text).expect("a file");
        let words = limits.iter().map(|(rate, burst, bits)| match bits {
            32 => format!("{rate}/s burst {burst}"),
            bits => format!("/{bits} {rate}/s burst {burst}"),
        });
        let words = words.collect::<Vec<_>>().join(" and ");
        let report =
            plan(&[file.to_str().expect("a name"), "--log-format", "$remote_addr $msec", "-l", &words]);
        let want = oracle(&log, &limits);
        let answer = &report.limits[0];
        let got: Vec<_> = answer.links.iter().map(|link| link.refused).collect();
        assert_eq!((got, answer.refused), (want.clone(), want.iter().sum()), "{words}");
        want.iter().zip(&mut decided).for_each(|(refused, decided)| *decided += refused);
        tried += 1;
    }
    assert!(tried == 60 && decided.iter().all(|refused| *refused > 100), "{decided:?}");
}

#[test]
fn a_limit_of_the_network_stops_what_one_of_addresses_does_not() {
    let file = folder("ladder").join("access.log");
    fs::write(&file, incident().combined()).expect("a file");
    let name = file.to_str().expect("a name");
    let report = plan(&[name, "-l", "5/s burst 20", "-l", "5/s burst 20 and /24,56 20/s burst 100"]);
    let [alone, both] = &report.limits[..] else { panic!("two answers") };
    // The crawler is refused by its own limit, and the attack by that of its network.
    assert!(alone.links.is_empty() && alone.keys_hit == 1);
    assert!(both.links[0].refused >= alone.refused && both.links[1].refused > 50_000, "{:?}", both.links);
    assert_eq!(both.refused, both.links.iter().map(|link| link.refused).sum::<u64>());
    assert!(both.keys_hit > 200, "{} keys hit", both.keys_hit);
    // 4 networks are in debt at most, and many more addresses.
    assert!(both.links[1].table.peak_live <= 4 && both.links[0].table.peak_live > 50, "{:?}", both.links);
    let text = report.to_string();
    assert!(
        text.contains("refused by this limit first") && text.contains("table of /24,56 20/s burst 100"),
        "{text}"
    );
}

#[test]
fn each_limit_of_a_chain_says_which_of_its_own_sets_were_full() {
    let mut log = Log::default();
    for network in 0..8 {
        log.attack(&format!("10.0.{network}."), 250, 1_000, 0, 10_000);
    }
    let file = folder("chain-full").join("access.log");
    fs::write(&file, log.combined()).expect("a file");
    let limit = "1/min burst 20 and /24,56 5000/s burst 50000";
    let report = plan(&[file.to_str().expect("a name"), "--slots", "512", "-l", limit]);
    let met: Vec<_> = report.limits[0].links.iter().map(|link| link.table.met_full_set).collect();
    // 2000 addresses have 512 slots; the 8 networks have room.
    assert!(met[0] > 1_000 && met[1] == 0, "{met:?}");
    let text = report.to_string();
    assert_eq!(
        (text.matches("met a full set").count(), text.matches("are enough for a chance").count()),
        (1, 1)
    );
}
