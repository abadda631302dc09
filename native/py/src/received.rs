//! Received records that wait for the program: objects of Python are made of those that it asks for.
//!
//! Owns no behaviour but the objects' making.

use pybroker_core::client;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::record::Record;

/// Records of one partition, in the order of their offsets.
#[pyclass(module = "pybroker._native")]
pub struct Received {
    topic: Py<PyString>,
    inner: client::Received,
}

impl Received {
    pub fn new(py: Python<'_>, inner: client::Received) -> Self {
        Self { topic: PyString::new(py, inner.topic()).unbind(), inner }
    }
}

#[pymethods]
impl Received {
    #[getter]
    fn topic(&self, py: Python<'_>) -> Py<PyString> {
        self.topic.clone_ref(py)
    }

    #[getter]
    fn partition(&self) -> i32 {
        self.inner.index()
    }

    fn __len__(&self) -> usize {
        self.inner.left()
    }

    /// Offset of the next record; `None` when none is left.
    #[getter]
    fn next_offset(&self) -> Option<i64> {
        self.inner.next_offset()
    }

    /// Hands out up to so many records.
    #[pyo3(signature = (most))]
    fn take<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyList>> {
        let partition = self.inner.index();
        let records = self.inner.take(most);
        let records = records.map(|fetched| Record::new(py, self.topic.clone_ref(py), partition, &fetched));
        PyList::new(py, records)
    }

    /// Has the last so many that were handed out be the next again.
    #[pyo3(signature = (count))]
    fn put_back(&mut self, count: usize) {
        self.inner.put_back(count);
    }
}
