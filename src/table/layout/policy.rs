//! The policies for a new key in a full set.

/// Says what happens to a new key when all 16 slots of its set hold live keys.
///
/// ```
/// use tatcell::{FullPolicy, LimitSpec, Line, Table, TableOptions};
/// let lines = [const { Line::EMPTY }; 4]; // one set of 16 slots
/// let spec = LimitSpec::new(1, 1_000, 1);
/// let options = TableOptions::new(spec).seed(*b"16 random bytes!").policy(FullPolicy::Deny);
/// let table = Table::init(&lines, &options)?;
/// let limit = table.limit(&spec)?;
/// let passed = (0..20u32).filter(|key| table.check(&limit, 0, &key.to_le_bytes(), 1).is_ok_and(|it| it.passes()));
/// assert_eq!(passed.count(), 16);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum FullPolicy {
    /// Admit it untracked: fails open and evicts no key. A key that keeps coming gets a slot as soon as one drains.
    #[default]
    Admit = 0,
    /// Take over the slot with the smallest lead, debt included: fails closed and never over-admits, but may deny
    /// innocent keys under a flood.
    Inherit = 1,
    /// Refuse it until a slot drains.
    Deny = 2,
    /// Admit it. One request in 16 takes over the slot with the smallest lead and forgives its debt.
    Sampled = 3,
}

impl FullPolicy {
    pub(crate) const fn from_number(n: u8) -> Option<FullPolicy> {
        match n {
            0 => Some(FullPolicy::Admit),
            1 => Some(FullPolicy::Inherit),
            2 => Some(FullPolicy::Deny),
            3 => Some(FullPolicy::Sampled),
            _ => None,
        }
    }
}
