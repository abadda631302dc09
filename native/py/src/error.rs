//! Converts native errors to Python exceptions; `client_error` has those of the client.
//!
//! Owns the names of exception classes that Python declares; the messages are native.

use std::io;

use pybroker_net::ListenError;
use pybroker_quorum::QuorumError as QuorumRefusal;
use pybroker_record::InvalidBatch;
use pybroker_replica::{NotAppended, NotBecome};
use pybroker_storage::{AppendError, CleanError, LogError, MoveError, ReadError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(pybroker.controller.errors, MetadataLogError);
import_exception!(pybroker.controller.errors, NotControllerError);
import_exception!(pybroker.controller.errors, QuorumError);
import_exception!(pybroker.protocol.errors, MalformedMessage);
import_exception!(pybroker.protocol.errors, TooManyElements);
import_exception!(pybroker.protocol.errors, UnencodableValue);
import_exception!(pybroker.protocol.errors, UnsupportedVersion);
import_exception!(pybroker.storage.errors, BatchTooLargeError);
import_exception!(pybroker.storage.errors, CleaningEndedError);
import_exception!(pybroker.storage.errors, CoordinatorFencedError);
import_exception!(pybroker.storage.errors, InvalidProducerEpochError);
import_exception!(pybroker.storage.errors, InvalidTxnStateError);
import_exception!(pybroker.storage.errors, MoveEndedError);
import_exception!(pybroker.storage.errors, NotEnoughReplicasError);
import_exception!(pybroker.storage.errors, NotLeaderError);

/// `OSError(errno, text)`, so that callers distinguish causes by errno and never by text.
pub fn os_error(error: &io::Error, text: String) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), text))
}

/// A log that cannot be opened, flushed, closed or deleted. A file whose content does not match its name is a `ValueError`.
pub fn log_error(error: LogError) -> PyErr {
    let text = error.to_string();
    match error {
        LogError::Io { source, .. } | LogError::Exhausted { source, .. } => os_error(&source, text),
        LogError::Corrupt { .. } => PyValueError::new_err(text),
        LogError::Offline { .. } => PyOSError::new_err((EIO, text)),
    }
}

/// A failed change of role. An invalid change is a `ValueError`.
pub fn not_become(error: NotBecome) -> PyErr {
    match error {
        NotBecome::Refused(refused) => PyValueError::new_err(refused.to_string()),
        NotBecome::Log(error) => log_error(error),
    }
}

/// A compaction pass that did not complete.
pub fn clean_error(error: CleanError) -> PyErr {
    match error {
        CleanError::Aborted => CleaningEndedError::new_err(error.to_string()),
        CleanError::Log(error) => log_error(error),
    }
}

/// A move that did not complete. An `OSError` names the file: two directories are concerned, and one may be damaged.
pub fn move_error(error: MoveError) -> PyErr {
    match error {
        MoveError::Ended => MoveEndedError::new_err(error.to_string()),
        MoveError::Log(LogError::Io { path, source } | LogError::Exhausted { path, source }) => {
            PyOSError::new_err((source.raw_os_error(), source.to_string(), path))
        }
        MoveError::Log(error) => log_error(error),
    }
}

/// A failed offset look-up.
pub fn read_error(error: ReadError) -> PyErr {
    let text = error.to_string();
    match error {
        ReadError::Io { source, .. } | ReadError::Exhausted { source, .. } => os_error(&source, text),
        ReadError::Corrupt { .. } => PyOSError::new_err((EIO, text)),
        ReadError::OffsetOutOfRange { .. } => PyValueError::new_err(text),
    }
}

/// A rejected append of this node's own batches. They break no rule, so every error but I/O is a `ValueError`.
pub fn append_error(error: AppendError) -> PyErr {
    let text = error.to_string();
    match error {
        AppendError::Io { source, .. } | AppendError::Exhausted { source, .. } => os_error(&source, text),
        AppendError::Offline { .. } => PyOSError::new_err((EIO, text)),
        AppendError::Invalid(_)
        | AppendError::TooLarge { .. }
        | AppendError::OutOfOrderSequence { .. }
        | AppendError::InvalidProducerEpoch { .. }
        | AppendError::CoordinatorFenced { .. }
        | AppendError::InvalidTxnState { .. }
        | AppendError::NotVerified { .. }
        | AppendError::LeaderFenced { .. }
        | AppendError::UnexpectedOffset { .. } => PyValueError::new_err(text),
    }
}

/// A rejected append of a coordinator's batches to a partition.
pub fn not_appended(error: NotAppended) -> PyErr {
    match error {
        NotAppended::NotLeader => NotLeaderError::new_err("this broker does not lead the partition"),
        NotAppended::NotEnoughReplicas { in_sync, wanted } => {
            NotEnoughReplicasError::new_err(format!("{in_sync} replicas are in sync, min.insync.replicas is {wanted}"))
        }
        NotAppended::Log(AppendError::Invalid(InvalidBatch::TooLarge { size, limit })) => {
            BatchTooLargeError::new_err(format!("a batch of {size} bytes, at most {limit} are taken"))
        }
        NotAppended::Log(error @ AppendError::TooLarge { .. }) => BatchTooLargeError::new_err(error.to_string()),
        NotAppended::Log(error @ AppendError::InvalidProducerEpoch { .. }) => {
            InvalidProducerEpochError::new_err(error.to_string())
        }
        NotAppended::Log(error @ AppendError::CoordinatorFenced { .. }) => {
            CoordinatorFencedError::new_err(error.to_string())
        }
        NotAppended::Log(error @ (AppendError::InvalidTxnState { .. } | AppendError::NotVerified { .. })) => {
            InvalidTxnStateError::new_err(error.to_string())
        }
        NotAppended::Log(error) => append_error(error),
    }
}

/// A rejection by the quorum: `NotControllerError` is a normal result, the others are bugs or damage.
pub fn quorum_error(error: QuorumRefusal) -> PyErr {
    let text = error.to_string();
    match error {
        QuorumRefusal::NotLeader => NotControllerError::new_err(text),
        QuorumRefusal::Restore(_)
        | QuorumRefusal::ChangePending
        | QuorumRefusal::Message(_)
        | QuorumRefusal::Raft(_) => QuorumError::new_err(text),
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

/// EIO: the code for a device that has failed before.
const EIO: i32 = 5;
