//! A look for events without sleep.

use std::time::Duration;

use pyo3::prelude::*;

use crate::data_plane::PyDataPlane;
use crate::events::into_python;

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, limit, wait_us))]
fn poll_events(py: Python<'_>, data_plane: &PyDataPlane, limit: usize, wait_us: u64) -> PyResult<Vec<Py<PyAny>>> {
    let events = data_plane.inner.events();
    let come = py.detach(|| events.look(Duration::from_micros(wait_us)));
    if come { events.drain(limit).into_iter().map(|event| into_python(py, event)).collect() } else { Ok(Vec::new()) }
}

/// Adds what this file has to the module.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(poll_events, m)?)
}
