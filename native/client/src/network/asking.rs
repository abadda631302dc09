//! The question for metadata: what is under way, since when, and what rests. Changed by the network alone.

use std::time::Instant;

use super::cluster::NodeId;

/// See the module.
#[derive(Debug, Default)]
pub struct Asking {
    /// The node that was asked last and has not answered, and when it was asked.
    pub asked: Option<(NodeId, Instant)>,
    /// Metadata is not asked for again before this moment.
    pub rest: Option<Instant>,
    /// Since when it is wanted and was not answered.
    pub wanted_since: Option<Instant>,
    /// When a silent node last made the metadata stale.
    pub suspected: Option<Instant>,
}
