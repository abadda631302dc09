//! Further metrics of the data plane: frozen values, and rows that are built in slices, so that reading those of many
//! partitions does not block other threads.

use std::sync::Arc;

use pybroker_net::{ListenerCounts, PartitionState, QuotaKind, QuotaUse, TimesOfKind, WorkCounters, bounds_us};
use pybroker_replica::TopicCounts;
use pyo3::prelude::*;

use crate::net::handle::PyDataPlane;

/// Registers the classes and functions of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyClientUses>()?;
    m.add_class::<PyPartitionStates>()?;
    m.add_class::<PyRequestTimes>()?;
    m.add_class::<PyWorkCounters>()?;
    m.add_function(wrap_pyfunction!(client_uses, m)?)?;
    m.add_function(wrap_pyfunction!(work_counters, m)?)?;
    m.add_function(wrap_pyfunction!(partition_states, m)?)
}

#[pyfunction]
#[pyo3(signature = (data_plane))]
fn work_counters(py: Python<'_>, data_plane: &PyDataPlane) -> PyWorkCounters {
    let inner = &data_plane.inner;
    py.detach(|| PyWorkCounters::new(inner.work(), inner.listeners(), inner.replication_bytes_in()))
}

#[pyfunction]
#[pyo3(signature = (data_plane, most))]
fn client_uses(py: Python<'_>, data_plane: &PyDataPlane, most: usize) -> PyClientUses {
    let inner = &data_plane.inner;
    py.detach(|| {
        let of = |kind| uses_of(inner.quota_uses(kind, most));
        let (addresses, left_out) = inner.addresses(most);
        let addresses = addresses.into_iter().map(|(address, accepted)| (address.to_string(), accepted)).collect();
        PyClientUses {
            produce: of(QuotaKind::Produce),
            fetch: of(QuotaKind::Fetch),
            request: of(QuotaKind::Request),
            addresses: (addresses, left_out),
        }
    })
}

#[pyfunction]
#[pyo3(signature = (data_plane))]
fn partition_states(py: Python<'_>, data_plane: &PyDataPlane) -> PyPartitionStates {
    let inner = &data_plane.inner;
    py.detach(|| PyPartitionStates::new(inner.partition_states(), inner.topic_counts()))
}

/// User, client id, usage, throttle time in milliseconds; and the number of entities left out.
type Uses = (Vec<(String, String, u64, u64)>, usize);

fn uses_of(found: (Vec<QuotaUse>, usize)) -> Uses {
    let (uses, left_out) = found;
    let row = |QuotaUse { user, client_id, used, throttled_ms }| (user, client_id, used, throttled_ms);
    (uses.into_iter().map(row).collect(), left_out)
}

/// See `_native.pyi`.
#[pyclass(frozen, get_all, name = "ClientUses", module = "pybroker._native")]
pub struct PyClientUses {
    produce: Uses,
    fetch: Uses,
    request: Uses,
    addresses: (Vec<(String, u64)>, usize),
}

/// The times of requests of one kind; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "RequestTimes", module = "pybroker._native")]
#[derive(Clone)]
pub struct PyRequestTimes {
    api_key: i16,
    of_followers: bool,
    requests: u64,
    phases: Vec<(u64, Vec<u64>)>,
}

impl From<TimesOfKind> for PyRequestTimes {
    fn from(times: TimesOfKind) -> Self {
        let TimesOfKind { api_key, of_followers, requests, phases } = times;
        let phases = phases.into_iter().map(|phase| (phase.sum_ns, phase.cumulative)).collect();
        Self { api_key, of_followers, requests, phases }
    }
}

/// Counts of topics: bytes in, out and rejected, records in, produces, failed produces, fetches, failed fetches.
type Counts = (u64, u64, u64, u64, u64, u64, u64, u64);

fn counts_of(counts: TopicCounts) -> Counts {
    let TopicCounts { bytes_in, bytes_out, bytes_rejected, records_in, .. } = counts;
    let TopicCounts { produces, failed_produces, fetches, failed_fetches, .. } = counts;
    (bytes_in, bytes_out, bytes_rejected, records_in, produces, failed_produces, fetches, failed_fetches)
}

/// See `_native.pyi`.
#[pyclass(frozen, get_all, name = "WorkCounters", module = "pybroker._native")]
pub struct PyWorkCounters {
    topics: Counts,
    replication_bytes_in: u64,
    replication_bytes_out: u64,
    waiting: (u64, u64),
    expired: (u64, u64),
    times: Vec<PyRequestTimes>,
    bounds_us: Vec<u64>,
    system_threads: Vec<i32>,
    listeners: Vec<(String, usize, u64, u64, u64)>,
}

impl PyWorkCounters {
    pub fn new(work: WorkCounters, listeners: Vec<ListenerCounts>, replication_bytes_in: u64) -> Self {
        let WorkCounters { topics, replication_bytes_out, waiting, expired, times, system_threads } = work;
        let listener =
            |it: ListenerCounts| (it.name.to_string(), it.open, it.accepted, it.waited_ms, it.addresses_waited_ms);
        Self {
            topics: counts_of(topics),
            replication_bytes_in,
            replication_bytes_out,
            waiting: waiting.into(),
            expired: expired.into(),
            times: times.into_iter().map(PyRequestTimes::from).collect(),
            bounds_us: bounds_us().collect(),
            system_threads,
            listeners: listeners.into_iter().map(listener).collect(),
        }
    }
}

/// One replica: topic, index, whether it leads, bytes, segments, start, end, high watermark, replicas, in sync, minimum in
/// sync.
type Row<'a> = (&'a str, i32, bool, u64, usize, i64, i64, i64, usize, usize, usize);

/// See `_native.pyi`.
#[pyclass(frozen, name = "PartitionStates", module = "pybroker._native")]
pub struct PyPartitionStates {
    partitions: Vec<PartitionState>,
    topics: Vec<(Arc<str>, TopicCounts)>,
}

impl PyPartitionStates {
    pub fn new(partitions: Vec<PartitionState>, topics: Vec<(Arc<str>, TopicCounts)>) -> Self {
        Self { partitions, topics }
    }
}

/// A part of a slice; empty if it begins after the end.
fn part<T>(all: &[T], from: usize, count: usize) -> &[T] {
    let from = from.min(all.len());
    &all[from..all.len().min(from.saturating_add(count))]
}

#[pymethods]
impl PyPartitionStates {
    fn __len__(&self) -> usize {
        self.partitions.len()
    }

    #[pyo3(signature = (begin, count))]
    fn rows(&self, begin: usize, count: usize) -> Vec<Row<'_>> {
        part(&self.partitions, begin, count)
            .iter()
            .map(|state| {
                let PartitionState { topic, index, leads, size_bytes, segments, .. } = state;
                let PartitionState { log_start_offset, log_end_offset, high_watermark, .. } = state;
                let PartitionState { replicas, in_sync, min_in_sync, .. } = state;
                let (start, end, watermark) = (*log_start_offset, *log_end_offset, *high_watermark);
                let synced = (*replicas, *in_sync, *min_in_sync);
                let head = (&**topic, *index, *leads, *size_bytes, *segments);
                (head.0, head.1, head.2, head.3, head.4, start, end, watermark, synced.0, synced.1, synced.2)
            })
            .collect()
    }

    #[pyo3(signature = (begin, count))]
    fn topics(&self, begin: usize, count: usize) -> Vec<(&str, Counts)> {
        part(&self.topics, begin, count).iter().map(|(name, counts)| (&**name, counts_of(*counts))).collect()
    }
}
