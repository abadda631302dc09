//! The outcome of the rows of Arrow data that were sent together.
//!
//! Owns no behaviour; a wait releases the interpreter lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pybroker_client::columns::SentRows;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::client::client_error::{DeliveryError, client_error};
use crate::client::connection::wait;
use crate::client::delivery::{LONGEST, check_process, outcome};
use crate::client::native_producer::Producer;

/// The outcome of rows. Keeps a reference to its producer.
#[pyclass(frozen, module = "pybroker._native")]
pub struct RowsDelivery {
    sent: SentRows,
    is_observed: AtomicBool,
    producer: Py<Producer>,
}

impl RowsDelivery {
    /// The delivery of rows that were sent.
    pub fn new(sent: SentRows, producer: Py<Producer>) -> Self {
        Self { sent, is_observed: AtomicBool::new(false), producer }
    }
}

#[pymethods]
impl RowsDelivery {
    /// The number of rows sent.
    fn __len__(&self) -> usize {
        self.sent.rows
    }

    /// Whether the outcome of every row is known.
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        check_process(py, &self.producer)?;
        Ok(self.sent.batches.iter().all(|(delivery, _)| delivery.is_decided()))
    }

    /// Waits until every row is acknowledged; returns their number.
    #[pyo3(signature = (timeout_s=None))]
    fn result(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<usize> {
        check_process(py, &self.producer)?;
        let timeout = timeout_s.map_or(LONGEST, wait);
        let (ends, mut failed, mut first) = (Instant::now() + timeout, 0, None);
        for (delivery, _) in &self.sent.batches {
            let left = ends.saturating_duration_since(Instant::now());
            let Some(outcome) = outcome(py, delivery, left)? else {
                let text = format!("{} rows: no outcome within {} s", self.sent.rows, timeout.as_secs_f64());
                return Err(DeliveryError::new_err(text));
            };
            first = first.or(outcome.err());
        }
        let is_new = !self.is_observed.swap(true, Ordering::Relaxed);
        for (delivery, rows) in &self.sent.batches {
            if delivery.outcome().is_some_and(|outcome| outcome.is_err()) {
                failed += *rows;
                if is_new {
                    delivery.observe(*rows);
                }
            }
        }
        let Some(error) = first else { return Ok(self.sent.rows) };
        let (rows, raised) = (self.sent.rows, client_error(error));
        let text = format!("{}; {failed} of {rows} rows were not delivered", raised.value(py).str()?);
        raised.value(py).setattr("args", (text,))?;
        Err(raised)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.producer)
    }
}
