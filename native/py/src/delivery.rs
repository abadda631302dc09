//! What became of records that were sent: one by one, and in sums.
//!
//! Owns no behaviour; a wait releases the interpreter lock.

use pybroker_core::client::{self, Ticket, Written};
use pyo3::prelude::*;

use crate::connection::wait;
use crate::error::client_error;

/// Where a record went, once that is known.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Delivery {
    ticket: Ticket,
}

impl Delivery {
    /// The face of a ticket.
    pub fn new(ticket: Ticket) -> Self {
        Self { ticket }
    }
}

#[pymethods]
impl Delivery {
    /// The number of the record's batch.
    #[getter]
    fn batch(&self) -> u64 {
        self.ticket.batch
    }

    /// Whether the outcome is known.
    fn done(&self) -> bool {
        self.ticket.delivery.outcome().is_some()
    }

    /// Waits for the outcome: (partition, offset, timestamp in ms), or `None` when time is up.
    #[pyo3(signature = (timeout_s))]
    fn result(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<(i32, i64, i64)>> {
        let outcome = match self.ticket.delivery.outcome() {
            Some(outcome) => Some(outcome),
            None => py.detach(|| self.ticket.delivery.wait(wait(timeout_s))),
        };
        let Some(outcome) = outcome else { return Ok(None) };
        let Written { base_offset, log_append_time_ms } = outcome.map_err(client_error)?;
        let offset = if base_offset < 0 { -1 } else { base_offset + i64::from(self.ticket.index) };
        let timestamp = if log_append_time_ms < 0 { self.ticket.timestamp_ms } else { log_append_time_ms };
        Ok(Some((self.ticket.partition, offset, timestamp)))
    }
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

impl From<client::Tally> for Tally {
    fn from(tally: client::Tally) -> Self {
        let client::Tally { records, bytes, failed, latency_sum_us, latency_max_us } = tally;
        Self { records, bytes, failed, latency_sum_us, latency_max_us }
    }
}
