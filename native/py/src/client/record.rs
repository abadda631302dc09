//! A consumed record in Python: key and value are copied once, when a program takes records one by one.
//!
//! Owns the `repr` of a record.

use pybroker_client::FetchedRecord;
use pybroker_record::Headers;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// One consumed record.
#[pyclass(frozen, get_all, freelist = 1024, module = "pybroker._native")]
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

/// The most bytes of a key or a value in a `repr`.
const SHOWN: usize = 64;

#[pymethods]
impl Record {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Self { partition, offset, timestamp_ms, .. } = self;
        let topic = self.topic.bind(py).repr()?;
        let (key, value) = (shown(py, self.key.as_ref())?, shown(py, self.value.as_ref())?);
        let headers = match self.headers.len() {
            0 => String::new(),
            _ => {
                let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
                format!(", headers={names:?}")
            }
        };
        Ok(format!(
            "Record(topic={topic}, partition={partition}, offset={offset}, timestamp_ms={timestamp_ms}, key={key}, \
             value={value}{headers})"
        ))
    }

    /// The same record with the deserialized key and value.
    #[pyo3(signature = (key, value))]
    fn with_parts(&self, py: Python<'_>, key: Option<Py<PyAny>>, value: Option<Py<PyAny>>) -> Self {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.as_ref().map(|value| value.clone_ref(py))));
        let Self { partition, offset, timestamp_ms, leader_epoch, .. } = *self;
        let topic = self.topic.clone_ref(py);
        Self { topic, partition, offset, timestamp_ms, leader_epoch, key, value, headers: headers.collect() }
    }
}

/// The beginning of a key or a value as its `repr`, and its length if it is cut. Deserializers may have returned any object.
fn shown(py: Python<'_>, part: Option<&Py<PyAny>>) -> PyResult<String> {
    let Some(part) = part.map(|part| part.bind(py)) else { return Ok("None".to_owned()) };
    let Ok(bytes) = part.cast::<PyBytes>() else {
        let text = part.repr()?.to_string();
        let beginning: String = text.chars().take(SHOWN).collect();
        return Ok(if beginning.len() < text.len() { format!("{beginning}...") } else { text });
    };
    let bytes = bytes.as_bytes();
    let beginning = PyBytes::new(py, &bytes[..bytes.len().min(SHOWN)]).repr()?;
    Ok(if bytes.len() <= SHOWN { beginning.to_string() } else { format!("{beginning}... ({} bytes)", bytes.len()) })
}

impl Record {
    pub fn new(py: Python<'_>, topic: Py<PyString>, partition: i32, fetched: &FetchedRecord<'_>) -> Self {
        let bytes = |part: Option<&[u8]>| part.map(|part| PyBytes::new(py, part).unbind());
        let FetchedRecord { offset, timestamp_ms, leader_epoch, record, timestamp_type: _ } = fetched;
        let headers = Headers::new(record).map_while(Result::ok);
        let headers = headers.map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), bytes(value)));
        Self {
            topic,
            partition,
            offset: *offset,
            timestamp_ms: *timestamp_ms,
            leader_epoch: leader_epoch.0,
            key: bytes(record.key).map(Py::into_any),
            value: bytes(record.value).map(Py::into_any),
            headers: headers.collect(),
        }
    }
}
