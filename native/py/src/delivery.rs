//! What became of a record that was sent.
//!
//! Owns no behaviour; a wait releases the interpreter lock.

use std::time::Duration;

use pybroker_client::Ticket;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use crate::client_error::{DeliveryError, client_error};
use crate::connection::wait;
use crate::producer::Producer;
use crate::settlements::row;

static RECORD_METADATA: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The fate of one record. Keeps its producer open, so that the record is sent though nobody else holds that.
#[pyclass(frozen, freelist = 64, module = "pybroker._native")]
pub struct Delivery {
    ticket: Ticket,
    topic: Py<PyString>,
    _producer: Py<Producer>,
}

impl Delivery {
    /// The face of a ticket.
    pub fn new(ticket: Ticket, topic: Py<PyString>, producer: Py<Producer>) -> Self {
        Self { ticket, topic, _producer: producer }
    }
}

#[pymethods]
impl Delivery {
    /// Whether the fate is known.
    fn done(&self) -> bool {
        self.ticket.delivery.is_decided()
    }

    /// Waits until the record is acknowledged: a `RecordMetadata`.
    #[pyo3(signature = (timeout_s=None))]
    fn result<'py>(&self, py: Python<'py>, timeout_s: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let timeout = timeout_s.map_or(Duration::from_secs(31_536_000), wait);
        let outcome = match self.ticket.delivery.outcome() {
            Some(outcome) => Some(outcome),
            None => py.detach(|| self.ticket.delivery.wait(timeout)).map_err(client_error)?,
        };
        let Some(outcome) = outcome else {
            let (topic, seconds) = (self.topic.to_str(py)?, timeout.as_secs_f64());
            return Err(DeliveryError::new_err(format!("topic {topic:?}: no outcome within {seconds} s")));
        };
        let (written, ticket) = (outcome.map_err(client_error)?, &self.ticket);
        let row = row(self.topic.bind(py).clone(), ticket.partition, (ticket.index, ticket.timestamp_ms), written);
        RECORD_METADATA.import(py, "pybroker.client.record_metadata", "RecordMetadata")?.call1(row)
    }
}
