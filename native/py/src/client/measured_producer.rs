//! The part of a native producer that every use shares: flushing and closing, the topic's partitions, and counts.
//!
//! Owns no behaviour; every call that may wait releases the interpreter lock.

use std::collections::HashMap;
use std::sync::Arc;

use pybroker_client::{ClientError, ProducerConfig};
#[cfg(feature = "load")]
use pybroker_load::Measurement;
use pyo3::prelude::*;

use crate::client::client_error::client_error;
use crate::client::connection::wait;

/// The error of failed records, their topic and partition, and their number.
type Failed<'py> = (Bound<'py, PyAny>, String, i32, u64);

/// A native producer, without the methods for a program's records.
#[pyclass(frozen, subclass, module = "pybroker._native")]
pub struct MeasuredProducer {
    pub inner: Arc<pybroker_client::Producer>,
    #[cfg(feature = "load")]
    pub measurement: Arc<Measurement>,
}

impl MeasuredProducer {
    /// Opens an engine whose batches are measured.
    #[cfg(feature = "load")]
    pub fn open(config: ProducerConfig) -> Result<Self, ClientError> {
        let measurement = Arc::new(Measurement::default());
        let inner = pybroker_client::Producer::new(config, Some(Arc::clone(&measurement) as _))?;
        Ok(Self { inner: Arc::new(inner), measurement })
    }

    /// Opens an engine.
    #[cfg(not(feature = "load"))]
    pub fn open(config: ProducerConfig) -> Result<Self, ClientError> {
        Ok(Self { inner: Arc::new(pybroker_client::Producer::new(config, None)?) })
    }
}

#[pymethods]
impl MeasuredProducer {
    /// By partition: (topic, partition, records acknowledged, records failed).
    fn outcomes(&self) -> Vec<(String, i32, u64, u64)> {
        let outcomes = self.inner.outcomes().into_iter();
        outcomes.map(|o| (o.topic.to_string(), o.partition, o.acknowledged, o.failed)).collect()
    }

    /// Producer id and epoch.
    #[pyo3(name = "_identity")]
    fn identity(&self, py: Python<'_>) -> PyResult<(i64, i16)> {
        py.detach(|| self.inner.identity()).map_err(client_error)
    }

    /// The number of partitions of a topic.
    #[pyo3(signature = (topic))]
    fn partitions(&self, py: Python<'_>, topic: &str) -> PyResult<usize> {
        Ok(py.detach(|| self.inner.destination(topic)).map_err(client_error)?.partitions())
    }

    /// Waits until every record sent so far is acknowledged or failed.
    #[pyo3(signature = (timeout_s))]
    fn flush(&self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        py.detach(|| self.inner.flush(wait(timeout_s))).map_err(client_error)
    }

    /// Flushes and ends the I/O thread.
    #[pyo3(signature = (timeout_s))]
    fn close(&self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        py.detach(|| self.inner.close(wait(timeout_s))).map_err(client_error)
    }

    /// The producer's metrics, by the names of Kafka's metrics.
    fn metrics(&self) -> HashMap<&'static str, f64> {
        self.inner.metrics().into_iter().collect()
    }

    /// Batches that are neither acknowledged nor failed.
    fn incomplete_batches(&self) -> usize {
        self.inner.incomplete()
    }

    /// Failed records whose outcome the program has not read. With `take` they are removed.
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

    /// Raises the first failure of a record, if one failed.
    fn raise_failure(&self) -> PyResult<()> {
        self.inner.first_failure().map_or(Ok(()), |failure| Err(client_error(failure)))
    }
}
