//! Lines of text that become records of a producer.
//!
//! Owns no behaviour; calls that may wait release the interpreter lock.

use std::sync::Arc;

use pybroker_client::text::{self, LineFormat, SendError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::client_error::{RecordError, client_error};
use crate::client::native_producer::Producer;

/// Key, value and headers.
type Parsed = (Option<Py<PyBytes>>, Option<Py<PyBytes>>, Vec<(String, Option<Py<PyBytes>>)>);

/// Bytes of key and value, and the error of the record.
type Failure<'py> = (Option<u32>, Option<u32>, Bound<'py, PyAny>);

/// Sends lines to one topic.
#[pyclass(frozen, module = "pybroker._native")]
pub struct LineSender {
    inner: text::LineSender,
}

#[pymethods]
impl LineSender {
    #[new]
    #[pyo3(signature = (
        producer, topic, *, parse_key, parse_headers, key_separator, headers_delimiter, headers_separator,
        headers_key_separator, null_marker, ignore_error
    ))]
    #[allow(clippy::too_many_arguments, reason = "the stub names them")]
    fn new(
        producer: &Bound<'_, Producer>,
        topic: String,
        parse_key: bool,
        parse_headers: bool,
        key_separator: &[u8],
        headers_delimiter: &[u8],
        headers_separator: &[u8],
        headers_key_separator: &[u8],
        null_marker: Option<&[u8]>,
        ignore_error: bool,
    ) -> Self {
        let format = LineFormat {
            parse_key,
            parse_headers,
            key_separator: key_separator.to_vec(),
            headers_delimiter: headers_delimiter.to_vec(),
            headers_separator: headers_separator.to_vec(),
            headers_key_separator: headers_key_separator.to_vec(),
            null_marker: null_marker.map(<[u8]>::to_vec),
            ignore_error,
        };
        Self { inner: text::LineSender::new(Arc::clone(&producer.get().inner), topic, format) }
    }

    /// Sends the lines that end in a block; returns how many.
    #[pyo3(signature = (block, is_end))]
    fn send(&self, py: Python<'_>, block: &[u8], is_end: bool) -> PyResult<usize> {
        py.detach(|| self.inner.send(block, is_end)).map_err(|error| match error {
            SendError::Bad(bad) => RecordError::new_err(bad.detail),
            SendError::Ended(error) => client_error(error),
        })
    }

    /// Parses the lines that end in a block without sending; returns the records, and the error that ended the parsing.
    #[pyo3(signature = (block, is_end))]
    fn parse(&self, py: Python<'_>, block: &[u8], is_end: bool) -> (Vec<Parsed>, Option<String>) {
        let (mut parsed, bytes) = (Vec::new(), |part: &[u8]| PyBytes::new(py, part).unbind());
        let ended = self.inner.parse(block, is_end, |record| {
            let headers = record.headers.iter();
            let headers = headers.map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), value.map(bytes)));
            parsed.push((record.key.map(bytes), record.value.map(bytes), headers.collect()));
        });
        (parsed, ended.err().map(|bad| bad.detail))
    }

    /// Records without an outcome so far.
    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    /// The records that failed since the last call.
    fn take_failures<'py>(&self, py: Python<'py>) -> Vec<Failure<'py>> {
        let failures = self.inner.take_failures().into_iter();
        failures
            .map(|failed| {
                (failed.key, failed.value, client_error(failed.error).into_value(py).into_bound(py).into_any())
            })
            .collect()
    }
}
