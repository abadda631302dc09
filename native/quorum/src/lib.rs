//! Consensus on the metadata log: the Raft library behind an interface without I/O, and the batches of its entries.
//!
//! Owns the steps of the algorithm ([`Quorum`]), and the encoding of entries ([`batch`]) and of messages between
//! voters. Must not know files, clocks or sockets: the caller persists the content of [`Ready`], sends its messages,
//! and calls `tick`. No client request passes here; the caller is `pybroker/controller/quorum`.

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
