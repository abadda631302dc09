//! Throttle times of Produce and Fetch: the one place of the hot path where a quota decides.
//!
//! Owns the number that answers carry. The broker has no quotas yet, so it is 0 for every client.

/// The `throttle_time_ms` of an answer.
pub fn throttle_time_ms() -> i32 {
    0
}
