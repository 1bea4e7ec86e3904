//! The scripts that run in the store, with their arguments and replies: four scripts, each for one key.
//!
//! [`GRANT`] gives out pieces of a key's time axis, [`GIVE_BACK`] takes back the end of one, [`SLOT`] hands out the
//! right to a reserve, and [`MARK`] tells all nodes the parameters of a limit. Each names only `KEYS[1]`, so keys need
//! no hash tag, and a batch is a pipeline of calls. A call names its script by digest. If the store does not have the
//! script, the call did not run, and is sent once more with the text.
//!
//! **Every call of a node ends with an id, and its reply ends with the same id** (`of_call`). A reply with another id
//! belongs to another call: a proxy sent an answer twice, or the connection is out of step for another reason. Nothing
//! of it is used, and the connection is closed. The functions below leave the id out; a reply then has none.
//!
//! **Marks and keys have a format**, [`FORMAT`]: it stands first in the mark of a limit and in the name of a key. A
//! node refuses a mark of another format, and never reads a key of one. Replies need none: a call names its script by
//! the digest of its text, so each node is answered in its own form.
//!
//! **The value of a key** is `"<us>:<frac>:<Tu>:<Tf>:<version>"`: its TAT in the server's time, and the time of a unit
//! and the version of the limit as of the last write. With those, a debt keeps its units when the limit changes. The
//! key expires when its debt has drained.

mod reply;

use std::sync::LazyLock;

use redis::{Cmd, Script};

use crate::split::Split;

pub(crate) use reply::of_call;
pub use reply::{Fault, Grant, Mark};

/// The format of marks and keys. That of tatcell 0.3 is 1, and is written nowhere.
pub const FORMAT: u32 = 2;

/// Grants units, or returns when they will exist; its first comment lists arguments and reply.
pub const GRANT: &str = include_str!("grant.lua");

/// Takes back the last units of a grant, if nothing was granted after it.
pub const GIVE_BACK: &str = include_str!("give_back.lua");

/// Claims, renews or releases a slot.
pub const SLOT: &str = include_str!("slot.lua");

/// Keeps the mark of a limit, or changes the limit.
pub const MARK: &str = include_str!("mark.lua");

static GRANT_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(GRANT));
static GIVE_BACK_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(GIVE_BACK));
static SLOT_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(SLOT));
static MARK_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(MARK));

/// Says how a call names its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By its digest of 40 bytes; the store answers NOSCRIPT if it does not have the script.
    Digest,
    /// By its text, which the store then keeps.
    Text,
}

/// Holds what is asked of [`GRANT`] for one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Units wanted, at least `min`.
    pub want: u64,
    /// The fewest units that are useful; 1 to the largest cost of the limit.
    pub min: u64,
    /// Units that were admitted before asking.
    pub spent: u64,
    /// Microseconds for which the key then grants nothing; above 0 if the node lived on its share.
    pub grace_us: u64,
    /// The version of the limit to which the split belongs; see [`Mark`].
    pub version: u64,
}

fn call(script: &Script, text: &str, by: By, key: &[u8]) -> Cmd {
    let mut cmd = match by {
        By::Digest => redis::cmd("EVALSHA").arg(script.get_hash()).to_owned(),
        By::Text => redis::cmd("EVAL").arg(text).to_owned(),
    };
    cmd.arg(1).arg(key);
    cmd
}

/// Makes the call that asks for a piece. The reply is a [`Grant`].
pub fn grant(by: By, key: &[u8], split: &Split, ask: &Ask) -> Cmd {
    let mut cmd = call(&GRANT_SCRIPT, GRANT, by, key);
    cmd.arg(split.unit.us()).arg(split.unit.frac()).arg(split.lead.us()).arg(split.lead.frac());
    cmd.arg(ask.want).arg(ask.min).arg(ask.spent).arg(ask.grace_us);
    cmd.arg(split.clamp_us().saturating_add(ask.grace_us)).arg(ask.version);
    cmd
}

/// Makes the call that gives back the last `units` of the grant with this stamp, which is the value that the grant
/// left. The reply is a list: the number of units taken, all or 0.
///
/// Do not send it again after a timeout: another node's equal grant may have restored the stamp meanwhile, and a second
/// call would then take back units that were spent.
pub fn give_back(by: By, key: &[u8], stamp: &str, units: u64) -> Cmd {
    let mut cmd = call(&GIVE_BACK_SCRIPT, GIVE_BACK, by, key);
    cmd.arg(stamp).arg(units);
    cmd
}

/// Makes the call that claims or renews a slot for `ms` milliseconds; 0 releases it. The reply is a list: 1 if it
/// was claimed, 2 if it was held and is renewed or released, else 0.
pub fn slot(by: By, key: &[u8], holder: &str, ms: u64) -> Cmd {
    let mut cmd = call(&SLOT_SCRIPT, SLOT, by, key);
    cmd.arg(holder).arg(ms);
    cmd
}

/// Makes the call that keeps the mark of a limit for `ms` milliseconds, or creates it from what this node knows. A
/// `change` is the new limit, and the microseconds until it is in force. The reply is a [`Mark`].
pub fn mark(by: By, key: &[u8], ms: u64, mine: &Mark, change: Option<(&str, u64)>) -> Cmd {
    let mut cmd = call(&MARK_SCRIPT, MARK, by, key);
    cmd.arg(ms).arg(mine.version).arg(&mine.next).arg(&mine.before).arg(mine.ahead_us);
    let (change, delay_us) = change.unwrap_or_default();
    cmd.arg(change).arg(delay_us);
    cmd
}
