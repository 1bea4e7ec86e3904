//! Header fields of HTTP.

use tatcell::http::{Field, Fields, Policy};
use tatcell::LimitInfo;

use crate::errors::{closed, wrong, Failed};
use crate::objects::{with, Object};
use crate::scratch::Scratch;
use crate::TICKS_PER_SECOND;

const FIELDS: [Field; 3] = [Field::RateLimitPolicy, Field::RateLimit, Field::RetryAfter];

fn info(limit: u32) -> Result<LimitInfo, Failed> {
    with(limit, |object| match object {
        Object::Limiter(limiter) => Ok(limiter.info),
        Object::Cell(cell) => Ok(cell.info),
        _ => Err(closed()),
    })
}

/// Makes the fields of answers 1 and on.
pub(crate) fn fields(
    scratch: &Scratch,
    limits: &[u32],
    names: &[String],
    legacy: bool,
) -> Result<Vec<String>, Failed> {
    let decisions: Vec<_> = (1..=limits.len()).map(|index| scratch.answer(index)).collect();
    let mut policies = Vec::new();
    for ((limit, name), decision) in limits.iter().zip(names).zip(&decisions) {
        policies.push(Policy::new(name).map_err(wrong)?.limit(&info(*limit)?).decision(decision));
    }
    let made = Fields::new(TICKS_PER_SECOND, &policies).map_err(wrong)?;
    let mut all = Vec::new();
    for field in if legacy { &Field::ALL[..] } else { &FIELDS } {
        let mut value = String::new();
        made.write_value(*field, &mut value).map_err(wrong)?;
        if !value.is_empty() {
            all.extend([field.name().to_owned(), value]);
        }
    }
    Ok(all)
}
