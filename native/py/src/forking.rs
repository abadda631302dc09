//! Keeps objects of the parent's threads in a forked child: they must never be freed.

use pyo3::prelude::*;

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (kept))]
pub fn keep_forever(kept: Py<PyAny>) {
    std::mem::forget(kept);
}
