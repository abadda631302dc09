//! The indexes of a segment: sparse indexes from offset and from timestamp to a position, and the aborted
//! transactions.
//!
//! Owns their entries and files. [`index_map::IndexMap`] is the growing file of both sparse indexes.

pub(crate) mod index_map;
pub(crate) mod offset_index;
pub(crate) mod time_index;
pub mod txn_index;
