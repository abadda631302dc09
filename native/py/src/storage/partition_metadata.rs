//! The topic of a partition's directory, by the topic id in its `partition.metadata`.

use std::path::PathBuf;

use pybroker_storage::partition_metadata;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::log_error;

/// The topic id in a directory, if any, or the error of reading it.
#[derive(IntoPyObject)]
pub enum TopicIdRead<'py> {
    Read(Option<Bound<'py, PyBytes>>),
    Failed(Py<PyBaseException>),
}

/// The topic ids in partitions' directories; see `_native.pyi`.
#[pyfunction]
pub fn read_topic_ids(py: Python<'_>, directories: Vec<PathBuf>) -> Vec<TopicIdRead<'_>> {
    let read: Vec<_> = py.detach(|| directories.iter().map(|directory| partition_metadata::read(directory)).collect());
    let shown = read.into_iter().map(|read| match read {
        Ok(id) => TopicIdRead::Read(id.map(|id| PyBytes::new(py, &id))),
        Err(error) => TopicIdRead::Failed(log_error(error).into_value(py)),
    });
    shown.collect()
}
