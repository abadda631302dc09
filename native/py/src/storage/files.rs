//! Closes the files of many partitions: while they are idle, and for good at the end.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use pybroker_replica::Partition;
use pybroker_storage::{Log, close_all};
use pybroker_sys::file_system::FileSystem;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

use crate::error::{log_error, os_error};
use crate::storage::partition::PyPartition;

/// A file system that can be synced as a whole; see `_native.pyi`.
#[pyclass(frozen, name = "FileSystem", module = "pybroker._native")]
pub struct PyFileSystem {
    inner: FileSystem,
}

#[pymethods]
impl PyFileSystem {
    #[staticmethod]
    #[pyo3(signature = (directory))]
    fn open(directory: PathBuf) -> PyResult<Option<Self>> {
        let opened = FileSystem::open(&directory);
        let opened = opened.map_err(|error| os_error(&error, format!("{}: {error}", directory.display())))?;
        Ok(opened.map(|inner| Self { inner }))
    }
}

/// Closes logs; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (partitions, *, file_system, shared_from, threads))]
pub fn close_logs(
    py: Python<'_>,
    partitions: Vec<PyRef<'_, PyPartition>>,
    file_system: Option<&PyFileSystem>,
    shared_from: usize,
    threads: NonZeroUsize,
) -> Vec<Option<Py<PyBaseException>>> {
    let partitions: Vec<Arc<Partition>> = partitions.iter().map(|partition| Arc::clone(&partition.inner)).collect();
    let file_system = file_system.map(|it| &it.inner);
    let closed = py.detach(|| {
        let logs: Vec<&Log> = partitions.iter().map(|partition| partition.log()).collect();
        close_all(&logs, file_system, shared_from, threads)
    });
    closed.into_iter().map(|closed| Some(log_error(closed.err()?).into_value(py))).collect()
}

/// Closes files of segments; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (partitions, *, most))]
pub fn close_idle_files(py: Python<'_>, partitions: Vec<PyRef<'_, PyPartition>>, most: usize) -> (usize, usize) {
    let partitions: Vec<Arc<Partition>> = partitions.iter().map(|partition| Arc::clone(&partition.inner)).collect();
    py.detach(|| {
        let open: usize = partitions.iter().map(|partition| partition.log().open_files()).sum();
        let mut closed = 0;
        // The first round closes files not used since the last check, the second one the rest.
        for _ in 0..2 {
            for partition in &partitions {
                if open.saturating_sub(closed) <= most {
                    return (open, closed);
                }
                closed += partition.log().close_idle_files();
            }
        }
        (open, closed)
    })
}
