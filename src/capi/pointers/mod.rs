//! Checks pointers and makes references of them: [`contract`] has the rule and the single objects, [`kept`] what stays
//! with an object, [`lists`] arrays, [`texts`] strings and buffers, [`places`] overlap, [`together`] calls that need
//! several objects at once.

pub(super) mod contract;
mod kept;
pub(super) mod lists;
pub(super) mod places;
pub(super) mod texts;
mod together;
