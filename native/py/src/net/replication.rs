//! Replication, directed by the control plane: settings and brokers in, in-sync and lagging replicas out.

use std::sync::Arc;

use pybroker_net::{CaughtUpReplica, FetchSecurity, FetchSource, ReplicationSettings};
use pybroker_replica::{BrokerId, FetcherSettings, Partition, ReadReplicas, ThrottleLimit, Waiter};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::secure::{PyClientTls, PySaslCredentials};
use crate::net::handle::PyDataPlane;
use crate::storage::partition::PyPartition;

/// The replication settings of a broker; see `_native.pyi`.
#[pyclass(frozen, name = "ReplicationSettings", module = "pybroker._native")]
pub struct PyReplicationSettings {
    pub settings: ReplicationSettings,
    pub security: FetchSecurity,
}

#[pymethods]
impl PyReplicationSettings {
    #[new]
    #[pyo3(signature = (*, node_id, broker_epoch, min_bytes, max_wait_ms, max_bytes, response_max_bytes, first_backoff_ms,
        backoff_ms, fetchers, socket_timeout_ms, path_timeout_ms, socket_receive_buffer_bytes, leader_throttled_rate,
        follower_throttled_rate, throttle_samples, throttle_sample_ms, eager_high_watermark, tls, credentials))]
    #[expect(clippy::too_many_arguments, reason = "a complete struct, given by keyword")]
    fn new(
        node_id: i32,
        broker_epoch: i64,
        min_bytes: i32,
        max_wait_ms: i32,
        max_bytes: i32,
        response_max_bytes: i32,
        first_backoff_ms: i64,
        backoff_ms: i64,
        fetchers: usize,
        socket_timeout_ms: u64,
        path_timeout_ms: u64,
        socket_receive_buffer_bytes: i64,
        leader_throttled_rate: i64,
        follower_throttled_rate: i64,
        throttle_samples: usize,
        throttle_sample_ms: i64,
        eager_high_watermark: bool,
        tls: Option<PyRef<'_, PyClientTls>>,
        credentials: Option<PyRef<'_, PySaslCredentials>>,
    ) -> Self {
        let replica = BrokerId(node_id);
        let fetcher = FetcherSettings {
            replica,
            broker_epoch,
            min_bytes,
            max_wait_ms,
            max_bytes,
            response_max_bytes,
            first_backoff_ms,
            backoff_ms,
        };
        let throttle = |bytes_per_second| ThrottleLimit {
            bytes_per_second,
            samples: throttle_samples,
            sample_ms: throttle_sample_ms,
        };
        let settings = ReplicationSettings {
            fetcher,
            fetchers,
            socket_timeout_ms,
            path_timeout_ms,
            socket_receive_buffer_bytes,
            leader_throttle: throttle(leader_throttled_rate),
            follower_throttle: throttle(follower_throttled_rate),
            eager_high_watermark,
        };
        let security = FetchSecurity {
            tls: tls.map(|tls| tls.inner.clone()),
            credentials: credentials.map(|credentials| credentials.inner.clone()),
        };
        Self { settings, security }
    }
}

/// A broker's id, host, port and epoch.
pub type Source = (i32, String, u16, i64);

/// The table of brokers to fetch from.
pub fn sources(brokers: Vec<Source>) -> Vec<FetchSource> {
    let source = |(id, host, port, broker_epoch)| FetchSource { id: BrokerId(id), host, port, broker_epoch };
    brokers.into_iter().map(source).collect()
}

/// The table of racks for consumers: this broker's own, and those of the others.
pub fn read_replicas(own_rack: Option<&str>, others: Vec<(i32, String)>) -> ReadReplicas {
    ReadReplicas::new(own_rack, others.into_iter().map(|(id, rack)| (BrokerId(id), rack)))
}

/// A follower's log start offset has advanced; see `_native.pyi`.
#[pyclass(frozen, name = "ReplicaDeletedRecords", module = "pybroker._native")]
pub struct PyReplicaDeletedRecords {
    pub topic_id: [u8; 16],
    pub index: i32,
}

#[pymethods]
impl PyReplicaDeletedRecords {
    #[getter]
    fn topic_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.topic_id)
    }

    #[getter]
    fn index(&self) -> i32 {
        self.index
    }
}

/// A follower has caught up; see `_native.pyi`.
#[pyclass(frozen, name = "ReplicaCaughtUp", module = "pybroker._native")]
pub struct PyReplicaCaughtUp {
    pub inner: CaughtUpReplica,
}

#[pymethods]
impl PyReplicaCaughtUp {
    #[getter]
    fn topic_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.topic_id)
    }

    #[getter]
    fn index(&self) -> i32 {
        self.inner.index.0
    }

    #[getter]
    fn leader_epoch(&self) -> i32 {
        self.inner.leader_epoch.0
    }

    #[getter]
    fn partition_epoch(&self) -> i32 {
        self.inner.partition_epoch
    }

    #[getter]
    fn replica(&self) -> i32 {
        self.inner.replica.0
    }

    #[getter]
    fn broker_epoch(&self) -> i64 {
        self.inner.broker_epoch
    }
}

/// The index of a partition in the call, its leader epoch, and the ids of lagging brokers.
type Lagging = (usize, i32, Vec<i32>);

/// The in-sync replicas that lag; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (partitions, data_plane, *, max_lag_ms, alive))]
pub fn lagging_replicas(
    py: Python<'_>,
    partitions: Vec<PyRef<'_, PyPartition>>,
    data_plane: &PyDataPlane,
    max_lag_ms: i64,
    alive: Vec<i32>,
) -> Vec<Lagging> {
    let partitions: Vec<Arc<Partition>> = partitions.iter().map(|partition| Arc::clone(&partition.inner)).collect();
    let alive: Vec<_> = alive.into_iter().map(BrokerId).collect();
    let data_plane = &data_plane.inner;
    py.detach(|| {
        let now_ms = data_plane.wall_ms();
        let mut wake = |waiter: Waiter| data_plane.wake(waiter);
        let mut found = Vec::new();
        for (place, partition) in partitions.iter().enumerate() {
            let lagging = partition.lagging(now_ms, max_lag_ms, &alive, &mut wake);
            if let Some((epoch, replicas)) = lagging.filter(|(_, replicas)| !replicas.is_empty()) {
                found.push((place, epoch.0, replicas.into_iter().map(|replica| replica.0).collect()));
            }
        }
        found
    })
}

/// Ends the wait for replicas that do not join the in-sync replicas; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (partition, data_plane, replicas))]
pub fn stop_joining(partition: &PyPartition, data_plane: &PyDataPlane, replicas: Vec<i32>) {
    let replicas: Vec<_> = replicas.into_iter().map(BrokerId).collect();
    partition.inner.stop_joining(&replicas, &mut |waiter| data_plane.inner.wake(waiter));
}
