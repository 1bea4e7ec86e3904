//! The C functions of `include/tatcell_cluster.h`, which `make header` writes from these files.
//!
//! A function checks its pointers in [`kit`], the only other file with unsafe code being [`wake`], calls the
//! crate, and writes its result. Nothing calls back: answers wait in a list, and an eventfd tells that they do.
#![allow(unsafe_code)]

mod codes;
mod kit;
mod metrics;
mod node;
mod options;
mod wake;
