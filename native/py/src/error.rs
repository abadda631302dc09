//! The only place where errors of the core become exceptions of Python.
//!
//! Owns the names of exception classes that Python declares; the variants' texts are the core's.

use std::io;

use pybroker_core::net::ListenError;
use pybroker_core::storage::{LogError, ReadError};
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::import_exception;

import_exception!(pybroker.protocol.errors, MalformedMessage);
import_exception!(pybroker.protocol.errors, UnencodableValue);
import_exception!(pybroker.protocol.errors, UnsupportedVersion);

/// `OSError(errno, text)`, so that callers tell causes apart by errno and never by text.
pub fn os_error(error: &io::Error, text: String) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), text))
}

/// A log that cannot be opened, flushed, closed or deleted. A file that is not what its name says is a `ValueError`.
pub fn log_error(error: LogError) -> PyErr {
    let text = error.to_string();
    match error {
        LogError::Io { source, .. } => os_error(&source, text),
        LogError::Corrupt { .. } => PyValueError::new_err(text),
        LogError::Offline { .. } => PyOSError::new_err((libc_eio(), text)),
    }
}

/// A look-up that failed.
pub fn read_error(error: ReadError) -> PyErr {
    let text = error.to_string();
    match error {
        ReadError::Io { source, .. } => os_error(&source, text),
        ReadError::OffsetOutOfRange { .. } => PyValueError::new_err(text),
    }
}

/// A listener that cannot be bound.
pub fn listen_error(error: ListenError) -> PyErr {
    let text = error.to_string();
    match error {
        ListenError::Resolve { source, .. }
        | ListenError::Bind { source, .. }
        | ListenError::Congestion { source, .. } => os_error(&source, text),
        ListenError::Stopped => PyOSError::new_err(text),
    }
}

/// EIO: what an earlier failure of the device is reported as.
fn libc_eio() -> i32 {
    5
}
