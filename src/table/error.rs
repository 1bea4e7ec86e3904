//! Why a table, or a call on it, is refused.

use crate::keys::NoHasher;
use crate::limit::LimitError;

/// Says why a table, or a call on it, was refused. Nothing was changed.
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// Fewer lines than the header (two lines) and one set.
    TooSmall,
    /// More than 2^31 sets.
    TooLarge,
    /// A limit of the options is not valid.
    Limit(LimitError),
    /// Fastest and slowest limit do not fit the word together: use fewer tag bits, a smaller burst or skew, or two
    /// tables.
    SpanTooShort,
    /// The tag width is outside 12..=24.
    BadTagBits,
    /// The claim lifetime is longer than half the smallest emission interval.
    BadLifetime,
    /// A keyed hash needs a secret seed, and there is no default.
    MissingSeed,
    /// This processor cannot compute the hash that was asked for, or that the image uses.
    HashUnavailable,
    /// The table hashes by itself and the call brought a hash, or the other way round.
    BadHashKind,
    /// The limit was made for a table with another resolution, horizon, skew or claim lifetime.
    ForeignLimit,
    /// The limit is faster, or has a longer horizon, than the table's options provided for.
    LimitTooFast,
    /// More than 64 keys.
    TooManyKeys,
    /// Costs, or colours, and keys differ in number.
    BadCosts,
    /// The memory is not a table image, or is not initialised yet: ask again once the initialising process is done.
    NotReady,
    /// The image has another layout version, or a feature or algorithm that this library does not know.
    BadVersion,
    /// The image's geometry contradicts itself or its size.
    BadGeometry,
    /// The image was made with another seed.
    WrongSeed,
    /// The image is exclusive and a shared one was asked for, or the other way round; or it has another policy or clock
    /// frequency than was asked for; or the memory for a new table is not zero, as its options say.
    BadMode,
    /// The buffer is too small for the image.
    BufferTooSmall,
    /// A small table has no sampled policy.
    NotSmall,
    /// The new table of a migration has more tag bits than the old one: the missing ones are nowhere.
    TagTooWide,
    /// The memory of the new table overlaps that of the old one.
    Overlap,
    /// The limits of a table have one algorithm, and this limit or operation is of another; or tables that count differ
    /// in algorithm, resolution or bits, and one cannot migrate into the other.
    BadAlgorithm,
    /// A count cannot be inherited, and an override cannot be dropped: use
    /// [`FullPolicy::Deny`](crate::FullPolicy::Deny).
    BadPolicy,
    /// RFC 2698: the peak rate is below the committed one.
    PeakBelowCommitted,
    /// An override does not end after now, or further ahead than the table's options provided for.
    BadUntil,
    /// A set of a table of overrides is full: this one has not been stored.
    FullSet,
    /// The override of another key lies where this one would: by chance, once in 2^tag bits or so. Neither is changed.
    OverrideClash,
    /// Other threads won every attempt; ask again.
    Contended,
    /// [`keep_units`](crate::TableOptions::keep_units) is an option of a migration; a fresh table has nothing to keep.
    NothingToKeep,
}

impl core::fmt::Display for TableError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            TableError::TooSmall => "memory is smaller than a header and one set",
            TableError::TooLarge => "table has more than 2^31 sets",
            TableError::Limit(e) => return e.fmt(f),
            TableError::SpanTooShort => "fastest and slowest limit do not fit one word: use fewer tag bits",
            TableError::BadTagBits => "tag width is outside 12..=24",
            TableError::BadLifetime => "claim lifetime is longer than half an emission interval",
            TableError::MissingSeed => "a keyed hash needs a secret seed",
            TableError::HashUnavailable => "this processor cannot compute the table's hash",
            TableError::BadHashKind => "the call does not match the hash kind of the table",
            TableError::ForeignLimit => "limit was made for another table",
            TableError::LimitTooFast => "limit is faster or longer than the table's options provide for",
            TableError::TooManyKeys => "more than 64 keys",
            TableError::BadCosts => "costs or colours and keys differ in number",
            TableError::NotReady => "memory holds no initialised table",
            TableError::BadVersion => "image has another layout version",
            TableError::BadGeometry => "image geometry is not valid",
            TableError::WrongSeed => "image was made with another seed",
            TableError::BadMode => "image has another mode, policy or clock than was asked for",
            TableError::BufferTooSmall => "buffer is too small for the image",
            TableError::NotSmall => "SmallTable has no FullPolicy::Sampled",
            TableError::TagTooWide => "new table has more tag bits than the old one",
            TableError::Overlap => "memory of the new table overlaps the old table",
            TableError::BadAlgorithm => "limit or operation is of another algorithm than the table",
            TableError::BadPolicy => "a count cannot be inherited: use Deny",
            TableError::PeakBelowCommitted => "peak rate is below the committed rate",
            TableError::BadUntil => "override does not end after now, or too far ahead",
            TableError::FullSet => "the set of the key is full: the override is not stored",
            TableError::OverrideClash => "the override of another key lies in this place",
            TableError::Contended => "contended: nothing changed, ask again",
            TableError::NothingToKeep => "a fresh table has no units to keep",
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
