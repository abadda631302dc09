//! The output of a simulated data plane: responses, and queries for transaction coordinators. Converts only.

use pybroker_net::{Served, TransactionAsked};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The number of a waiting request, or its response; neither if the connection is closed or there is no response.
pub type Answered<'py> = (Option<u64>, Option<Bound<'py, PyBytes>>);

/// See `_native.pyi`.
pub type Question = (u64, (String, i64, i16), i16, Vec<(String, i32)>);

pub fn answered(py: Python<'_>, served: Served) -> Answered<'_> {
    match served {
        Served::Answer(frame) => (None, Some(PyBytes::new(py, &frame))),
        Served::Waits(number) => (Some(number), None),
        Served::Silent | Served::Closed(_) => (None, None),
    }
}

pub fn question(number: u64, asked: TransactionAsked) -> Question {
    let producer = (asked.transactional_id, asked.producer_id, asked.producer_epoch);
    (number, producer, asked.api_version, asked.partitions)
}
