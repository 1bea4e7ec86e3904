//! Times as arguments have them.

use std::time::Duration;

/// The ticks of a second in all answers: nanoseconds.
pub const HZ: u64 = 1_000_000_000;

/// Reads a duration: a number and a unit, as in a limit.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let fail = || format!("{text:?} is no time: use a number and a unit, such as 10s, 500ms or 1min");
    let spec = tatcell::LimitSpec::parse(&format!("1/{text}"), HZ).map_err(|_| fail())?;
    let info = spec.build().map_err(|_| fail())?.info();
    if info.units != 1 || info.burst != 1 {
        return Err(fail());
    }
    Ok(Duration::from_nanos(info.period))
}

/// Writes nanoseconds as a duration that [`duration`] reads: in whole seconds, rounded up.
pub fn seconds(nanoseconds: u64) -> String {
    format!("{}s", nanoseconds.div_ceil(HZ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_exactly() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1min"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(
            (seconds(1), seconds(HZ), seconds(u64::MAX)),
            ("1s".into(), "1s".into(), "18446744074s".into())
        );
        assert_eq!(duration(&seconds(3_599_000_000_001)), Ok(Duration::from_secs(3600)));
        assert!(duration("10").is_err() && duration("1s burst 3").is_err());
    }
}
