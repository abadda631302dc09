//! The only place where errors of the core become exceptions of Python.
//!
//! Owns the names of exception classes that Python declares; the variants' texts are the core's.

use pyo3::import_exception;

import_exception!(pybroker.protocol.errors, MalformedMessage);
import_exception!(pybroker.protocol.errors, UnencodableValue);
import_exception!(pybroker.protocol.errors, UnsupportedVersion);
