//! HTTP fields: the value of each for each decision, rounded the right way, in the form of RFC 9651, at any frequency.

use std::fmt::Write;

use crate::common::{cases, Rng};
use tatcell::http::{Field, Fields, HttpError, Policy, MAX_POLICIES};
use tatcell::{limit, Cell, Decision, Limit, Limit32, LimitSpec, Verdict};

const SECOND: u64 = 1_000_000_000;
/// The largest integer of structured fields.
const MOST: u64 = 999_999_999_999_999;

static LIMIT: Limit = limit!(2 per 1_000, burst 10);

fn value(field: Field, hz: u64, policies: &[Policy<'_>]) -> String {
    let mut out = String::new();
    Fields::new(hz, policies).expect("fields").write_value(field, &mut out).expect("a String takes all");
    out
}

fn lines(hz: u64, policies: &[Policy<'_>]) -> String {
    let mut out = String::new();
    Fields::new(hz, policies)
        .expect("fields")
        .write_lines(&Field::ALL, &mut out)
        .expect("a String takes all");
    out
}

fn policy(name: &str) -> Policy<'_> {
    Policy::new(name).expect("a name").limit(&LIMIT.info())
}

/// The item of a list: name, parameters in order with their values as text.
type Member = (String, Vec<(String, String)>);

/// Parses a List of Strings with parameters as RFC 9651 section 4.2 does, for the types that stand here.
fn parse(field: &str) -> Vec<Member> {
    let mut rest = field.as_bytes();
    let mut take = |what: &dyn Fn(u8) -> bool| {
        let (first, more) = rest.split_first()?;
        what(*first).then(|| {
            rest = more;
            char::from(*first)
        })
    };
    let mut list = Vec::new();
    loop {
        assert_eq!(take(&|b| b == b'"'), Some('"'), "no String in {field}");
        let mut name = String::new();
        while let Some(c) = take(&|b| (b' '..=b'~').contains(&b) && b != b'"') {
            name.push(if c == '\\' { take(&|b| b == b'"' || b == b'\\').expect("an escape") } else { c });
        }
        assert_eq!(take(&|b| b == b'"'), Some('"'), "no end of a String in {field}");
        let mut parameters = Vec::new();
        while take(&|b| b == b';').is_some() {
            let mut key = String::new();
            while let Some(c) = take(&|b| b.is_ascii_lowercase()) {
                key.push(c);
            }
            assert_eq!(take(&|b| b == b'='), Some('='), "no value in {field}");
            let mut text = String::new();
            let (quoted, bytes) = (take(&|b| b == b'"').is_some(), take(&|b| b == b':').is_some());
            let inside = |b: u8| match (quoted, bytes) {
                (true, _) => b != b'"',
                (_, true) => b.is_ascii_alphanumeric() || b"+/=".contains(&b),
                _ => b.is_ascii_digit(),
            };
            while let Some(c) = take(&inside) {
                text.push(c);
            }
            if quoted || bytes {
                take(&|b| b == if quoted { b'"' } else { b':' }).expect("an end");
            } else {
                assert!((1..=15).contains(&text.len()), "no Integer: {text}");
                assert!(text == "0" || !text.starts_with('0'), "a leading zero: {text}");
            }
            parameters.push((key, text));
        }
        list.push((name, parameters));
        if take(&|b| b == b',').is_none() {
            break;
        }
        take(&|b| b == b' ').expect("a space");
    }
    assert!(rest.is_empty(), "more behind the list: {field}");
    list
}

fn number(member: &Member, key: &str) -> Option<u64> {
    member.1.iter().find(|(k, _)| k == key).map(|(_, text)| text.parse().expect("an Integer"))
}

/// A decision with these numbers, in ticks.
fn decided(verdict: Verdict, remaining: u64, retry_after: u64, reset_after: u64) -> Decision {
    let base = Cell::new().peek(&LIMIT, 0, 0);
    Decision { verdict, remaining, retry_after, reset_after, ..base }
}

#[test]
fn each_verdict_says_what_the_table_of_the_module_says() {
    let of = |d: Decision| [policy("p").decision(&d)];
    let pass = of(decided(Verdict::Conforming, 3, 0, 3_500));
    let x = |limit, remaining, reset| {
        format!(
            "X-RateLimit-Limit: {limit}\r\nX-RateLimit-Remaining: {remaining}\r\nX-RateLimit-Reset: {reset}\r\n"
        )
    };
    let first = "RateLimit-Policy: \"p\";q=10;w=5\r\n";
    assert_eq!(lines(1_000, &pass), format!("{first}RateLimit: \"p\";r=3;t=4\r\n{}", x(10, 3, 4)));
    let refused = of(decided(Verdict::NonConforming, 0, 1_001, 4_500));
    assert_eq!(
        lines(1_000, &refused),
        format!("{first}RateLimit: \"p\";r=0;t=2\r\nRetry-After: 2\r\n{}", x(10, 0, 2))
    );
    let never = of(decided(Verdict::Never, 7, u64::MAX, 1_500));
    assert_eq!(lines(1_000, &never), format!("{first}RateLimit: \"p\";r=7;t=2\r\n{}", x(10, 7, 2)));
    let contended = of(decided(Verdict::Contended, 0, 0, 0));
    assert_eq!(lines(1_000, &contended), format!("{first}Retry-After: 1\r\n"));
    let shadow = Decision { flags: Decision::SHADOW, ..decided(Verdict::Conforming, 0, 1_001, 4_500) };
    assert_eq!(lines(1_000, &of(shadow)), first);
    let unlimited = Cell::new().check_ex(&Limit::UNLIMITED, 0, 1, 0);
    let all = [Policy::new("all").expect("a name").limit(&Limit::UNLIMITED.info()).decision(&unlimited)];
    assert_eq!(lines(1_000, &all), "");
}

/// A limit on trial is none that a client should keep to, nor one that it should know of.
#[test]
fn clients_are_told_nothing_of_a_limit_in_shadow_mode() {
    let (limit, cell) = (LimitSpec::new(2, 1_000, 2).shadow().build().expect("a limit"), Cell::new());
    for now in 0..4 {
        let decision = cell.check_ex(&limit, now, 1, 0);
        let tried = Policy::new("tried").expect("a name").limit(&limit.info()).decision(&decision);
        assert_eq!(lines(1_000, &[tried]), "", "{now}");
        let kept = policy("kept").decision(&decided(Verdict::NonConforming, 0, 1_001, 4_500));
        assert_eq!(lines(1_000, &[tried, kept]), lines(1_000, &[kept]), "{now}");
    }
}

/// A status page is no refusal. A check of cost 0 asks for a verdict, and may be refused.
#[test]
fn a_peek_of_cost_0_in_debt_has_no_retry_after() {
    let (limit, cell) = (LimitSpec::new(2, 1_000, 10).max_debt(6).build().unwrap(), Cell::new());
    assert!(cell.charge(&limit, 0, 14).passes());
    let said = |d: Decision| lines(1_000, &[policy("p").decision(&d)]);
    let policy = "RateLimit-Policy: \"p\";q=10;w=5\r\n";
    let left = |t| format!("X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: {t}\r\n");
    let status = cell.peek(&limit, 0, 0);
    assert_eq!((status.passes(), status.retry_after, status.in_debt), (false, 2_000, true));
    assert_eq!(said(status), format!("{policy}RateLimit: \"p\";r=0;t=7\r\n{}", left(7)));
    let refused = format!("{policy}RateLimit: \"p\";r=0;t=2\r\nRetry-After: 2\r\n{}", left(2));
    assert_eq!(said(cell.check_ex(&limit, 0, 0, 0)), refused);
    assert_eq!(said(cell.peek(&limit, 500, 1)), refused);
    assert!(!cell.peek(&limit, 2_000, 0).in_debt, "no debt above the burst");
}

#[test]
fn a_full_burst_has_no_window_and_a_policy_without_decision_is_a_policy_alone() {
    let full = policy("p").decision(&decided(Verdict::Conforming, 10, 0, 0));
    assert_eq!(value(Field::RateLimit, 1_000, &[full]), "\"p\";r=10");
    assert_eq!(value(Field::XReset, 1_000, &[full]), "0");
    assert_eq!(lines(1_000, &[policy("p")]), "RateLimit-Policy: \"p\";q=10;w=5\r\n");
    let bare = Policy::new("p").expect("a name");
    assert_eq!(lines(1_000, &[bare]), "");
    assert_eq!(value(Field::RateLimitPolicy, 1_000, &[bare.quota(7)]), "\"p\";q=7");
    assert_eq!(lines(1_000, &[]), "");
}

#[test]
fn several_policies_stand_in_one_list_and_the_longest_wait_counts() {
    let (short, long) =
        (decided(Verdict::NonConforming, 0, 1_500, 9_000), decided(Verdict::NonConforming, 2, 7_100, 9_000));
    let pass = decided(Verdict::Conforming, 1, 0, 60_000);
    let list = [policy("a").decision(&pass), policy("b").decision(&short), policy("c").decision(&long)];
    assert_eq!(value(Field::RetryAfter, 1_000, &list), "8");
    // No effective window ends after Retry-After, as the draft asks.
    assert_eq!(value(Field::RateLimit, 1_000, &list), "\"a\";r=1;t=8, \"b\";r=0;t=2, \"c\";r=2;t=8");
    assert_eq!(value(Field::XRemaining, 1_000, &list), "2");
    assert_eq!(value(Field::XReset, 1_000, &list), "8");
    let never = decided(Verdict::Never, 3, u64::MAX, 2_000);
    let list = [policy("b").decision(&short), policy("n").decision(&never)];
    assert_eq!(value(Field::RetryAfter, 1_000, &list), "");
    assert_eq!(value(Field::XRemaining, 1_000, &list), "3");
    let contended = decided(Verdict::Contended, 0, 0, 0);
    let list = [policy("x").decision(&contended), policy("b").decision(&short), policy("alone")];
    assert_eq!(value(Field::RetryAfter, 1_000, &list), "2");
    assert_eq!(value(Field::RateLimit, 1_000, &list), "\"b\";r=0;t=2");
    let passes = [policy("a").decision(&pass), policy("b").decision(&decided(Verdict::Conforming, 0, 0, 1))];
    assert_eq!(value(Field::XRemaining, 1_000, &passes), "0");
    assert_eq!(value(Field::XReset, 1_000, &passes), "1");
    let [a, b] = passes;
    for list in [[a, b], [b, a]] {
        assert_eq!(value(Field::XRemaining, 1_000, &list), "0", "the order of a list decides nothing");
    }
    // Of two that bind alike the first.
    let alike = [1, 2].map(|reset| policy("p").decision(&decided(Verdict::Conforming, 3, 0, reset * 1_000)));
    assert_eq!(value(Field::XReset, 1_000, &alike), "1");
}

/// Numbers that no limit has, as a caller of the C interface may make them up.
#[test]
fn a_window_beyond_all_ticks_is_the_longest() {
    let mut info = LimitSpec::new(1, 60, 100).resolution(0).build().expect("a limit").info();
    assert_eq!(value(Field::RateLimitPolicy, 60, &[policy("p").limit(&info)]), "\"p\";q=100;w=100");
    info.emission_q = u64::MAX;
    let most = value(Field::RateLimitPolicy, 1, &[policy("p").limit(&info)]);
    info.emission_q = u64::MAX / 100;
    let less = value(Field::RateLimitPolicy, 1, &[policy("p").limit(&info)]);
    assert_eq!(most, less, "both are more than a structured field can say");
    // 50 * 2^64 ticks.
    info.emission_q = 1 << 63;
    assert_eq!(value(Field::RateLimitPolicy, 1, &[policy("p").limit(&info)]), most);
    info.emission_q = u64::MAX;
    let seconds = value(Field::RateLimitPolicy, 1 << 60, &[policy("p").limit(&info)]);
    assert_eq!(seconds, "\"p\";q=100;w=16");
}

#[test]
fn the_examples_of_the_draft_are_spelled_so() {
    let of = |name| Policy::new(name).expect("a name");
    let list = [of("permin").quota(50).window(60), of("perhr").quota(1000).window(3600)];
    assert_eq!(value(Field::RateLimitPolicy, 1, &list), "\"permin\";q=50;w=60, \"perhr\";q=1000;w=3600");
    let app = of("default").partition(b"App-999");
    let left = decided(Verdict::Conforming, 300_000_000, 0, 60);
    assert_eq!(
        value(Field::RateLimit, 1, &[app.decision(&left)]),
        "\"default\";r=300000000;t=60;pk=:QXBwLTk5OQ==:"
    );
    let bytes = of("peruser").quota(65535).window(10).unit("content-bytes").expect("a unit");
    assert_eq!(value(Field::RateLimitPolicy, 1, &[bytes]), "\"peruser\";q=65535;qu=\"content-bytes\";w=10");
}

#[test]
fn only_characters_of_structured_fields_are_names_and_all_of_them_come_back() {
    for byte in 0..=255u8 {
        let name = format!("a{}b", char::from(byte));
        let good = (0x20..=0x7e).contains(&byte);
        assert_eq!(Policy::new(&name).is_ok(), good, "{byte:#x}");
        assert_eq!(Policy::new("a").expect("a name").unit(&name).is_ok(), good, "{byte:#x}");
    }
    assert_eq!(Policy::new("a\r\nSet-Cookie: b"), Err(HttpError::BadName));
    cases(300, |rng| {
        let name: String = (0..rng.below(20)).map(|_| char::from(rng.within(0x1e, 0x80) as u8)).collect();
        let edgy: String = (0..rng.below(9)).map(|_| rng.pick(&['"', '\\', 'a', ' ', ';'])).collect();
        for name in [name, edgy] {
            let good = name.chars().all(|c| (' '..='~').contains(&c));
            match Policy::new(&name) {
                Err(e) => assert!(!good && e == HttpError::BadName, "{name:?}"),
                Ok(policy) => {
                    let field = value(Field::RateLimitPolicy, 1, &[policy.quota(1)]);
                    assert_eq!(parse(&field), [(name, vec![("q".into(), "1".into())])]);
                }
            }
        }
    });
}

#[test]
fn partitions_of_any_bytes_are_base64() {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    cases(300, |rng| {
        let key: Vec<u8> = (0..rng.below(10)).map(|_| rng.next() as u8).collect();
        let policy = Policy::new("p").expect("a name").quota(1).partition(&key);
        let field = value(Field::RateLimitPolicy, 1, &[policy]);
        let text = parse(&field)[0].1[1].1.clone();
        assert_eq!(text.len(), key.len().div_ceil(3) * 4);
        let digits = text.trim_end_matches('=').bytes();
        let bits: Vec<u8> = digits
            .flat_map(|d| {
                let at = ALPHABET.iter().position(|a| *a == d).expect("a digit") as u8;
                (0..6).rev().map(move |bit| at >> bit & 1)
            })
            .collect();
        let back: Vec<u8> =
            bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |n, bit| n << 1 | bit)).collect();
        assert_eq!(back, key);
        assert!(bits.chunks_exact(8).remainder().iter().all(|bit| *bit == 0), "bits behind the end: {text}");
    });
}

/// A clock of any frequency, odd ones and extremes included.
fn frequency(rng: &mut Rng) -> u64 {
    let odd = [1, 3, 7, 1_000, 32_768, 1_000_003, SECOND, 2_999_999_927, u64::MAX - 1, u64::MAX];
    if rng.one_in(2) {
        rng.pick(&odd)
    } else {
        rng.scaled(64).max(1)
    }
}

#[test]
fn seconds_are_rounded_up_at_any_frequency_and_saturate() {
    cases(20_000, |rng| {
        let hz = frequency(rng);
        let (retry, reset) = (rng.scaled(64).max(1), rng.scaled(64));
        let up = |ticks: u64| u128::from(ticks).div_ceil(hz.into()).min(MOST.into()) as u64;
        let refused = [policy("p").decision(&decided(Verdict::NonConforming, 0, retry, reset))];
        assert_eq!(value(Field::RetryAfter, hz, &refused), up(retry).to_string(), "{retry} at {hz}");
        assert_eq!(value(Field::XReset, hz, &refused), up(retry).to_string());
        let passed = [policy("p").decision(&decided(Verdict::Conforming, retry, 0, reset))];
        let member = &parse(&value(Field::RateLimit, hz, &passed))[0];
        assert_eq!(number(member, "t"), (reset > 0).then(|| up(reset)), "{reset} at {hz}");
        assert_eq!(number(member, "r"), Some(retry.min(MOST)));
    });
}

#[test]
fn the_client_that_waits_as_printed_passes_and_the_server_was_right_to_the_tick() {
    cases(2_000, |rng| {
        let hz = rng.pick(&[1, 3, 1_000, 32_768, 1_000_003, SECOND]);
        let (units, burst) = (rng.within(1, 50), rng.within(1, 20));
        let spec = LimitSpec::new(units, hz.saturating_mul(rng.within(1, 90)), burst);
        let Ok(limit) = spec.build() else { return };
        let (cell, mut now) = (Cell::new(), rng.scaled(40));
        for _ in 0..30 {
            let cost = rng.within(1, burst);
            let d = cell.check_ex(&limit, now, cost, 0);
            let policy = [Policy::new("p").expect("a name").limit(&limit.info()).decision(&d)];
            let printed = value(Field::RetryAfter, hz, &policy);
            assert_eq!(printed.is_empty(), d.passes());
            let member = &parse(&value(Field::RateLimit, hz, &policy))[0];
            // Down: so much passes at once, if nothing else comes.
            let left = number(member, "r").expect("r");
            assert!(left == 0 || cell.peek(&limit, now, left).passes(), "{left} left at {now}");
            if let Ok(seconds) = printed.parse::<u64>() {
                let then = now + seconds * hz;
                assert!(cell.peek(&limit, then, cost).passes(), "refused {seconds} s after {now}");
                // A whole second less is too early, and so is the last tick before.
                assert!(!cell.peek(&limit, then - hz, cost).passes(), "{seconds} s after {now} is late");
                assert!(!cell.peek(&limit, now + d.retry_after - 1, cost).passes());
                assert!(number(member, "t").expect("t") <= seconds);
            }
            now += rng.below(hz / 2 + 2);
        }
    });
}

#[test]
fn a_limit_that_counts_says_its_own_window() {
    let minute = 60 * SECOND;
    let said = |spec: LimitSpec| {
        let info = spec.build().expect("a limit").info();
        value(Field::RateLimitPolicy, SECOND, &[Policy::new("p").expect("a name").limit(&info)])
    };
    for spec in [
        LimitSpec::fixed_window(100, minute),
        LimitSpec::fixed_window(100, minute).aligned(5),
        LimitSpec::sliding_counter(100, minute),
        LimitSpec::quota_linear(100, minute),
    ] {
        assert_eq!(said(spec), "\"p\";q=100;w=60", "{spec:?}");
    }
    assert_eq!(said(LimitSpec::decay(100, minute)), "\"p\";q=100", "a level has no window");
}

#[test]
fn quota_and_window_of_a_limit_promise_no_more_than_it() {
    cases(2_000, |rng| {
        let hz = rng.pick(&[1, 1_000, 32_768, SECOND]);
        let spec = LimitSpec::new(rng.scaled(30).max(1), rng.scaled(45).max(1), rng.scaled(20).max(1));
        let infos = [spec.build().map(|l| l.info()), spec.build32().map(|l: Limit32| l.info())];
        for info in infos.into_iter().flatten() {
            let list = [Policy::new("p").expect("a name").limit(&info)];
            let member = &parse(&value(Field::RateLimitPolicy, hz, &list))[0];
            let (q, w) = (number(member, "q").expect("q"), number(member, "w").expect("w"));
            assert_eq!(q, info.burst);
            if w == MOST {
                continue; // 31 million years stand for all that is longer
            }
            // q units in w seconds are not faster than units in period ticks, and one second less would be.
            let drain = u128::from(info.burst) * u128::from(info.period);
            let per_window = |w: u64| u128::from(w) * u128::from(hz) * u128::from(info.units);
            assert!(per_window(w) >= drain, "{info:?}: q={q};w={w}");
            let slack = info.rate_error_ppb as u128 * drain / 1_000_000_000 + u128::from(info.units);
            assert!(w == 1 || per_window(w - 1) < drain + slack, "{info:?}: w={w} is too long");
        }
    });
}

#[test]
fn a_full_string_is_an_error_and_holds_the_beginning() {
    let list = [policy("p").decision(&decided(Verdict::NonConforming, 0, 1_001, 4_500))];
    let whole = lines(1_000, &list);
    let fields = Fields::new(1_000, &list).expect("fields");
    let mut exact = heapless::String::<143>::new();
    assert_eq!(whole.len(), 143);
    assert!(fields.write_lines(&Field::ALL, &mut exact).is_ok());
    assert_eq!(exact.as_str(), whole);
    let mut small = heapless::String::<142>::new();
    assert!(fields.write_lines(&Field::ALL, &mut small).is_err());
    assert!(whole.starts_with(small.as_str()) && small.len() >= 140);
    let any: &mut dyn Write = &mut String::new();
    assert!(fields.write_value(Field::RetryAfter, any).is_ok());
}

#[test]
fn bad_arguments_are_named_errors() {
    assert_eq!(Fields::new(0, &[]).err(), Some(HttpError::ZeroFrequency));
    let many = [policy("p"); MAX_POLICIES + 1];
    assert!(Fields::new(1, &many[1..]).is_ok());
    assert_eq!(Fields::new(1, &many).err(), Some(HttpError::TooManyPolicies));
    for error in [HttpError::BadName, HttpError::ZeroFrequency, HttpError::TooManyPolicies] {
        assert!(!error.to_string().is_empty());
    }
}
