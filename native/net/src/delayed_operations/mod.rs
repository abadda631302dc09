//! Requests that wait for a sync, a marker, a coordinator or the control plane.

pub(crate) mod flush_outcomes;
pub(crate) mod interception;
pub(crate) mod markers;
pub(crate) mod verification;
