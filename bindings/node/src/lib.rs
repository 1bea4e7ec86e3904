//! The addon of the package tatcell for Node: calls of the library behind functions of numbers.
//!
//! JavaScript holds a number for each object here (`objects`). Before a call it writes keys, cost and clock into a
//! buffer that both sides know, and afterwards it reads the answer there (`scratch`): a value that crosses the border
//! by a function of Node costs 10 to 60 ns, a byte in that buffer less than one. `lib/` has the other side: it checks
//! arguments, encodes keys and makes the objects that programs see.
//!
//! Nothing here calls JavaScript, and each thread has objects of its own. Other threads and processes may use the same
//! named memory at any time: that is what the library is made for.

mod chain;
pub mod direct;
mod errors;
mod fields;
mod limiter;
mod named;
mod objects;
mod scratch;
mod single;

use napi::bindgen_prelude::Uint8ArraySlice;
use napi_derive::napi;
use tatcell::host::{now_ns, Clock};
use tatcell::Verdict;

use errors::{closed, wrong, Failed};
use limiter::{Limiter, Making};
use objects::{with, Object};
use scratch::Scratch;

/// Ticks are nanoseconds of CLOCK_MONOTONIC, or of the caller's own clock.
pub(crate) const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// Bits of `how`: nothing is charged; cost or clock are given; the full answer is wanted.
pub(crate) const PEEK: u32 = 1;
pub(crate) const COST: u32 = 2;
pub(crate) const NOW: u32 = 4;
pub(crate) const FULL: u32 = 8;

/// Cost and clock of a call.
pub(crate) struct Call {
    pub how: u32,
    pub cost: u64,
    pub now: u64,
}

impl Call {
    fn read(scratch: &Scratch, how: u32) -> Result<Call, Failed> {
        let cost = if how & COST == 0 { 1 } else { scratch.cost() };
        let now =
            if how & NOW == 0 { now_ns(Clock::Monotonic).map_err(errors::host)? } else { scratch.now() };
        Ok(Call { how, cost, now })
    }

    pub fn is(&self, bit: u32) -> bool {
        self.how & bit != 0
    }
}

/// The verdict as a number of JavaScript: 0 passes.
pub(crate) fn number(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Conforming => 0,
        Verdict::NonConforming => 1,
        Verdict::Never => 2,
        Verdict::Contended => 3,
    }
}

/// The bytes of an array that JavaScript has made for us.
fn bytes<'a>(array: &'a mut Uint8ArraySlice<'_>) -> &'a mut [u8] {
    // SAFETY: JavaScript stands still during the call, and `lib/` gives this memory to no other thread.
    unsafe { array.as_mut() }
}

/// Takes a buffer of JavaScript as scratch. It must stay where it is until another one replaces it.
#[napi]
pub fn scratch(mut buffer: Uint8ArraySlice<'_>) -> u32 {
    objects::add(Object::Scratch(Scratch::new(bytes(&mut buffer)).into()))
}

/// Replaces the buffer of a scratch by another one.
#[napi]
pub fn replace(scratch: u32, mut buffer: Uint8ArraySlice<'_>) -> Result<(), Failed> {
    objects::scratch(scratch).map(|scratch| scratch.replace(bytes(&mut buffer)))
}

/// Opens a limiter. `full` is a policy or -1, `name` is empty for memory of its own.
#[napi]
pub fn limiter(
    scratch: u32,
    limit: String,
    algorithm: u32,
    keys: f64,
    name: String,
    full: i32,
) -> Result<u32, Failed> {
    let making = Making::read(&limit, algorithm, keys, full)?;
    let limiter = Limiter::open(objects::scratch(scratch)?, &making, &name)?;
    Ok(objects::add(Object::Limiter(limiter.into())))
}

/// Makes a cell.
#[napi]
pub fn cell(scratch: u32, limit: String, algorithm: u32) -> Result<u32, Failed> {
    let cell = single::Single::new(objects::scratch(scratch)?, &limit, algorithm)?;
    Ok(objects::add(Object::Cell(cell.into())))
}

/// Makes a chain of these limiters and cells.
#[napi]
pub fn chain(scratch: u32, members: Vec<u32>) -> Result<u32, Failed> {
    let chain = chain::Links::new(objects::scratch(scratch)?, &members)?;
    Ok(objects::add(Object::Chain(chain)))
}

/// Decides one request. `length` is that of the key of a limiter; a chain has lengths in the scratch.
fn decide(handle: u32, how: u32, length: u32) -> Result<u32, Failed> {
    with(handle, |object| match object {
        Object::Limiter(limiter) => {
            let call = Call::read(&limiter.scratch, how)?;
            limiter.decide(&call, limiter.scratch.key(length as usize)?)
        }
        Object::Cell(cell) => Ok(cell.decide(&Call::read(&cell.scratch, how)?)),
        Object::Chain(chain) => chain.decide(&Call::read(&chain.scratch, how)?),
        Object::Scratch(_) => Err(closed()),
    })
}

/// Makes the full burst of a key, or of a cell, available at once. False: other threads won every attempt.
#[napi]
pub fn reset(handle: u32, how: u32, length: u32) -> Result<bool, Failed> {
    with(handle, |object| match object {
        Object::Limiter(limiter) => {
            let call = Call::read(&limiter.scratch, how)?;
            limiter.reset(&call, limiter.scratch.key(length as usize)?)
        }
        Object::Cell(cell) => {
            cell.reset();
            Ok(true)
        }
        _ => Err(closed()),
    })
}

/// Decides one request for each of `count` keys of the scratch.
#[napi]
pub fn burst(handle: u32, how: u32, count: u32) -> Result<(), Failed> {
    with(handle, |object| match object {
        Object::Limiter(limiter) => limiter.burst(&Call::read(&limiter.scratch, how)?, count as usize),
        _ => Err(closed()),
    })
}

/// Decides one request for each row of `width` bytes. `kind` says what rows are: 0 keys as they are, 1 numbers without
/// a sign, 2 numbers with one. Stores 1 for each that passes.
#[napi]
pub fn rows(
    handle: u32,
    how: u32,
    array: &[u8],
    width: u32,
    kind: u32,
    mut verdicts: Uint8ArraySlice<'_>,
) -> Result<(), Failed> {
    with(handle, |object| match object {
        Object::Limiter(limiter) => {
            let call = Call::read(&limiter.scratch, how)?;
            limiter.rows(&call, array, width as usize, kind, bytes(&mut verdicts))
        }
        _ => Err(closed()),
    })
}

/// Returns the limit of a limiter or cell, as text.
#[napi]
pub fn limit(handle: u32) -> Result<String, Failed> {
    with(handle, |object| match object {
        Object::Limiter(limiter) => Ok(limiter::text(&limiter.spec)),
        Object::Cell(cell) => Ok(limiter::text(&cell.spec)),
        _ => Err(closed()),
    })
}

/// Returns the bytes of memory of a limiter: 0 once it is closed.
#[napi]
pub fn memory(handle: u32) -> f64 {
    with(handle, |object| match object {
        Object::Limiter(limiter) => Ok(limiter.memory()),
        _ => Ok(0),
    })
    .map_or(0.0, |bytes| bytes as f64)
}

/// Gives the memory of a limiter back. Chains that have it as a member say that it is closed.
#[napi]
pub fn close(handle: u32) {
    let _ = with(handle, |object| {
        if let Object::Limiter(limiter) = object {
            limiter.close();
        }
        Ok(())
    });
}

/// Forgets an object that JavaScript has no more.
#[napi]
pub fn forget(handle: u32) {
    objects::remove(handle);
}

/// Removes the name of shared memory.
#[napi]
pub fn unlink(name: String) -> Result<(), Failed> {
    named::unlink(&name)
}

/// Makes header fields, names and values in turn, of answers in the scratch: one for each limit.
#[napi]
pub fn fields(
    scratch: u32,
    limits: Vec<u32>,
    names: Vec<String>,
    legacy: bool,
) -> Result<Vec<String>, Failed> {
    fields::fields(&*objects::scratch(scratch)?, &limits, &names, legacy)
}

/// Replaces the text of an address in the scratch by the key of its network. Returns the length, 0 if it is none.
#[napi]
pub fn network(scratch: u32, length: u32, v4_bits: u32, v6_bits: u32) -> Result<u32, Failed> {
    let scratch = objects::scratch(scratch)?;
    let text = std::str::from_utf8(scratch.key(length as usize)?).ok();
    let Some(address) = text.and_then(|text| text.parse::<std::net::IpAddr>().ok()) else { return Ok(0) };
    let bits = |bits: u32| u8::try_from(bits).unwrap_or(u8::MAX);
    let prefix = tatcell::Address::from(address).prefix_of(bits(v4_bits), bits(v6_bits));
    let prefix =
        prefix.ok_or_else(|| wrong("an address has 32 bits, and an IPv6 address 128: ask for fewer"))?;
    scratch.put_key(prefix.as_ref());
    Ok(prefix.as_ref().len() as u32)
}
