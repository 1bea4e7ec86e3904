//! Several limits at once: against an oracle that keeps exact debts, and on a log whose truth is known.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;

use tatcell::{Address, Ladder, LadderLimits, LimitSpec, Line, Rung, Table};

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
        let limits: Vec<Limit> = match round % 4 {
            0 => vec![limit(32), limit(32)],
            1 => vec![limit(32), limit(24)],
            2 => vec![limit(32), limit(24), limit(16)],
            _ => [32, 31, 30, 29, 28, 24, 23, 16].map(limit).into(),
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

/// What each tier refuses, of IPv4 and then of IPv6, if the addresses themselves are asked.
fn asked(log: &[(u64, Address)], ladder: &Ladder, spec: &LimitSpec) -> Vec<(String, u64)> {
    let lines: Vec<Line> = (0..(1 << 17) + 2).map(|_| Line::new()).collect();
    let options = ladder.table_options(spec).expect("options").seed([7; 16]);
    let table = Table::init_exclusive(lines.leak(), &options).expect("a table");
    let limits = LadderLimits::new(&table, ladder, spec).expect("limits");
    let mut refused: Vec<Vec<u64>> = [true, false].map(|v4| vec![0; ladder.rungs(v4).len()]).into();
    for (now, address) in log {
        let decision = limits.check(&table, *now, address, 1).expect("a decision");
        if !decision.passes() {
            refused[usize::from(!address.is_v4())][decision.policy as usize] += 1;
        }
    }
    let of = |v4: bool, name: &str| {
        let tiers = ladder.rungs(v4).iter().zip(&refused[usize::from(!v4)]);
        tiers.map(|(rung, refused)| (format!("{name} /{}", rung.bits), *refused)).collect::<Vec<_>>()
    };
    [of(true, "IPv4"), of(false, "IPv6")].concat()
}

#[test]
fn a_ladder_is_planned_as_the_library_decides_it() {
    let folder = folder("ladders");
    let tier = |bits, multiplier| Rung { bits, multiplier };
    let eight = |bits: [u8; 8]| {
        let mut multiplier = 0;
        bits.map(|bits| {
            multiplier += 1;
            tier(bits, multiplier)
        })
    };
    let (v4, v6) = (eight([32, 31, 30, 29, 28, 26, 24, 0]), eight([128, 127, 126, 125, 124, 64, 56, 0]));
    let words = |tiers: &[Rung]| {
        let words = tiers.iter().map(|tier| format!("{}x{}", tier.bits, tier.multiplier));
        words.collect::<Vec<_>>().join(" ")
    };
    let several = [
        (Ladder::DEFAULT, None),
        (Ladder::new(&v4, &v6).expect("a ladder"), Some(format!("{}, {}", words(&v4), words(&v6)))),
        (
            Ladder::new(&[tier(24, 3)], &[tier(56, 2), tier(48, 5)]).expect("a ladder"),
            Some("/24x3, /56x2 /48x5".into()),
        ),
    ];
    let mut random = Random(28);
    for (at, (ladder, argument)) in several.iter().enumerate() {
        let (mut now, mut log, mut text) = (1_700_000_000_000_000_000u64, Vec::new(), String::new());
        for _ in 0..20_000 {
            now += random.below(9) * 1_000_000;
            let (host, part) = (random.below(16) as u8, random.below(5) as u8);
            let address = match random.below(2) {
                0 => std::net::IpAddr::from([10, 0, part, host]),
                _ => std::net::IpAddr::from([0x2001, 0xdb8, 0, part.into(), 0, 0, 0, u16::from(host % 4)]),
            };
            writeln!(text, "{address} {}.{:09}", now / 1_000_000_000, now % 1_000_000_000).expect("a string");
            log.push((now, Address::from(address)));
        }
        let file = folder.join(format!("{at}.log"));
        fs::write(&file, text).expect("a file");
        let name = file.to_str().expect("a name");
        let mut arguments = vec![name, "--log-format", "$remote_addr $msec", "-l", "ladder 2/s burst 4"];
        arguments.extend(argument.iter().flat_map(|argument| ["--ladder", argument]));
        let report = plan(&arguments);
        let answer = &report.limits[0];
        let got: Vec<_> = answer.tiers.iter().map(|tier| (tier.prefix.clone(), tier.refused)).collect();
        let want = asked(&log, ladder, &LimitSpec::new(2, 1_000_000_000, 4));
        assert_eq!(got, want, "{argument:?}");
        let sum: u64 = want.iter().map(|(_, refused)| refused).sum();
        assert!(answer.refused == sum && sum > 1_000 && sum < 20_000, "{sum}");
        let tiers = want.iter().filter(|(_, refused)| *refused > 0).count();
        assert!(tiers >= 2, "{want:?}");
        // One table has the debts of all tiers.
        assert!(answer.links.is_empty() && answer.table.peak_live >= 7, "{:?}", answer.table);
        assert!(report.to_string().contains("refused by this tier first"));
    }
}

#[test]
fn a_ladder_that_cannot_be_is_refused_with_its_reason() {
    let file = folder("ladder-refused").join("access.log");
    fs::write(&file, crate::program::LINE).expect("a file");
    for (arguments, want) in [
        (&["-l", "5/s", "--ladder", "32, 128"][..], "--ladder is for a limit that begins with this word"),
        (&["-l", "ladder 5/s", "--ladder", "32 24x32"], "give the tiers of IPv4, a comma, and those of IPv6"),
        (&["-l", "ladder 5/s", "--ladder", "24 32, 128"], "prefix lengths must fall from rung to rung"),
        (&["-l", "ladder 5/s", "--ladder", "32x2 24x1, 128"], "prefix lengths must fall from rung to rung"),
        (
            &["-l", "ladder 5/s", "--ladder", "32 31 30 29 28 27 26 25 24, 128"],
            "each family needs 1 to 8 rungs",
        ),
        (&["-l", "ladder 5/s", "--ladder", "32y2, 128"], "\"32y2\" is no tier"),
        (&["-l", "ladder 5/s and 6/s"], "a ladder stands alone"),
        (&["-l", "ladder 5/s", "-k", "path"], "needs a key with one address"),
    ] {
        let output = std::process::Command::new(crate::program::PROGRAM)
            .arg("plan")
            .arg(&file)
            .args(arguments)
            .output()
            .expect("the program runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(want), "{arguments:?}: {message}");
    }
}
