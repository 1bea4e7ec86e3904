//! Why a table, or a call on it, is refused.

use crate::keys::NoHasher;
use crate::limit::LimitError;

/// Says why a table, or a call on it, was refused. The call changed nothing.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableError, TableOptions};
/// let (spec, lines) = (LimitSpec::per_second(10), [const { Line::EMPTY }; 66]);
/// let error = Table::init(&lines, &TableOptions::new(spec)).unwrap_err();
/// assert_eq!(error, TableError::MissingSeed);
/// assert_eq!(error.to_string(), "a keyed hash needs a secret seed of 16 bytes");
/// ```
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// The memory has fewer lines than the header (two lines) and one set (two lines).
    TooSmall,
    /// The memory has more than 2^31 sets.
    TooLarge,
    /// A limit of the options is invalid.
    Limit(LimitError),
    /// The fastest and the slowest limit do not fit one word together: use fewer tag bits, a smaller burst or skew, or
    /// two tables.
    SpanTooShort,
    /// The tag width is outside 12..=24.
    BadTagBits,
    /// The claim lifetime is longer than half the smallest emission interval.
    BadLifetime,
    /// A keyed hash needs a secret seed, and there is no default.
    MissingSeed,
    /// This processor cannot compute the hash that the options or the image ask for.
    HashUnavailable,
    /// The table hashes keys itself and the call brought a hash, or the other way round.
    BadHashKind,
    /// The limit was made for a table with another resolution, horizon, skew or claim lifetime.
    ForeignLimit,
    /// The limit is faster, or has a longer horizon, than the table's options provided for.
    LimitTooFast,
    /// The call has more than 64 keys.
    TooManyKeys,
    /// The costs or colours of a call differ in number from its keys.
    BadCosts,
    /// The memory holds no table image, or nobody has initialised it yet: try again when that is done.
    NotReady,
    /// The image has another layout version, or a feature or algorithm that this library does not know.
    BadVersion,
    /// The image's geometry contradicts itself or the size of the image.
    BadGeometry,
    /// The image was made with another seed.
    WrongSeed,
    /// The image is exclusive and the call wants a shared one, or the other way round. Or its policy or clock frequency
    /// differs from the expected one. Or the memory of a new table is not zero although its options say so.
    BadMode,
    /// The buffer is too small for the image.
    BufferTooSmall,
    /// A small table cannot have the sampled policy.
    NotSmall,
    /// The new table of a migration has more tag bits than the old one, and nothing knows the missing bits.
    TagTooWide,
    /// The memory of the new table overlaps that of the old one.
    Overlap,
    /// The limit or operation belongs to another algorithm than the table. Or a migration is between tables that count
    /// and differ in algorithm, resolution or count bits.
    BadAlgorithm,
    /// A count cannot be inherited and an override cannot be dropped: use
    /// [`FullPolicy::Deny`](crate::FullPolicy::Deny).
    BadPolicy,
    /// The peak rate is below the committed rate (RFC 2698).
    PeakBelowCommitted,
    /// The override does not end after now, or it ends later than the table's options allow.
    BadUntil,
    /// The set of the key in a table of overrides is full: the override was not stored.
    FullSet,
    /// The override of another key is in the same place, which happens by chance once in about 2^tag bits. Both stay as
    /// they were.
    OverrideClash,
    /// A prefix is longer than the address.
    BadPrefix,
    /// Other threads won every attempt: try again.
    Contended,
    /// [`keep_units`](crate::TableOptions::keep_units) is an option of a migration; a fresh table has nothing to keep.
    NothingToKeep,
}

impl core::fmt::Display for TableError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            TableError::TooSmall => "the memory is too small for one set of slots: give more",
            TableError::TooLarge => "the table has too many sets: give less memory, or use two tables",
            TableError::Limit(e) => return e.fmt(f),
            TableError::SpanTooShort => {
                "fastest and slowest limit do not fit one word: TableOptions::fit says what does"
            }
            TableError::BadTagBits => "the tag width must be 12 to 24 bits",
            TableError::BadLifetime => "the claim lifetime exceeds half an emission interval: lower it",
            TableError::MissingSeed => "a keyed hash needs a secret seed of 16 bytes",
            TableError::HashUnavailable => "this processor cannot compute the table's hash: use SipHash",
            TableError::BadHashKind => "pass a key to a table that hashes, and a hash to one that does not",
            TableError::ForeignLimit => "the limit was made for another table: make it for this one",
            TableError::LimitTooFast => {
                "the limit is faster or longer than the table's options: change fastest or slowest"
            }
            TableError::TooManyKeys => "there are more than 64 keys: split them",
            TableError::BadCosts => "there must be as many costs or colours as keys",
            TableError::NotReady => "the memory holds no initialised table yet: ask again",
            TableError::BadVersion => "the image has a layout version or feature that is not known here",
            TableError::BadGeometry => "the image's geometry is not valid",
            TableError::WrongSeed => "the image was made with another seed: give that one",
            TableError::BadMode => "the image has another mode, policy or clock, or the memory is not zero",
            TableError::BufferTooSmall => "the buffer is too small for the image",
            TableError::NotSmall => "a SmallTable has no FullPolicy::Sampled: use another policy",
            TableError::TagTooWide => "the new table has more tag bits than the old one: use as many",
            TableError::Overlap => "the memory of the new table overlaps the old table",
            TableError::BadAlgorithm => "the limit or operation has another algorithm than the table",
            TableError::BadPolicy => "a count cannot be inherited, an override cannot be dropped: use Deny",
            TableError::PeakBelowCommitted => "the peak rate is below the committed rate: raise it",
            TableError::BadUntil => "the override has ended, or ends too far ahead for the table's options",
            TableError::FullSet => "the set of the key is full, the override is not stored: use more slots",
            TableError::OverrideClash => "the override of another key occupies this place",
            TableError::BadPrefix => "the prefix is longer than the address",
            TableError::Contended => "other threads won every attempt, nothing changed: ask again",
            TableError::NothingToKeep => "keep_units is for a migration: a fresh table has no units to keep",
        })
    }
}

impl core::error::Error for TableError {}

impl From<NoHasher> for TableError {
    fn from(e: NoHasher) -> TableError {
        match e {
            NoHasher::Unavailable => TableError::HashUnavailable,
            NoHasher::MissingSeed => TableError::MissingSeed,
        }
    }
}
