//! A record from a program, prepared for the engine: serialized, its parts checked, its partition chosen.
//!
//! Owns the calls of serializers and of a partitioner function, and the errors about parts that are not bytes.

use pybroker_client::{Destination, NewRecord, now_ms};
use pybroker_record::RecordHeader;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::client::client_error::SerializationError;

/// The program's functions for records.
pub struct Functions {
    pub key_serializer: Option<Py<PyAny>>,
    pub value_serializer: Option<Py<PyAny>>,
    pub partitioner: Option<Py<PyAny>>,
}

/// Checks the topic argument of a program.
pub fn topic_of<'a, 'py>(given: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    given.cast::<PyString>().map_err(|_| match given.repr() {
        Ok(found) => PyTypeError::new_err(format!("topic={found}: must be a str, such as \"orders\"")),
        Err(error) => error,
    })
}

/// Rejects a number that is neither a partition nor -1.
pub fn check_partition(partition: i32) -> PyResult<()> {
    if partition >= -1 {
        return Ok(());
    }
    let text = format!("partition={partition}: must be at least 0, or -1 to have the partitioner choose");
    Err(PyValueError::new_err(text))
}

/// Name and value.
type Header = (Py<PyString>, Option<Py<PyBytes>>);

/// A record that has not been added to a batch.
pub struct Draft {
    pub topic: Py<PyString>,
    key: Option<Py<PyBytes>>,
    value: Option<Py<PyBytes>>,
    headers: Vec<Header>,
    timestamp_ms: i64,
}

impl Draft {
    /// Serializes and checks the parts of a record.
    pub fn new(
        functions: &Functions,
        topic: &Bound<'_, PyString>,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        timestamp_ms: Option<i64>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if timestamp_ms.is_some_and(|time| time < 0) {
            let text = format!("timestamp_ms={}: must be at least 0, or None for now", timestamp_ms.unwrap_or(0));
            return Err(PyValueError::new_err(text));
        }
        let headers = headers.map_or_else(|| Ok(Vec::new()), |headers| headers_of(topic, headers))?;
        Ok(Self {
            key: serialized(topic, "key", key, functions.key_serializer.as_ref())?,
            value: serialized(topic, "value", value, functions.value_serializer.as_ref())?,
            topic: topic.clone().unbind(),
            headers,
            timestamp_ms: timestamp_ms.unwrap_or_else(now_ms),
        })
    }

    /// Calls `look` with the record.
    pub fn with<R>(&self, py: Python<'_>, look: impl FnOnce(&NewRecord<'_>) -> PyResult<R>) -> PyResult<R> {
        let key = self.key.as_ref().map(|part| part.as_bytes(py));
        let value = self.value.as_ref().map(|part| part.as_bytes(py));
        let mut headers: Vec<RecordHeader<'_>> = Vec::new();
        for (name, value) in &self.headers {
            headers.push((name.to_str(py)?.as_bytes(), value.as_ref().map(|value| value.as_bytes(py))));
        }
        look(&NewRecord { timestamp_ms: self.timestamp_ms, key, value, headers: &headers })
    }

    /// The partition that the program's function chooses, if there is one.
    pub fn partition(
        &self,
        py: Python<'_>,
        functions: &Functions,
        destination: &Destination,
        partition: i32,
    ) -> PyResult<i32> {
        let Some(partitioner) = functions.partitioner.as_ref().filter(|_| partition < 0) else {
            return Ok(partition);
        };
        let count = destination.partitions() as i32;
        let (all, available) = (PyList::new(py, 0..count)?, PyList::new(py, destination.available().iter())?);
        let chosen = partitioner.bind(py).call1((self.key.as_ref(), all, available))?;
        match chosen.extract::<i32>() {
            Ok(partition) if (0..count).contains(&partition) => Ok(partition),
            _ => {
                let (topic, found) = (self.topic.to_str(py)?, chosen.repr()?);
                let text = format!("topic {topic:?}: the partitioner returned {found}, not a partition below {count}");
                Err(SerializationError::new_err(text))
            }
        }
    }
}

fn serialized(
    topic: &Bound<'_, PyString>,
    part: &str,
    given: Option<&Bound<'_, PyAny>>,
    serializer: Option<&Py<PyAny>>,
) -> PyResult<Option<Py<PyBytes>>> {
    let (Some(given), Some(serializer)) = (given, serializer) else {
        let advice =
            if serializer.is_none() { format!(": encode it, or give a {part}_serializer") } else { String::new() };
        return bytes_of(given, || Ok(format!("topic {:?}: {part}", topic.to_str()?)), &advice);
    };
    let made = serializer.bind(given.py()).call1((given,)).map_err(|error| {
        if !error.is_instance_of::<PyException>(given.py()) {
            return error;
        }
        let text = format!("topic {:?}: the {part}_serializer failed: {error}", topic.to_string_lossy());
        let failure = SerializationError::new_err(text);
        failure.set_cause(given.py(), Some(error));
        failure
    })?;
    let made = (!made.is_none()).then_some(made);
    bytes_of(made.as_ref(), || Ok(format!("topic {:?}: what the {part}_serializer returns", topic.to_str()?)), "")
}

fn bytes_of(
    part: Option<&Bound<'_, PyAny>>,
    what: impl Fn() -> PyResult<String>,
    advice: &str,
) -> PyResult<Option<Py<PyBytes>>> {
    let Some(part) = part else { return Ok(None) };
    if let Ok(bytes) = part.cast::<PyBytes>() {
        return Ok(Some(bytes.clone().unbind()));
    }
    if let Ok(bytes) = part.cast::<PyByteArray>() {
        return Ok(Some(PyBytes::new(part.py(), &bytes.to_vec()).unbind()));
    }
    let text = format!("{} must be bytes or None, not {}{advice}", what()?, part.get_type().name()?);
    Err(PyTypeError::new_err(text))
}

fn headers_of(topic: &Bound<'_, PyString>, headers: &Bound<'_, PyAny>) -> PyResult<Vec<Header>> {
    if headers.cast::<PyTuple>().is_ok_and(|none| none.is_empty()) {
        return Ok(Vec::new());
    }
    let pairs = match headers.cast::<PyDict>() {
        Ok(pairs) => pairs.items().into_any(),
        Err(_) => headers.clone(),
    };
    let bad = |number: usize, found: &Bound<'_, PyAny>| {
        let topic = topic.to_string_lossy();
        let text = format!("topic {topic:?}: header {number} is {found:?}, not a pair of a name and bytes or None");
        PyTypeError::new_err(text)
    };
    let mut made = Vec::new();
    for (number, pair) in pairs.try_iter()?.enumerate() {
        let pair = pair?;
        let Ok((name, value)) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
            return Err(bad(number, &pair));
        };
        let Ok(name) = name.cast_into::<PyString>() else { return Err(bad(number, &pair)) };
        let value = (!value.is_none()).then_some(value);
        let what = || Ok(format!("topic {:?}: the value of header {:?}", topic.to_str()?, name.to_str()?));
        made.push((name.clone().unbind(), bytes_of(value.as_ref(), what, "")?));
    }
    Ok(made)
}
