//! Distinct types for numbers that must not be confused.
//!
//! Owns only the types. Their numbers are extracted where bytes are read or written, for arithmetic, and in the
//! Python bindings.

/// The offset of a record, or the end of a range of offsets.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl Offset {
    /// An offset above every record.
    pub const MAX: Self = Self(i64::MAX);
}

/// The index of a partition in its topic.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionIndex(pub i32);

/// The id of a producer, assigned by a broker; -1 for none.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(pub i64);

/// A broker's id.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

/// A leader epoch: rises with each leader change of a partition; -1 before the first.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaderEpoch(pub i32);
