//! The only place where errors of the core become exceptions of Python.
//!
//! Owns the names of exception classes that Python declares; the variants' texts are the core's.

use pybroker_core::quorum;
use pyo3::{PyErr, import_exception};

import_exception!(pybroker.controller.errors, MetadataLogError);
import_exception!(pybroker.controller.errors, NotControllerError);
import_exception!(pybroker.controller.errors, QuorumError);
import_exception!(pybroker.protocol.errors, MalformedMessage);
import_exception!(pybroker.protocol.errors, UnencodableValue);
import_exception!(pybroker.protocol.errors, UnsupportedVersion);

/// A refusal of the quorum: `NotControllerError` is an answer, the others are bugs or damage.
pub fn quorum_error(error: quorum::QuorumError) -> PyErr {
    match error {
        quorum::QuorumError::NotLeader => NotControllerError::new_err(error.to_string()),
        quorum::QuorumError::Restore(_)
        | quorum::QuorumError::OutOfTurn
        | quorum::QuorumError::Message(_)
        | quorum::QuorumError::Raft(_) => QuorumError::new_err(error.to_string()),
    }
}
