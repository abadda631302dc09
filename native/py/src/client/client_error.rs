//! Converts the client's errors to Python exceptions. The messages are the client's.

use pybroker_client::ClientError;
use pybroker_wire::ErrorCode;
use pyo3::import_exception;
use pyo3::prelude::*;

use crate::client::interrupt::take_raised;

import_exception!(pybroker.client.errors, AuthenticationError);
import_exception!(pybroker.client.errors, BrokerError);
import_exception!(pybroker.client.errors, BufferFullError);
import_exception!(pybroker.client.errors, ClosedError);
import_exception!(pybroker.client.errors, ConnectionLostError);
import_exception!(pybroker.client.errors, DeliveryError);
import_exception!(pybroker.client.errors, NewLeaderError);
import_exception!(pybroker.client.errors, PartitionTruncatedError);
import_exception!(pybroker.client.errors, ProducerFencedError);
import_exception!(pybroker.client.errors, RecordError);
import_exception!(pybroker.client.errors, SerializationError);
import_exception!(pybroker.client.errors, SettingError);
import_exception!(pybroker.client.errors, TransactionAbortableError);
import_exception!(pybroker.client.errors, TransactionAbortedError);
import_exception!(pybroker.client.errors, TransactionFatalError);
import_exception!(pybroker.client.errors, TransactionStateError);
import_exception!(pybroker.client.errors, UnreachableError);
import_exception!(pybroker.client.errors, UnservedApiError);

/// The exception with a note.
fn noted(error: PyErr, text: String) -> PyErr {
    Python::attach(|py| {
        // An exception that accepts no note is raised without it.
        let _ = error.value(py).call_method1("add_note", (text,));
    });
    error
}

/// The exception for an error of the client.
pub fn client_error(error: ClientError) -> PyErr {
    let text = error.to_string();
    client_error_saying(error, text)
}

/// The exception for a failed transaction, by the action that the program has to take (KIP-1050).
fn transaction_failed(code: ErrorCode, fatal: bool, text: String) -> PyErr {
    match code {
        _ if !fatal => TransactionAbortableError::new_err((text, code.0)),
        ErrorCode::PRODUCER_FENCED | ErrorCode::INVALID_PRODUCER_EPOCH => ProducerFencedError::new_err((text, code.0)),
        _ => TransactionFatalError::new_err((text, code.0)),
    }
}

fn client_error_saying(error: ClientError, text: String) -> PyErr {
    match error {
        ClientError::PartlySent { source, .. } if matches!(*source, ClientError::Interrupted) => {
            noted(take_raised(), text)
        }
        ClientError::PartlySent { source, .. } => client_error_saying(*source, text),
        ClientError::Interrupted => take_raised(),
        ClientError::Unreachable { .. } => UnreachableError::new_err(text),
        ClientError::AuthenticationFailed { .. } => AuthenticationError::new_err(text),
        ClientError::Disconnected { .. } | ClientError::Malformed { .. } => ConnectionLostError::new_err(text),
        ClientError::UnsupportedVersion { .. } => UnservedApiError::new_err(text),
        ClientError::Broker { code, .. } | ClientError::UnknownTopic { code, .. } => {
            BrokerError::new_err((text, code.0))
        }
        ClientError::DeliveryTimeout { .. } | ClientError::FlushTimeout { .. } => DeliveryError::new_err(text),
        ClientError::NoTransaction { .. } => TransactionStateError::new_err(text),
        ClientError::TransactionAborted => TransactionAbortedError::new_err(text),
        ClientError::TransactionFailed { code, fatal, .. } => transaction_failed(code, fatal, text),
        ClientError::NewLeader { topic, partition, epoch } => NewLeaderError::new_err((topic, partition, epoch)),
        ClientError::LogTruncated { topic, partition, position, epoch, end_offset, end_epoch } => {
            PartitionTruncatedError::new_err((topic, partition, (position, epoch), (end_offset, end_epoch)))
        }
        ClientError::BufferFull { .. } => BufferFullError::new_err(text),
        ClientError::RecordTooLarge { .. }
        | ClientError::BadRow { .. }
        | ClientError::CorruptBatch { .. }
        | ClientError::Unbuildable { .. }
        | ClientError::UnknownPartition { .. } => RecordError::new_err(text),
        ClientError::BadSetting { .. } | ClientError::BadAddress { .. } | ClientError::BadColumn { .. } => {
            SettingError::new_err(text)
        }
        ClientError::Closed { .. } => ClosedError::new_err(text),
    }
}
