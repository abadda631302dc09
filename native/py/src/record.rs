//! A consumed record as Python sees it: key and value copied once, when a program asks for records one by one.

use pybroker_core::client::FetchedRecord;
use pybroker_core::record::Headers;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// One record as a program sees it.
#[pyclass(frozen, get_all, module = "pybroker._native")]
pub struct Record {
    topic: Py<PyString>,
    partition: i32,
    offset: i64,
    timestamp_ms: i64,
    leader_epoch: i32,
    key: Option<Py<PyAny>>,
    value: Option<Py<PyAny>>,
    headers: Vec<(String, Option<Py<PyBytes>>)>,
}

impl Record {
    pub fn new(py: Python<'_>, topic: Py<PyString>, partition: i32, fetched: &FetchedRecord<'_>) -> Self {
        let bytes = |part: Option<&[u8]>| part.map(|part| PyBytes::new(py, part).unbind());
        let FetchedRecord { offset, timestamp_ms, leader_epoch, record } = fetched;
        let headers = Headers::new(record).map_while(Result::ok);
        let headers = headers.map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), bytes(value)));
        Self {
            topic,
            partition,
            offset: *offset,
            timestamp_ms: *timestamp_ms,
            leader_epoch: *leader_epoch,
            key: bytes(record.key).map(Py::into_any),
            value: bytes(record.value).map(Py::into_any),
            headers: headers.collect(),
        }
    }
}

#[pymethods]
impl Record {
    /// The same record with what deserializers made of its key and value.
    #[pyo3(signature = (key, value))]
    fn with_parts(&self, py: Python<'_>, key: Option<Py<PyAny>>, value: Option<Py<PyAny>>) -> Self {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.as_ref().map(|value| value.clone_ref(py))));
        let Self { partition, offset, timestamp_ms, leader_epoch, .. } = *self;
        let topic = self.topic.clone_ref(py);
        Self { topic, partition, offset, timestamp_ms, leader_epoch, key, value, headers: headers.collect() }
    }
}
