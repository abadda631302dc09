//! Whose a partition's directory is: by the topic id in its `partition.metadata`.

use std::path::{Path, PathBuf};

use pybroker_core::storage::{LogError, partition_metadata};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::log_error;

/// Ties a partition's directory to its topic's id, or refuses one that belongs to another topic of the same name.
pub fn claim(path: &Path, id: &[u8; 16]) -> Result<(), LogError> {
    match partition_metadata::read(path)? {
        None => partition_metadata::write(path, id),
        Some(found) if found == *id => Ok(()),
        Some(_) => Err(LogError::Corrupt {
            path: path.to_owned(),
            reason: "partition.metadata names another topic id: the directory belongs to a topic deleted since".into(),
        }),
    }
}

/// The topic id that a partition's directory names; see `_native.pyi`.
#[pyfunction]
pub fn read_topic_id(py: Python<'_>, directory: PathBuf) -> PyResult<Option<Bound<'_, PyBytes>>> {
    let found = py.detach(|| partition_metadata::read(&directory)).map_err(log_error)?;
    Ok(found.map(|id| PyBytes::new(py, &id)))
}
