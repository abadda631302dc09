//! The native fetcher's interface to Python: partitions in, records or counts out.
//!
//! Owns no behaviour; every call that may wait releases the interpreter lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pybroker_client::{FetcherConfig, OffsetReset, Start};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::client::client_error::client_error;
use crate::client::connection::{ConnectionSettings, wait};
use crate::client::counting::Counting;
use crate::client::positions::{as_rows, assignment, start};
use crate::client::received::Received;
#[cfg(feature = "load")]
use crate::client::stamp::{LatencyHistogram, Tally};

/// The attributes of `pybroker.client.settings.FetcherSettings` beyond the connection's.
#[derive(FromPyObject)]
struct FetcherSettings {
    fetch_min_bytes: i32,
    fetch_max_bytes: i32,
    max_partition_fetch_bytes: i32,
    fetch_max_wait_ms: u64,
    check_crcs: bool,
    client_rack: String,
    isolation_level: String,
    auto_offset_reset: String,
    auto_offset_reset_ms: Option<u64>,
    stops_at_new_leader: bool,
    queued_responses: usize,
    max_decompressed_bytes: usize,
}

/// A native fetcher.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Fetcher {
    pub(crate) inner: Arc<pybroker_client::Fetcher>,
    scratch: Mutex<Vec<u8>>,
    counting: Counting,
}

#[pymethods]
impl Fetcher {
    #[new]
    #[pyo3(signature = (settings))]
    fn new(settings: &Bound<'_, PyAny>) -> PyResult<Self> {
        let own: FetcherSettings = settings.extract()?;
        let config = FetcherConfig {
            connection: settings.extract::<ConnectionSettings>()?.config(),
            fetch_min_bytes: own.fetch_min_bytes,
            fetch_max_bytes: own.fetch_max_bytes,
            max_partition_fetch_bytes: own.max_partition_fetch_bytes,
            fetch_max_wait: Duration::from_millis(own.fetch_max_wait_ms),
            check_crcs: own.check_crcs,
            client_rack: own.client_rack,
            read_committed: own.isolation_level == "read_committed",
            auto_offset_reset: match own.auto_offset_reset.as_str() {
                "earliest" => OffsetReset::Earliest,
                "latest" => OffsetReset::Latest,
                "none" => OffsetReset::None,
                other => {
                    let text = || {
                        PyValueError::new_err(format!("auto.offset.reset={other}: must be earliest, latest or none"))
                    };
                    OffsetReset::Before(Duration::from_millis(own.auto_offset_reset_ms.ok_or_else(text)?))
                }
            },
            stops_at_new_leader: own.stops_at_new_leader,
            queued_responses: own.queued_responses,
            max_decompressed_bytes: own.max_decompressed_bytes,
        };
        let inner = pybroker_client::Fetcher::new(config).map_err(client_error)?;
        Ok(Self { inner: Arc::new(inner), scratch: Mutex::default(), counting: Counting::default() })
    }

    /// Reads these partitions, and no others: (topic, partition, offset; -1 after the last record, -2 from the first).
    #[pyo3(signature = (partitions))]
    fn assign(&self, py: Python<'_>, partitions: Vec<(String, i32, i64)>) {
        py.detach(|| self.inner.assign(assignment(partitions)));
    }

    /// Adds partitions, or moves them to another position.
    #[pyo3(signature = (partitions))]
    fn add(&self, py: Python<'_>, partitions: Vec<(String, i32, i64)>) {
        py.detach(|| self.inner.add(assignment(partitions)));
    }

    /// Stops reading these partitions.
    #[pyo3(signature = (partitions))]
    fn remove(&self, py: Python<'_>, partitions: Vec<(String, i32)>) {
        let partitions: Vec<_> = partitions.into_iter().map(|(topic, index)| (topic.into(), index)).collect();
        py.detach(|| self.inner.remove(&partitions));
    }

    /// Pauses or resumes one assigned partition; false if it is not assigned.
    #[pyo3(signature = (topic, partition, paused))]
    fn pause(&self, py: Python<'_>, topic: &str, partition: i32, paused: bool) -> bool {
        py.detach(|| self.inner.pause(topic, partition, paused))
    }

    /// Moves one assigned partition to another position; false if it is not assigned.
    #[pyo3(signature = (topic, partition, offset))]
    fn seek(&self, py: Python<'_>, topic: &str, partition: i32, offset: i64) -> bool {
        py.detach(|| self.inner.seek(topic, partition, start(offset)))
    }

    /// The caller's position in one partition (offset or -1 or -2); `None` if it is not assigned.
    #[pyo3(signature = (topic, partition))]
    fn position(&self, topic: &str, partition: i32) -> Option<i64> {
        let (Start::Offset(offset) | Start::Time(offset)) = self.inner.position(topic, partition)?;
        Some(offset)
    }

    /// Leader epoch of the last batch before that position; -1 if unknown.
    #[pyo3(signature = (topic, partition))]
    fn epoch(&self, topic: &str, partition: i32) -> i32 {
        self.inner.epoch(topic, partition)
    }

    /// The caller's positions: (topic, partition, offset or -1 or -2).
    fn positions(&self) -> Vec<(String, i32, i64)> {
        as_rows(self.inner.positions())
    }

    /// Takes the next received batches and reads every record, with its stamp if `stamped`: (records, bytes of keys and
    /// values).
    #[pyo3(signature = (timeout_s, stamped=false))]
    fn count(&self, py: Python<'_>, timeout_s: f64, stamped: bool) -> PyResult<Option<(u64, u64)>> {
        let counted = py.detach(|| {
            let Some(chunk) = self.inner.next(wait(timeout_s))? else { return Ok(None) };
            let count = self.counting.read(&chunk, stamped)?;
            self.inner.consumed(count.records as usize);
            Ok(Some((count.records, count.bytes)))
        });
        counted.map_err(client_error)
    }

    #[cfg(feature = "load")]
    /// The stamped records counted since the last call, and their latencies.
    fn take_arrivals(&self) -> (Tally, LatencyHistogram) {
        self.counting.take_arrivals()
    }

    /// Takes the next received batches of one partition; `None` if none arrived within the timeout.
    #[pyo3(signature = (timeout_s))]
    fn take(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Received>> {
        let taken = py.detach(|| {
            let Some(chunk) = self.inner.next(wait(timeout_s))? else { return Ok(None) };
            let (received, damage) = pybroker_client::Received::read(chunk, &mut self.scratch.lock());
            if let Some(damage) = damage {
                self.inner.seek_to_corrupt_batch(received.chunk(), &damage);
                if received.left() == 0 {
                    return Err(damage);
                }
            }
            self.inner.consumed(received.left());
            Ok(Some(received))
        });
        Ok(taken.map_err(client_error)?.map(|received| Received::new(py, received)))
    }

    /// The fetcher's metrics and its lag, by the names of Kafka's metrics.
    fn metrics(&self) -> HashMap<&'static str, f64> {
        self.inner.metrics().into_iter().collect()
    }

    /// The lag by partition: (topic, partition, records).
    fn lags(&self) -> Vec<(String, i32, u64)> {
        self.inner.lags().into_iter().map(|((topic, index), behind)| (topic.to_string(), index, behind)).collect()
    }

    /// A descriptor that is readable when `take` may have batches.
    fn arrived_descriptor(&self) -> PyResult<i32> {
        Ok(self.inner.arrived_descriptor()?)
    }

    /// Clears the signal, before the caller takes what has arrived.
    fn clear_signal(&self) {
        self.inner.clear_signal();
    }

    /// Ends the I/O thread.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.close());
    }
}
