//! The parts shared by the native clients: the settings of their connections, and waits.
//!
//! Owns no behaviour and no default.

use std::time::Duration;

use pybroker_client::ConnectionConfig;
use pyo3::prelude::*;

use crate::client::secure::{PyClientTls, PySaslCredentials};

/// The attributes of `pybroker.client.settings.ConnectionSettings`.
#[derive(FromPyObject)]
pub struct ConnectionSettings {
    bootstrap_servers: String,
    client_id: String,
    request_timeout_ms: u64,
    socket_connection_setup_timeout_ms: u64,
    socket_connection_setup_timeout_max_ms: u64,
    metadata_max_age_ms: u64,
    metadata_recovery_strategy: String,
    metadata_recovery_rebootstrap_trigger_ms: u64,
    allow_auto_create_topics: bool,
    reconnect_backoff_ms: u64,
    reconnect_backoff_max_ms: u64,
    retry_backoff_ms: u64,
    retry_backoff_max_ms: u64,
    send_buffer_bytes: i64,
    receive_buffer_bytes: i64,
    metrics_sample_window_ms: u64,
    metrics_num_samples: usize,
    tls: Option<Py<PyClientTls>>,
    credentials: Option<Py<PySaslCredentials>>,
}

impl ConnectionSettings {
    /// The native settings.
    pub fn config(self) -> ConnectionConfig {
        let servers = self.bootstrap_servers.split(',').map(str::trim).filter(|s| !s.is_empty());
        ConnectionConfig {
            bootstrap_servers: servers.map(str::to_owned).collect(),
            client_id: self.client_id,
            request_timeout: Duration::from_millis(self.request_timeout_ms),
            connection_setup_timeout: Duration::from_millis(self.socket_connection_setup_timeout_ms),
            connection_setup_timeout_max: Duration::from_millis(self.socket_connection_setup_timeout_max_ms),
            metadata_max_age: Duration::from_millis(self.metadata_max_age_ms),
            rebootstraps: self.metadata_recovery_strategy == "rebootstrap",
            rebootstrap_trigger: Duration::from_millis(self.metadata_recovery_rebootstrap_trigger_ms),
            allow_auto_create_topics: self.allow_auto_create_topics,
            reconnect_backoff: Duration::from_millis(self.reconnect_backoff_ms),
            reconnect_backoff_max: Duration::from_millis(self.reconnect_backoff_max_ms),
            retry_backoff: Duration::from_millis(self.retry_backoff_ms),
            retry_backoff_max: Duration::from_millis(self.retry_backoff_max_ms),
            send_buffer_bytes: usize::try_from(self.send_buffer_bytes).ok(),
            receive_buffer_bytes: usize::try_from(self.receive_buffer_bytes).ok(),
            metrics_sample_window: Duration::from_millis(self.metrics_sample_window_ms),
            metrics_num_samples: self.metrics_num_samples,
            tls: self.tls.map(|tls| tls.get().inner.clone()),
            credentials: self.credentials.map(|credentials| credentials.get().inner.clone()),
        }
    }
}

/// A wait in seconds, from Python; an infinite or too large one becomes a year.
pub fn wait(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::from_secs(31_536_000))
}
