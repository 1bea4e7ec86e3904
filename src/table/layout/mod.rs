//! What a table's memory holds: slot words and the header; and how options and limits determine both.

pub(super) mod clock;
pub(super) mod fit;
pub(super) mod fit_counted;
pub(super) mod fit_report;
pub(super) mod geometry;
pub(super) mod image;
pub(super) mod options;
pub(super) mod override_word;
pub(super) mod policy;
pub(super) mod size;
pub(super) mod word;
