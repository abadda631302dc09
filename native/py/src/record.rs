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
    key: Option<Py<PyBytes>>,
    value: Option<Py<PyBytes>>,
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
            key: bytes(record.key),
            value: bytes(record.value),
            headers: headers.collect(),
        }
    }
}
