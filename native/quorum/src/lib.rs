//! Agreement on the metadata log: the Raft library behind a face without I/O, and the batches that its entries are.
//!
//! Owns the steps of the algorithm ([`Quorum`]) and the bytes of an entry ([`batch`]). Must not know files, clocks or
//! sockets: the caller persists what [`Ready`] holds, sends its messages, counts its ticks. No client's request comes
//! by here; `pybroker/controller/quorum` is the caller.

pub mod batch;
pub mod control;
mod entries;
mod node;
#[cfg(test)]
mod tests;

pub use entries::{Entry, TermRun};
pub use node::{Advanced, HardState, Quorum, QuorumError, QuorumSettings, Ready, Restored};
