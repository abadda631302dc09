//! The versions of Fetch that change its messages.

/// First flexible version.
pub(super) const FLEXIBLE: i16 = 12;
/// The first version whose response has `throttle_time_ms`.
pub(super) const WITH_THROTTLE_TIME: i16 = 1;
/// The first version with a `max_bytes` of the whole response (KIP-74).
pub(super) const WITH_MAX_BYTES: i16 = 3;
/// The first version with `isolation_level`, and with aborted transactions in the response (KIP-98).
pub(super) const WITH_ISOLATION_LEVEL: i16 = 4;
/// The first version with `log_start_offset`.
pub(super) const WITH_LOG_START_OFFSET: i16 = 5;
/// The first version with fetch sessions (KIP-227).
pub(super) const WITH_SESSIONS: i16 = 7;
/// The first version with `current_leader_epoch` (KIP-320).
pub(super) const WITH_LEADER_EPOCH: i16 = 9;
/// The first version with `rack_id`, and `preferred_read_replica` in the response (KIP-392).
pub(super) const WITH_RACK: i16 = 11;
/// The first version with `last_fetched_epoch` (KIP-595).
pub(super) const WITH_LAST_FETCHED_EPOCH: i16 = 12;
/// The first version whose response has `node_endpoints` (KIP-951).
pub(super) const WITH_NODE_ENDPOINTS: i16 = 16;
/// First version that names topics by id.
pub(super) const BY_ID: i16 = 13;
/// First version with the replica's state in a tag instead of its id at the start.
pub(super) const WITH_REPLICA_STATE: i16 = 15;
