//! Numbers that stand side by side and must not be taken for each other.
//!
//! Owns the types alone. Their numbers are taken out where bytes are read or written, where arithmetic is done, and in the
//! Python bindings.

/// The offset of a record, or an end of a run of records.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl Offset {
    /// Beyond every record.
    pub const MAX: Self = Self(i64::MAX);
}

/// The index of a partition in its topic.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionIndex(pub i32);

/// The id of a producer, as the broker gave it. -1 for none.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(pub i64);

/// A broker's id.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

/// A leader epoch: grows with each change of a partition's leader. -1 before the first.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaderEpoch(pub i32);
