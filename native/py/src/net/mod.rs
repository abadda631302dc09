//! The data plane: sockets, its settings and tables, its events, and its counters.

pub(crate) mod connection_limits;
pub(crate) mod control_request;
pub(crate) mod counters;
pub(crate) mod data_plane;
pub(crate) mod data_plane_settings;
pub(crate) mod events;
pub(crate) mod handle;
pub(crate) mod listener_tls;
pub(crate) mod listening;
pub(crate) mod network_threads;
pub(crate) mod quotas;
pub(crate) mod replication;
pub(crate) mod topic_table;
pub(crate) mod transactions;
pub(crate) mod work_counters;
