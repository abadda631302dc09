//! The text format of records, and the resulting text.
//!
//! Owns no behaviour: the formats are the client's.

use std::collections::HashSet;

use pybroker_client::text::{Decoder, Formatted, RecordFormat as Inner, Shown, Style};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A format.
#[pyclass(frozen, module = "pybroker._native")]
pub struct RecordFormat {
    pub inner: Inner,
}

fn decoder(name: Option<&str>) -> PyResult<Option<Decoder>> {
    let unknown = |name: &str| PyValueError::new_err(format!("{name}: no such decoder"));
    name.map(|name| Decoder::of(name).ok_or_else(|| unknown(name))).transpose()
}

#[pymethods]
impl RecordFormat {
    #[new]
    #[pyo3(signature = (
        *, style, shown, key_separator, line_separator, headers_separator, null_literal, key, value, headers, logs
    ))]
    #[allow(clippy::too_many_arguments, reason = "the stub names them")]
    fn new(
        style: &str,
        shown: HashSet<String>,
        key_separator: &[u8],
        line_separator: &[u8],
        headers_separator: &[u8],
        null_literal: &[u8],
        key: Option<&str>,
        value: Option<&str>,
        headers: Option<&str>,
        logs: bool,
    ) -> PyResult<Self> {
        let has = |part: &str| shown.contains(part);
        let inner = Inner {
            style: match style {
                "text" => Style::Text,
                "json" => Style::Json,
                "nothing" => Style::Nothing,
                other => return Err(PyValueError::new_err(format!("style={other}: must be text, json or nothing"))),
            },
            shown: Shown {
                timestamp: has("timestamp"),
                partition: has("partition"),
                offset: has("offset"),
                delivery: has("delivery"),
                epoch: has("epoch"),
                headers: has("headers"),
                key: has("key"),
                value: has("value"),
            },
            key_separator: key_separator.to_vec(),
            line_separator: line_separator.to_vec(),
            headers_separator: headers_separator.to_vec(),
            null_literal: null_literal.to_vec(),
            key: decoder(key)?,
            value: decoder(value)?,
            headers: decoder(headers)?,
            logs,
        };
        Ok(Self { inner })
    }
}

/// Records of one partition as text.
#[pyclass(frozen, get_all, module = "pybroker._native")]
pub struct FormattedRecords {
    topic: Py<PyString>,
    partition: i32,
    text: Py<PyBytes>,
    log: Py<PyBytes>,
    records: usize,
    leader_epoch: i32,
    failure: Option<(i64, String)>,
}

impl FormattedRecords {
    pub fn new(py: Python<'_>, topic: Py<PyString>, partition: i32, formatted: Formatted) -> Self {
        let Formatted { text, log, records, leader_epoch, failure } = formatted;
        let bytes = |text: &[u8]| PyBytes::new(py, text).unbind();
        let failure = failure.map(|failure| (failure.offset, failure.detail));
        Self { topic, partition, text: bytes(&text), log: bytes(&log), records, leader_epoch, failure }
    }
}
