//! The state of the Metadata request: its node, its start, and its back-off. Changed by the network only.

use std::time::Instant;

use super::cluster::NodeId;

/// The state of the Metadata request.
#[derive(Debug, Default)]
pub struct MetadataRequestState {
    /// The node of the request in flight, and when the request was sent.
    pub requested: Option<(NodeId, Instant)>,
    /// No Metadata request is sent before this time.
    pub rest: Option<Instant>,
    /// Since when metadata is needed without a response.
    pub wanted_since: Option<Instant>,
    /// When a silent node last made the metadata stale.
    pub suspected: Option<Instant>,
}
