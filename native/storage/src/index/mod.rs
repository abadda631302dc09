//! What lies beside the records of a segment: sparse indexes from offset and from time to a position, and the aborted
//! transactions.
//!
//! Owns their entries and their files. A [`index_map::IndexMap`] is the growing file that both sparse indexes are made of.

pub(crate) mod index_map;
pub(crate) mod offset_index;
pub(crate) mod time_index;
pub mod txn_index;
