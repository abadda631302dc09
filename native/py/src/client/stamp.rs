//! Stamped records, latency histograms and sums in Python.
//!
//! Owns no behaviour: numbers in, numbers and bytes out.

use parking_lot::Mutex;
use pybroker_load::{Due, MadeRecords, Payload, STAMP_BYTES, Stamp};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::client_error::client_error;
use crate::client::native_producer::Producer;

/// Latencies that merge exactly.
#[pyclass(frozen, module = "pybroker._native")]
pub struct LatencyHistogram {
    inner: Mutex<pybroker_load::LatencyHistogram>,
}

impl From<pybroker_load::LatencyHistogram> for LatencyHistogram {
    fn from(histogram: pybroker_load::LatencyHistogram) -> Self {
        Self { inner: Mutex::new(histogram) }
    }
}

#[pymethods]
impl LatencyHistogram {
    /// An empty histogram, or the one that `encode` returned.
    #[new]
    #[pyo3(signature = (encoded=None))]
    fn new(encoded: Option<&[u8]>) -> PyResult<Self> {
        let histogram =
            encoded.map_or_else(|| Ok(pybroker_load::LatencyHistogram::new()), pybroker_load::LatencyHistogram::decode);
        Ok(Self::from(histogram.map_err(PyValueError::new_err)?))
    }

    /// Records `count` records with this latency each.
    #[pyo3(signature = (latency_us, count))]
    fn record(&self, latency_us: u64, count: u64) {
        self.inner.lock().record(latency_us, count);
    }

    /// Adds another histogram.
    #[pyo3(signature = (other))]
    fn merge(&self, other: &Self) {
        let theirs = other.inner.lock().clone();
        self.inner.lock().merge(&theirs);
    }

    /// The number of records.
    #[getter]
    fn count(&self) -> u64 {
        self.inner.lock().count()
    }

    /// The largest latency.
    #[getter]
    fn max_us(&self) -> u64 {
        self.inner.lock().max_us()
    }

    /// The mean latency.
    #[getter]
    fn mean_us(&self) -> f64 {
        self.inner.lock().mean_us()
    }

    /// The latency that this fraction of the records does not exceed.
    #[pyo3(signature = (quantile))]
    fn at_quantile(&self, quantile: f64) -> u64 {
        self.inner.lock().at_quantile(quantile)
    }

    /// HdrHistogram's V2 encoding, compressed.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let encoded = self.inner.lock().encode().map_err(PyValueError::new_err)?;
        Ok(PyBytes::new(py, &encoded))
    }
}

/// Keyed records of one producer and topic.
#[pyclass(frozen, module = "pybroker._native")]
pub struct KeyedStamps {
    inner: Mutex<pybroker_load::KeyedStamps>,
}

#[pymethods]
impl KeyedStamps {
    #[new]
    #[pyo3(signature = (keys, skew, seed))]
    fn new(keys: u32, skew: f64, seed: u64) -> PyResult<Self> {
        if keys == 0 || !(0.0..=100.0).contains(&skew) {
            return Err(PyValueError::new_err("keys must be at least 1, and skew from 0 to 100"));
        }
        Ok(Self { inner: Mutex::new(pybroker_load::KeyedStamps::new(keys, skew, seed)) })
    }

    /// Generates `count` records and sends them with a producer.
    #[pyo3(signature = (producer, topic, number, record_size, count, due=None))]
    #[allow(clippy::too_many_arguments, reason = "the stub names them")]
    fn send(
        &self,
        py: Python<'_>,
        producer: &Producer,
        topic: &str,
        number: u64,
        record_size: usize,
        count: usize,
        due: Option<(i64, f64)>,
    ) -> PyResult<()> {
        check_stamped(0, record_size)?;
        let due = due.map(|(first_us, every_us)| Due { first_us, every_us });
        let sent = py.detach(|| {
            let destination = producer.inner.destination(topic)?;
            let keyed = &mut self.inner.lock();
            let records = MadeRecords { size: record_size, count };
            pybroker_load::send_keyed(&producer.inner, &destination, number, keyed, records, due.as_ref())
        });
        sent.map_err(client_error)
    }
}

/// Checks that stamps with a partition's own sequence are possible: a partition is given, and the value has space.
pub fn check_stamped(partition: i32, record_size: usize) -> PyResult<()> {
    if partition < 0 {
        return Err(PyValueError::new_err("stamped records count by partition: name one (0 or more)"));
    }
    if record_size < STAMP_BYTES {
        let text = format!("a stamp takes {STAMP_BYTES} bytes: records of {record_size} bytes have no room for it");
        return Err(PyValueError::new_err(text));
    }
    Ok(())
}

/// The producer, topic and partition of generated records.
pub struct Sending<'a> {
    pub producer: &'a pybroker_client::Producer,
    pub payload: &'a Mutex<Payload>,
    pub topic: &'a str,
    pub partition: i32,
}

/// Sends `count` generated records: random letters, after stamps if `first` is given.
pub fn send_made(
    py: Python<'_>,
    sending: &Sending<'_>,
    records: MadeRecords,
    first: Option<Stamp>,
    due: Option<(i64, f64)>,
) -> PyResult<()> {
    let due = due.map(|(first_us, every_us)| Due { first_us, every_us });
    let &Sending { producer, payload, topic, partition } = sending;
    let sent = py.detach(|| {
        let destination = producer.destination(topic)?;
        pybroker_load::send_made(producer, &destination, partition, &mut payload.lock(), records, first, due.as_ref())
    });
    sent.map_err(client_error)
}

/// Sums over acknowledged records.
#[pyclass(frozen, get_all, module = "pybroker._native")]
pub struct Tally {
    records: u64,
    bytes: u64,
    failed: u64,
    latency_sum_us: u64,
    latency_max_us: u64,
}

impl From<pybroker_load::Tally> for Tally {
    fn from(tally: pybroker_load::Tally) -> Self {
        let pybroker_load::Tally { records, bytes, failed, latency_sum_us, latency_max_us } = tally;
        Self { records, bytes, failed, latency_sum_us, latency_max_us }
    }
}
