//! A thousand random logs: each answer is that of the oracle.

use std::collections::BTreeMap;
use std::fmt::Write;

use tatcell_cli::args::{Arguments, Command};
use tatcell_cli::plan::report::Report;

use crate::oracle::{refused, smallest_burst, smallest_burst_of_a_table, Request};
use crate::{folder, Random};

/// What a command line answers.
pub fn plan(arguments: &[&str]) -> Report {
    use clap::Parser;
    let seed = ["--seed", "00112233445566778899aabbccddeeff"];
    let all = ["tatcell", "plan"].iter().chain(&seed).chain(arguments);
    let Command::Plan(plan) = Arguments::try_parse_from(all).expect("arguments").command else {
        panic!("another subcommand");
    };
    plan.plan().expect("a plan").run(&tatcell_cli::plan::Far::default()).expect("an answer")
}

/// Rates for the curves, with their units and period: also some whose interval is no whole number of nanoseconds.
const RATES: [(&str, u64, u64); 6] = [
    ("1/s", 1, 1_000_000_000),
    ("3/s", 3, 1_000_000_000),
    ("7/min", 7, 60_000_000_000),
    ("40/s", 40, 1_000_000_000),
    ("0.3/s", 3, 10_000_000_000),
    ("1000/s", 1000, 1_000_000_000),
];
/// Rates for limits: their interval is whole, so a table's word holds it exactly.
const WHOLE: [(&str, u64, u64); 4] = [
    ("1/s", 1, 1_000_000_000),
    ("5/s", 5, 1_000_000_000),
    ("30/min", 30, 60_000_000_000),
    ("100/s", 100, 1_000_000_000),
];

#[test]
fn a_thousand_random_logs_have_the_bursts_and_refusals_of_the_oracle() {
    let folder = folder("accuracy");
    let (mut refusals, mut compared) = (0, 0);
    for log in 0..1000u64 {
        let mut random = Random(log);
        let keys = 1 + random.below(12);
        let with_cost = random.below(2) == 0;
        // From many at one instant to one in several seconds.
        let step = 10u64.pow(4 + random.below(6) as u32);
        // Several servers have clocks of their own. With costs all requests of a client go to one of them, because
        // their order matters among those of one time.
        let grains: Vec<u64> = (0..1 + random.below(4))
            .map(|_| [1, 1_000_000, 1_000_000_000][random.below(3) as usize])
            .collect();
        let mut now = 1_700_000_000_000_000_000;
        let mut rows: Vec<(u64, u64, u64)> = Vec::new();
        let mut logs = vec![Vec::new(); grains.len()];
        for _ in 0..20 + random.below(150) {
            now += random.below(step) * random.below(4);
            let (key, cost) = (random.below(keys), if with_cost { random.below(5) } else { 1 });
            let server = if with_cost { key } else { random.next() } as usize % logs.len();
            let row = (now / grains[server] * grains[server], key, cost);
            rows.push(row);
            logs[server].push(row);
        }
        let mut requests = BTreeMap::<u64, Vec<Request>>::new();
        rows.iter().for_each(|(time, key, cost)| requests.entry(*key).or_default().push((*time, *cost)));
        requests.values_mut().for_each(|requests| requests.sort_by_key(|request| request.0));
        // A little out of order, within the default of --sort. Rows of one time and key keep their order.
        for rows in &mut logs {
            let disordered = random.below(2) == 0;
            for at in (1..rows.len()).filter(|_| disordered) {
                let apart = rows[at].0 - rows[at - 1].0;
                if apart > 0 && apart < 4_000_000_000 && random.below(3) == 0 && rows[at].1 != rows[at - 1].1
                {
                    rows.swap(at, at - 1);
                }
            }
        }
        let mut files = Vec::new();
        for (server, rows) in logs.iter().enumerate() {
            let mut text = String::from("time,user,cost\n");
            for (time, key, cost) in rows {
                let _ = writeln!(text, "{time},k{key},{cost}");
            }
            let file = folder.join(format!("{server}.csv"));
            std::fs::write(&file, text).expect("a file");
            files.push(file.to_str().expect("a name").to_owned());
        }

        let (rate, units, period) = WHOLE[random.below(4) as usize];
        let burst = 1 + random.below(12);
        let limit = format!("{rate} burst {burst}");
        let mut arguments: Vec<_> = files.iter().map(String::as_str).collect();
        arguments.extend(["-k", "user", "--slots", "4096", "-l", &limit, "--top", "100"]);
        if with_cost {
            arguments.extend(["-c", "cost"]);
        }
        RATES.iter().for_each(|(rate, ..)| arguments.extend(["-r", rate]));
        let report = plan(&arguments);

        assert_eq!(report.input.records, rows.len() as u64, "log {log}");
        assert_eq!((report.input.keys, report.input.late), (requests.len() as u64, 0), "log {log}");
        let coarsest = logs.iter().zip(&grains).filter(|(rows, _)| !rows.is_empty()).map(|(_, grain)| *grain);
        assert!(Some(report.input.grain_ns) >= coarsest.max(), "log {log}");
        for (at, (rate, units, period)) in RATES.iter().enumerate() {
            let needed = |requests: &Vec<Request>| smallest_burst_of_a_table(requests, *units, *period);
            let most = requests.values().map(needed).max();
            assert_eq!(Some(report.rates[at].max), most, "log {log}, {rate}");
            for key in &report.neediest {
                let number: u64 = key.key[1..].parse().expect("a key");
                assert_eq!(key.needed[at], needed(&requests[&number]), "log {log}, {rate}, {}", key.key);
                compared += 1;
            }
        }
        assert_eq!(report.neediest.len(), requests.len(), "log {log}");

        let answer = &report.limits[0];
        assert_eq!((answer.rate_error_ppb, answer.table.met_full_set), (0, 0), "log {log}");
        let want: BTreeMap<_, _> = requests
            .iter()
            .map(|(key, requests)| (format!("k{key}"), refused(requests, units, period, burst)))
            .filter(|(_, refused)| *refused > 0)
            .collect();
        let got: BTreeMap<_, _> =
            answer.top_refused.iter().map(|key| (key.key.clone(), key.refused)).collect();
        assert_eq!(got, want, "log {log}, {limit}");
        assert_eq!(answer.keys_hit, want.len() as u64, "log {log}, {limit}");
        assert_eq!(answer.refused, want.values().sum::<u64>(), "log {log}, {limit}");
        // The two ways to the same answer agree: who is hit is who needs a larger burst.
        let hit =
            requests.values().filter(|requests| smallest_burst(requests, units, period) > burst).count();
        assert_eq!(answer.keys_hit, hit as u64, "log {log}, {limit}");
        refusals += answer.refused;
    }
    assert!(
        refusals > 10_000 && compared > 10_000,
        "{refusals} refusals, {compared} bursts: too few to mean anything"
    );
}
