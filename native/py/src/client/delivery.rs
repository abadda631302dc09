//! The outcome of a sent record.
//!
//! Owns no behaviour; a wait releases the interpreter lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pybroker_client::{ClientError, Ticket, Written};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::client::client_error::{DeliveryError, client_error};
use crate::client::connection::wait;
use crate::client::native_producer::Producer;
use crate::client::settlements::row;

/// A year: longer than a program runs.
pub const LONGEST: Duration = Duration::from_secs(31_536_000);

static RECORD_METADATA: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The outcome of one record. Keeps a reference to its producer, so that the record is sent even if the program has none.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Delivery {
    ticket: Ticket,
    topic: Py<PyString>,
    /// Whether the program has read the outcome, or a callback gets it.
    is_observed: AtomicBool,
    producer: Py<Producer>,
}

impl Delivery {
    /// The delivery of a ticket.
    pub fn new(ticket: Ticket, topic: Py<PyString>, is_observed: bool, producer: Py<Producer>) -> Self {
        Self { ticket, topic, is_observed: AtomicBool::new(is_observed), producer }
    }

    /// Reads the outcome, which the caller has to handle. Raises `DeliveryError` after the timeout.
    fn take(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Result<Written, ClientError>> {
        check_process(py, &self.producer)?;
        let timeout = timeout_s.map_or(LONGEST, wait);
        let Some(outcome) = outcome(py, &self.ticket.delivery, timeout)? else {
            let (topic, seconds) = (self.topic.to_str(py)?, timeout.as_secs_f64());
            return Err(DeliveryError::new_err(format!("topic {topic:?}: no outcome within {seconds} s")));
        };
        if outcome.is_err() && !self.is_observed.swap(true, Ordering::Relaxed) {
            self.ticket.delivery.observe(1);
        }
        Ok(outcome)
    }
}

/// Raises `ForkedError` in a forked child, where the producer has no I/O thread: `pybroker/client/forking.py` gives the
/// producer a class there whose attributes raise.
pub fn check_process(py: Python<'_>, producer: &Py<Producer>) -> PyResult<()> {
    producer.getattr(py, intern!(py, "flush")).map(drop)
}

/// A batch's outcome; waits for it without the interpreter lock. `None` after the timeout.
pub fn outcome(
    py: Python<'_>,
    delivery: &pybroker_client::Delivery,
    timeout: Duration,
) -> PyResult<Option<Result<Written, ClientError>>> {
    match delivery.outcome() {
        Some(outcome) => Ok(Some(outcome)),
        None => py.detach(|| delivery.wait(timeout)).map_err(client_error),
    }
}

#[pymethods]
impl Delivery {
    /// Whether the outcome is known.
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        check_process(py, &self.producer)?;
        Ok(self.ticket.delivery.is_decided())
    }

    /// Waits until the record is acknowledged; returns a `RecordMetadata`.
    #[pyo3(signature = (timeout_s=None))]
    fn result<'py>(&self, py: Python<'py>, timeout_s: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let (written, ticket) = (self.take(py, timeout_s)?.map_err(client_error)?, &self.ticket);
        let row = row(self.topic.bind(py).clone(), ticket.partition, (ticket.index, ticket.timestamp_ms), written);
        RECORD_METADATA.import(py, "pybroker.client.producing.record_metadata", "RecordMetadata")?.call1(row)
    }

    /// Waits for the outcome; returns the error of a failed record, or `None`.
    #[pyo3(signature = (timeout_s=None))]
    fn exception<'py>(&self, py: Python<'py>, timeout_s: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let failure = self.take(py, timeout_s)?.err();
        Ok(failure.map(|error| client_error(error).into_value(py).into_bound(py).into_any()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.producer)
    }
}
