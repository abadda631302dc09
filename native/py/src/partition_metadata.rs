//! Whose a partition's directory is: by the topic id in its `partition.metadata`.

use std::path::PathBuf;

use pybroker_core::storage::partition_metadata;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::log_error;

/// The topic id that a partition's directory names; see `_native.pyi`.
#[pyfunction]
pub fn read_topic_id(py: Python<'_>, directory: PathBuf) -> PyResult<Option<Bound<'_, PyBytes>>> {
    let found = py.detach(|| partition_metadata::read(&directory)).map_err(log_error)?;
    Ok(found.map(|id| PyBytes::new(py, &id)))
}
