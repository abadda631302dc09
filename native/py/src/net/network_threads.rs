//! Changes to running sockets: the number of threads, and closing listeners.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::net::handle::PyDataPlane;

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, listener))]
fn unlisten(py: Python<'_>, data_plane: &PyDataPlane, listener: &str) -> bool {
    py.detach(|| data_plane.inner.unlisten(listener))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane))]
fn network_threads(py: Python<'_>, data_plane: &PyDataPlane) -> usize {
    py.detach(|| data_plane.inner.network_threads())
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, count))]
fn set_network_threads(py: Python<'_>, data_plane: &PyDataPlane, count: usize) -> PyResult<()> {
    py.detach(|| data_plane.inner.set_network_threads(count)).map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Registers the functions of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(unlisten, m)?)?;
    m.add_function(wrap_pyfunction!(network_threads, m)?)?;
    m.add_function(wrap_pyfunction!(set_network_threads, m)?)
}
