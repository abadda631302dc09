//! `RecoveryProgress`: the progress of recoveries, which Python reads while they run.

use std::sync::Arc;

use pybroker_storage::{Loss, RecoveryProgress};
use pyo3::prelude::*;

/// Cause, bytes, files set aside, text.
type Lost = (&'static str, u64, usize, String);

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

    /// `(log, losses, warnings)` of each log with losses or warnings; see `_native.pyi`.
    fn take_found(&self) -> Vec<(String, Vec<Lost>, Vec<String>)> {
        let found = self.inner.take_found().into_iter();
        let lost = |loss: &Loss| (loss.cause.name(), loss.bytes, loss.set_aside.len(), loss.text());
        found.map(|(log, it)| (log, it.losses.iter().map(lost).collect(), it.warnings)).collect()
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}
