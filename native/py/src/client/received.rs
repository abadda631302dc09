//! Received records that wait for the program: Python objects are created only for records that the program takes.
//!
//! Owns only the creation of the objects.

use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::client::record::Record;
use crate::client::record_format::{FormattedRecords, RecordFormat};

/// Records of one partition, in the order of their offsets.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Received {
    topic: Py<PyString>,
    partition: i32,
    inner: Mutex<pybroker_client::Received>,
}

impl Received {
    pub fn new(py: Python<'_>, inner: pybroker_client::Received) -> Self {
        let (topic, partition) = (PyString::new(py, inner.topic()).unbind(), inner.index());
        Self { topic, partition, inner: Mutex::new(inner) }
    }

    /// Returns the locked records, or an error if another thread has the lock. The lock is held while objects are
    /// created, which may run other Python code.
    fn locked(&self) -> PyResult<MutexGuard<'_, pybroker_client::Received>> {
        self.inner.try_lock().ok_or_else(being_taken)
    }
}

fn being_taken() -> PyErr {
    PyRuntimeError::new_err("the records are being taken by another thread")
}

#[pymethods]
impl Received {
    #[getter]
    fn topic(&self, py: Python<'_>) -> Py<PyString> {
        self.topic.clone_ref(py)
    }

    #[getter]
    fn partition(&self) -> i32 {
        self.partition
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.locked()?.left())
    }

    /// Offset of the next record; `None` if none is left.
    #[getter]
    fn next_offset(&self) -> PyResult<Option<i64>> {
        Ok(self.locked()?.next_offset())
    }

    /// Returns at most `most` records.
    #[pyo3(signature = (most))]
    fn take<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyList>> {
        let mut inner = self.locked()?;
        let records = inner.take(most);
        let records = records.map(|fetched| Record::new(py, self.topic.clone_ref(py), self.partition, &fetched));
        PyList::new(py, records)
    }

    /// Returns at most `most` records as text.
    #[pyo3(signature = (layout, most, max_bytes))]
    fn format(
        &self,
        py: Python<'_>,
        layout: &Bound<'_, RecordFormat>,
        most: usize,
        max_bytes: usize,
    ) -> PyResult<FormattedRecords> {
        let (format, inner) = (&layout.get().inner, &self.inner);
        let formatted = py.detach(|| inner.try_lock().map(|mut inner| format.write(&mut inner, most, max_bytes)));
        let formatted = formatted.ok_or_else(being_taken)?;
        Ok(FormattedRecords::new(py, self.topic.clone_ref(py), self.partition, formatted))
    }

    /// Puts the last `count` taken records back: the next `take` returns them again.
    #[pyo3(signature = (count))]
    fn put_back(&self, count: usize) -> PyResult<()> {
        self.locked()?.put_back(count);
        Ok(())
    }
}
