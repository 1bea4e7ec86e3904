//! What memory holds: slot words, the header, and how options and a limit choose both.

pub(super) mod fit;
pub(super) mod fit_counted;
pub(super) mod geometry;
pub(super) mod image;
pub(super) mod options;
pub(super) mod override_word;
pub(super) mod policy;
pub(super) mod size;
pub(super) mod word;
