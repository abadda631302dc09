//! The output of a simulated data plane: responses, and queries for transaction coordinators. Converts only.

use pybroker_net::{Served, TransactionQuery};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The number of a waiting request, or its response; neither if the connection is closed or there is no response.
pub type Responded<'py> = (Option<u64>, Option<Bound<'py, PyBytes>>);

/// See `_native.pyi`.
pub type Question = (u64, (String, i64, i16), i16, Vec<(String, i32)>);

pub fn responded(py: Python<'_>, served: Served) -> Responded<'_> {
    match served {
        Served::Response(frame) => (None, Some(PyBytes::new(py, &frame))),
        Served::Waits(number) => (Some(number), None),
        Served::Silent | Served::Closed(_) => (None, None),
    }
}

pub fn question(number: u64, requested: TransactionQuery) -> Question {
    let producer = (requested.transactional_id, requested.producer_id, requested.producer_epoch);
    (number, producer, requested.api_version, requested.partitions)
}
