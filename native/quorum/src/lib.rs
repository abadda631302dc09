//! Agreement on the metadata log: the Raft library behind a face without I/O, and the batches that its entries are.
//!
//! Owns the steps of the algorithm ([`Quorum`]), the bytes of an entry ([`batch`]) and of a message between voters. Must
//! not know files, clocks or sockets: the caller persists what [`Ready`] holds, sends its messages, counts its ticks. No
//! client's request comes by here; `pybroker/controller/quorum` is the caller.

pub mod batch;
pub mod control;
mod entries;
#[cfg(test)]
mod membership_tests;
mod message;
mod names;
mod node;
#[cfg(test)]
mod simulation_tests;
mod state;
#[cfg(test)]
mod tests;

pub use entries::{Entry, Position, SnapshotMark, TermRun};
pub use message::probe;
pub use node::Quorum;
pub use state::{HardState, QuorumError, QuorumSettings, Ready, ReplicaKey, Restored, VoterProgress, node_of};
