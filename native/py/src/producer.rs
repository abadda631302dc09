//! The native producer's face in Python: settings and records in, deliveries and measurements out.
//!
//! Owns no behaviour; every call that may wait releases the interpreter lock.

use std::time::Duration;

use parking_lot::Mutex;
use pybroker_core::client::{self, NewRecord, ProducerConfig, fill_random_letters, now_ms};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::connection::{ConnectionSettings, wait};
use crate::delivery::{Delivery, Tally};
use crate::error::client_error;

/// Bytes of random letters made at a time: they are still in the cache when they are copied into a batch.
const LETTERS: usize = 64 * 1024;

/// The attributes of `pybroker.client.settings.ProducerSettings` that are the producer's own.
#[derive(FromPyObject)]
struct ProducerSettings {
    batch_size: usize,
    linger_ms: f64,
    buffer_memory: usize,
    max_block_ms: u64,
    delivery_timeout_ms: u64,
    max_request_size: usize,
    max_in_flight_requests_per_connection: usize,
    compression_type: String,
    compression_level: Option<i32>,
}

/// A native producer.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Producer {
    inner: client::Producer,
    letters: Mutex<(Vec<u8>, u64)>,
}

#[pymethods]
impl Producer {
    #[new]
    #[pyo3(signature = (settings, *, acks, enable_idempotence))]
    fn new(settings: &Bound<'_, PyAny>, acks: i16, enable_idempotence: bool) -> PyResult<Self> {
        let own: ProducerSettings = settings.extract()?;
        let config = ProducerConfig {
            connection: settings.extract::<ConnectionSettings>()?.config(),
            acks,
            batch_size: own.batch_size,
            linger: Duration::from_secs_f64(own.linger_ms.max(0.0) / 1e3),
            buffer_memory: own.buffer_memory,
            max_block: Duration::from_millis(own.max_block_ms),
            delivery_timeout: Duration::from_millis(own.delivery_timeout_ms),
            max_request_size: own.max_request_size,
            max_in_flight: own.max_in_flight_requests_per_connection,
            enable_idempotence,
            compression: own.compression_type.parse().map_err(PyValueError::new_err)?,
            compression_level: own.compression_level,
        };
        let inner = client::Producer::new(config).map_err(client_error)?;
        Ok(Self { inner, letters: Mutex::new((vec![0; LETTERS], now_ms() as u64)) })
    }

    /// Adds one record to its partition's batch.
    #[pyo3(signature = (destination, timestamp_ms, key, value, headers))]
    fn send(
        &self,
        py: Python<'_>,
        destination: (&str, i32),
        timestamp_ms: Option<i64>,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: Vec<(String, Option<Vec<u8>>)>,
    ) -> PyResult<Delivery> {
        let headers: Vec<_> = headers.iter().map(|(key, value)| (key.as_bytes(), value.as_deref())).collect();
        let record = NewRecord { timestamp_ms: timestamp_ms.unwrap_or_else(now_ms), key, value, headers: &headers };
        let sent = py.detach(|| {
            let (topic, partition) = destination;
            self.inner.send(&*self.inner.destination(topic)?, partition, &record)
        });
        Ok(Delivery::new(sent.map_err(client_error)?))
    }

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
            self.inner.send_many(&destination, partition, values, record_size)
        });
        sent.map_err(client_error)
    }

    /// Adds `count` values of random capital letters.
    #[pyo3(signature = (topic, partition, record_size, count))]
    fn send_random_letters(
        &self,
        py: Python<'_>,
        topic: &str,
        partition: i32,
        record_size: usize,
        count: usize,
    ) -> PyResult<()> {
        let sent = py.detach(|| {
            let destination = self.inner.destination(topic)?;
            let mut letters = self.letters.lock();
            let (buffer, state) = &mut *letters;
            let stride = (LETTERS / record_size.max(1)).max(1);
            buffer.resize(buffer.len().max(record_size), 0);
            let mut left = count;
            while left > 0 {
                let records = left.min(stride);
                let values = &mut buffer[..records * record_size];
                fill_random_letters(values, state);
                self.inner.send_many(&destination, partition, values, record_size)?;
                left -= records;
            }
            Ok(())
        });
        sent.map_err(client_error)
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

    /// A descriptor that is readable when batches were decided.
    fn decided_descriptor(&self) -> PyResult<i32> {
        Ok(self.inner.decided_descriptor()?)
    }

    /// The numbers of the batches decided since the last call.
    fn take_decided(&self) -> Vec<u64> {
        self.inner.take_decided()
    }

    /// Records sent from now on belong to this phase of the measurement.
    #[pyo3(signature = (phase))]
    fn begin_phase(&self, phase: u8) {
        self.inner.begin_phase(phase);
    }

    /// What was acknowledged since the last call.
    fn take_window(&self) -> Tally {
        Tally::from(self.inner.latency().lock().take_window())
    }

    /// The measurement from a phase on, and the latency in microseconds at each quantile.
    #[pyo3(signature = (first_phase, quantiles))]
    fn summary(&self, first_phase: usize, quantiles: Vec<f64>) -> (Tally, Vec<u64>) {
        let (tally, latencies) = self.inner.latency().lock().summary(first_phase, &quantiles);
        (Tally::from(tally), latencies)
    }

    /// Raises the first failure of a record, if any failed.
    fn raise_failure(&self) -> PyResult<()> {
        self.inner.first_failure().map_or(Ok(()), |failure| Err(client_error(failure)))
    }
}
