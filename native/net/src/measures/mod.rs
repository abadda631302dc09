//! The data plane's counters and times, for metrics.

pub(crate) mod counters;
pub(crate) mod partition_states;
pub(crate) mod times;
