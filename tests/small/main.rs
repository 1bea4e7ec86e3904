//! Tests of the small forms, for firmware.

#[path = "../common/mod.rs"]
mod common;

mod big_form;
mod cancel;
mod debt;
mod duty;
mod exact;
mod header;
mod init;
#[cfg(feature = "single-core")]
mod shared;
