//! The data plane of pybroker: everything that touches bytes, and nothing that knows Python.
//!
//! Rooms, in the order of a Produce request's way: [`net`] frames it, [`wire`] reads it, [`replica`] finds the
//! partition, [`record`] validates the batch, [`storage`] writes it. [`client`] and [`quorum`] stand beside that way;
//! [`sys`] holds the system calls that need `unsafe`.
//!
//! No module here holds a default or a policy: every setting arrives in a complete struct from Python's `config`.

/// Fixtures are shared with the integration tests, which know the crate by its name.
#[cfg(test)]
extern crate self as pybroker_core;
#[cfg(test)]
#[path = "../tests/it/log_fixture.rs"]
mod log_fixture;

pub mod client;
pub mod net;
pub mod quorum;
pub mod record;
pub mod replica;
pub mod storage;
pub mod sys;
pub mod wire;
