//! Load generation with a producer: generates records, and measures their acknowledgements and latencies.
//!
//! Owns no behaviour; every call that may wait releases the interpreter lock.

use std::sync::Arc;

use parking_lot::Mutex;
use pybroker_client::Since;
use pybroker_load::{MadeRecords, Measurement, Payload, Stamp};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::client::client_error::client_error;
use crate::client::native_producer::Producer;
use crate::client::stamp::{LatencyHistogram, Sending, Tally, check_stamped, send_made};

/// Sends generated records with one producer, and measures all records of the producer.
#[pyclass(frozen, module = "pybroker._native")]
pub struct LoadGenerator {
    producer: Arc<pybroker_client::Producer>,
    measurement: Arc<Measurement>,
    payload: Mutex<Payload>,
}

#[pymethods]
impl LoadGenerator {
    #[new]
    #[pyo3(signature = (producer))]
    fn new(producer: &Bound<'_, Producer>) -> Self {
        let base = producer.as_super().get();
        Self {
            producer: Arc::clone(&base.inner),
            measurement: Arc::clone(&base.measurement),
            payload: Mutex::new(Payload::new(pybroker_client::now_ms() as u64)),
        }
    }

    /// Adds values of `record_size` bytes, adjacent in `values`.
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
            let destination = self.producer.destination(topic)?;
            self.producer.send_many(&destination, partition, values, record_size, Since::SENT)
        });
        sent.map_err(client_error)
    }

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
        let sending = Sending { producer: &self.producer, payload: &self.payload, topic, partition };
        send_made(py, &sending, MadeRecords { size: record_size, count }, None, due)
    }

    /// Adds `count` values of random capital letters, each after a stamp.
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
        let sending = Sending { producer: &self.producer, payload: &self.payload, topic, partition };
        send_made(py, &sending, records, Some(first), due)
    }

    /// Sets the measurement phase of records sent from here on.
    #[pyo3(signature = (phase))]
    fn begin_phase(&self, phase: u8) {
        self.producer.begin_phase(phase);
    }

    /// The records acknowledged since the last call.
    fn take_window(&self) -> Tally {
        Tally::from(self.measurement.0.lock().take_window())
    }

    /// The records of a phase acknowledged since the last call, and their latencies.
    #[pyo3(signature = (phase))]
    fn take_interval(&self, phase: u8) -> (Tally, LatencyHistogram) {
        let (tally, histogram) = self.measurement.0.lock().take_interval(phase);
        (Tally::from(tally), LatencyHistogram::from(histogram))
    }

    /// The measurement from a phase on, and the latency in microseconds at each quantile.
    #[pyo3(signature = (first_phase, quantiles))]
    fn summary(&self, first_phase: usize, quantiles: Vec<f64>) -> (Tally, Vec<u64>) {
        let (tally, latencies) = self.measurement.0.lock().summary(first_phase, &quantiles);
        (Tally::from(tally), latencies)
    }
}
