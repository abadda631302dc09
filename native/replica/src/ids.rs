//! Numbers that stand side by side and must not be taken for each other.

/// A broker's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

/// A leader epoch: grows with each change of a partition's leader. -1 before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaderEpoch(pub i32);
