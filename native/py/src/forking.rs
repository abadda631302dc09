//! What a forked child does with objects of its parent's threads: it never frees them.

use pyo3::prelude::*;

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (kept))]
pub fn keep_forever(kept: Py<PyAny>) {
    std::mem::forget(kept);
}
