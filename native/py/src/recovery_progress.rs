//! `RecoveryProgress`: how far recoveries have come, which Python looks at while they run.

use std::sync::Arc;

use pybroker_core::storage::RecoveryProgress;
use pyo3::prelude::*;

/// See `_native.pyi`.
#[pyclass(frozen, name = "RecoveryProgress", module = "pybroker._native")]
pub struct PyRecoveryProgress {
    pub inner: Arc<RecoveryProgress>,
}

#[pymethods]
impl PyRecoveryProgress {
    #[new]
    #[pyo3(signature = ())]
    fn new() -> Self {
        Self { inner: Arc::default() }
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}
