//! What every use of the native producer shares: its end, what the cluster says, generated records and measurements.
//!
//! Owns no behaviour; every call that may wait releases the interpreter lock.

use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "load")]
use parking_lot::Mutex;
use pybroker_client::{ClientError, ProducerConfig, Since};
#[cfg(feature = "load")]
use pybroker_load::{MadeRecords, Measurement, Payload, Stamp};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::client_error::client_error;
use crate::connection::wait;
#[cfg(feature = "load")]
use crate::stamp::{LatencyHistogram, Sending, Tally, check_stamped, send_made};

/// What a record met that was not delivered, its topic and partition, and how many there are of it.
type Failed<'py> = (Bound<'py, PyAny>, String, i32, u64);

/// A native producer, without what a program's records need.
#[pyclass(frozen, subclass, module = "pybroker._native")]
pub struct MeasuredProducer {
    pub inner: Arc<pybroker_client::Producer>,
    #[cfg(feature = "load")]
    payload: Mutex<Payload>,
    #[cfg(feature = "load")]
    measurement: Arc<Measurement>,
}

impl MeasuredProducer {
    /// Opens an engine whose batches are measured.
    #[cfg(feature = "load")]
    pub fn open(config: ProducerConfig) -> Result<Self, ClientError> {
        let measurement = Arc::new(Measurement::default());
        let inner = pybroker_client::Producer::new(config, Some(Arc::clone(&measurement) as _))?;
        let payload = Mutex::new(Payload::new(pybroker_client::now_ms() as u64));
        Ok(Self { inner: Arc::new(inner), payload, measurement })
    }

    /// Opens an engine.
    #[cfg(not(feature = "load"))]
    pub fn open(config: ProducerConfig) -> Result<Self, ClientError> {
        Ok(Self { inner: Arc::new(pybroker_client::Producer::new(config, None)?) })
    }
}

#[pymethods]
impl MeasuredProducer {
    /// Adds values of `record_size` bytes that lie behind each other in `values`.
    #[pyo3(signature = (topic, partition, values, record_size))]
    fn send_many(
        &self,
        py: Python<'_>,
        topic: &str,
        partition: i32,
        values: &[u8],
        record_size: usize,
    ) -> PyResult<usize> {
        if record_size == 0 || !values.len().is_multiple_of(record_size) {
            let text = format!("{} bytes are no whole number of records of {record_size} bytes", values.len());
            return Err(PyValueError::new_err(text));
        }
        let sent = py.detach(|| {
            let destination = self.inner.destination(topic)?;
            self.inner.send_many(&destination, partition, values, record_size, Since::SENT)
        });
        sent.map_err(client_error)
    }

    #[cfg(feature = "load")]
    /// Adds `count` values of random capital letters.
    #[pyo3(signature = (topic, partition, record_size, count, due=None))]
    fn send_random_letters(
        &self,
        py: Python<'_>,
        topic: &str,
        partition: i32,
        record_size: usize,
        count: usize,
        due: Option<(i64, f64)>,
    ) -> PyResult<()> {
        let sending = Sending { producer: &self.inner, payload: &self.payload, topic, partition };
        send_made(py, &sending, MadeRecords { size: record_size, count }, None, due)
    }

    #[cfg(feature = "load")]
    /// Adds `count` values of random capital letters behind stamps.
    #[pyo3(signature = (topic, partition, producer, first_sequence, record_size, count, due=None))]
    #[allow(clippy::too_many_arguments, reason = "the stub names them")]
    fn send_stamped(
        &self,
        py: Python<'_>,
        topic: &str,
        partition: i32,
        producer: u64,
        first_sequence: u64,
        record_size: usize,
        count: usize,
        due: Option<(i64, f64)>,
    ) -> PyResult<()> {
        check_stamped(partition, record_size)?;
        let first = Stamp { producer, sequence: first_sequence, sent_us: 0 };
        let records = MadeRecords { size: record_size, count };
        let sending = Sending { producer: &self.inner, payload: &self.payload, topic, partition };
        send_made(py, &sending, records, Some(first), due)
    }

    /// By partition: (topic, partition, records acknowledged, records given up).
    fn outcomes(&self) -> Vec<(String, i32, u64, u64)> {
        let outcomes = self.inner.outcomes().into_iter();
        outcomes.map(|o| (o.topic.to_string(), o.partition, o.acknowledged, o.failed)).collect()
    }

    /// Producer id and epoch.
    fn identity(&self, py: Python<'_>) -> PyResult<(i64, i16)> {
        py.detach(|| self.inner.identity()).map_err(client_error)
    }

    /// How many partitions a topic has.
    #[pyo3(signature = (topic))]
    fn partitions(&self, py: Python<'_>, topic: &str) -> PyResult<usize> {
        Ok(py.detach(|| self.inner.destination(topic)).map_err(client_error)?.partitions())
    }

    /// Waits until everything sent so far is acknowledged or given up.
    #[pyo3(signature = (timeout_s))]
    fn flush(&self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        py.detach(|| self.inner.flush(wait(timeout_s))).map_err(client_error)
    }

    /// Flushes and ends the I/O thread.
    #[pyo3(signature = (timeout_s))]
    fn close(&self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        py.detach(|| self.inner.close(wait(timeout_s))).map_err(client_error)
    }

    /// What the producer has done and holds, by the names of Kafka's metrics.
    fn metrics(&self) -> HashMap<&'static str, f64> {
        self.inner.metrics().into_iter().collect()
    }

    /// Batches that are not acknowledged and not given up.
    fn incomplete_batches(&self) -> usize {
        self.inner.incomplete()
    }

    #[cfg(feature = "load")]
    /// Records sent from now on belong to this phase of the measurement.
    #[pyo3(signature = (phase))]
    fn begin_phase(&self, phase: u8) {
        self.inner.begin_phase(phase);
    }

    #[cfg(feature = "load")]
    /// What was acknowledged since the last call.
    fn take_window(&self) -> Tally {
        Tally::from(self.measurement.0.lock().take_window())
    }

    #[cfg(feature = "load")]
    /// What was acknowledged of a phase since the last call, and its latencies.
    #[pyo3(signature = (phase))]
    fn take_interval(&self, phase: u8) -> (Tally, LatencyHistogram) {
        let (tally, histogram) = self.measurement.0.lock().take_interval(phase);
        (Tally::from(tally), LatencyHistogram::from(histogram))
    }

    #[cfg(feature = "load")]
    /// The measurement from a phase on, and the latency in microseconds at each quantile.
    #[pyo3(signature = (first_phase, quantiles))]
    fn summary(&self, first_phase: usize, quantiles: Vec<f64>) -> (Tally, Vec<u64>) {
        let (tally, latencies) = self.measurement.0.lock().summary(first_phase, &quantiles);
        (Tally::from(tally), latencies)
    }

    /// Records that were not delivered, and whose outcome nobody has taken. With `take` they are forgotten.
    #[pyo3(name = "_failures", signature = (*, take))]
    fn failures<'py>(&self, py: Python<'py>, take: bool) -> Vec<Failed<'py>> {
        let failed = self.inner.undelivered(take).into_iter();
        failed
            .map(|failed| {
                let error = client_error(failed.error).into_value(py).into_bound(py).into_any();
                (error, failed.topic.to_string(), failed.partition, failed.records)
            })
            .collect()
    }

    /// Raises the first failure of a record, if any failed.
    fn raise_failure(&self) -> PyResult<()> {
        self.inner.first_failure().map_or(Ok(()), |failure| Err(client_error(failure)))
    }
}
