//! `LogWalk`: the batches of a file one after the other, for `pybroker.cli.dump_log`.
//!
//! Owns the conversion alone. A call returns many batches, so that a large file needs few calls.

use std::path::PathBuf;

use parking_lot::Mutex;
use pybroker_record::{BatchHeader, HEADER_LEN, batch_crc, crc32};
use pybroker_storage::{MessageHead, WalkError, WalkedBatch, read_messages, read_records};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{log_error, os_error};

/// The limit on a decompressed batch: large, as a user inspects the file.
const MOST_BYTES: usize = 1 << 30;

/// The start of the part of a message of format 0 or 1 that its checksum covers.
const CRC32_COVERS: usize = 16;

/// An iteration over a file of batches; see `_native.pyi`.
#[pyclass(frozen, module = "pybroker._native")]
pub struct LogWalk(Mutex<pybroker_storage::LogWalk>);

fn walk_error(error: WalkError) -> PyErr {
    let text = error.to_string();
    match error {
        WalkError::Io { source, .. } => os_error(&source, text),
        WalkError::TooSmall { .. } | WalkError::ShortHeader { .. } => PyValueError::new_err(text),
    }
}

#[pymethods]
impl LogWalk {
    #[staticmethod]
    #[pyo3(signature = (path, limit))]
    fn open(path: PathBuf, limit: u64) -> PyResult<Self> {
        Ok(Self(Mutex::new(pybroker_storage::LogWalk::open(&path, limit).map_err(log_error)?)))
    }

    #[getter]
    fn end(&self) -> u64 {
        self.0.lock().end()
    }

    #[pyo3(signature = (limit, *, with_bytes))]
    fn batches(&self, py: Python<'_>, limit: usize, with_bytes: bool) -> (Vec<FileBatch>, Option<PyErr>) {
        let (batches, error) = py.detach(|| {
            let mut walk = self.0.lock();
            let (mut batches, mut taken) = (Vec::new(), 0);
            while taken < limit {
                match walk.next_batch() {
                    Ok(Some(batch)) => {
                        taken += batch.bytes.len();
                        batches.push(FileBatch::of(&batch, with_bytes));
                    }
                    Ok(None) => break,
                    Err(error) => return (batches, Some(error)),
                }
            }
            (batches, None)
        });
        (batches, error.map(walk_error))
    }

    #[pyo3(signature = (position, limit))]
    fn last_offset_at(&self, position: u64, limit: u64) -> PyResult<Option<i64>> {
        self.0.lock().last_offset_at(position, limit).map_err(walk_error)
    }

    #[pyo3(signature = (position, offset))]
    fn find(&self, py: Python<'_>, position: u64, offset: i64) -> PyResult<Option<FileBatch>> {
        py.detach(|| self.0.lock().find(position, offset).map(|batch| batch.map(|batch| FileBatch::of(&batch, true))))
            .map_err(walk_error)
    }
}

/// A batch of a file; see `_native.pyi`.
#[pyclass(frozen, module = "pybroker._native")]
pub struct FileBatch {
    #[pyo3(get)]
    position: u64,
    #[pyo3(get)]
    size: usize,
    #[pyo3(get)]
    magic: i8,
    #[pyo3(get)]
    is_valid: bool,
    header: Option<BatchHeader>,
    message: Option<MessageHead>,
    bytes: Vec<u8>,
}

/// Offset, timestamp, sequence, key, value, names of the headers.
type FileRecord<'py> =
    (i64, i64, i32, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>, Vec<Bound<'py, PyBytes>>);

/// Offset, timestamp, checksum, whether that is correct, key, value.
type FileMessage<'py> = (i64, i64, u32, bool, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);

/// The fields of the header in a dump, in the order of `_native.pyi`.
type Shown = (i64, i64, i32, i32, i32, i64, i16, i32, i16, i64, i64, u32);

impl FileBatch {
    fn of(batch: &WalkedBatch<'_>, with_bytes: bool) -> Self {
        let (header, message) = (batch.header, batch.message_head());
        let whole = batch.bytes.len() >= HEADER_LEN;
        Self {
            position: batch.position,
            size: batch.bytes.len(),
            magic: batch.magic,
            is_valid: match (header, message) {
                (Some(header), _) => whole && batch_crc(batch.bytes) == header.crc,
                (None, Some(message)) => crc32(&batch.bytes[CRC32_COVERS..]) == message.crc,
                (None, None) => false,
            },
            header,
            message,
            bytes: if with_bytes { batch.bytes.to_vec() } else { Vec::new() },
        }
    }
}

#[pymethods]
impl FileBatch {
    #[pyo3(signature = ())]
    fn header(&self) -> Option<Shown> {
        let header = self.header?;
        Some((
            header.base_offset,
            header.base_offset.wrapping_add(i64::from(header.last_offset_delta)),
            header.record_count,
            header.base_sequence,
            header.last_sequence(),
            header.producer_id,
            header.producer_epoch,
            header.partition_leader_epoch,
            header.attributes,
            header.base_timestamp,
            header.max_timestamp,
            header.crc,
        ))
    }

    #[pyo3(signature = ())]
    fn message(&self) -> Option<(i64, i8, i64, u32)> {
        self.message.map(|message| (message.offset, message.attributes, message.timestamp, message.crc))
    }

    #[pyo3(signature = ())]
    fn messages<'py>(&self, py: Python<'py>) -> (Vec<FileMessage<'py>>, Option<PyErr>) {
        let mut messages = Vec::new();
        let bytes = |part: Option<&[u8]>| part.map(|part| PyBytes::new(py, part));
        let read = read_messages(&self.bytes, MOST_BYTES, |message| {
            let (key, value) = (bytes(message.key), bytes(message.value));
            messages.push((message.offset, message.timestamp, message.crc, message.is_valid, key, value));
        });
        (messages, read.err().map(|error| PyValueError::new_err(error.to_string())))
    }

    #[pyo3(signature = ())]
    fn records<'py>(&self, py: Python<'py>) -> (Vec<FileRecord<'py>>, Option<PyErr>) {
        let Some(header) = self.header else { return (Vec::new(), None) };
        let mut records = Vec::new();
        let bytes = |part: Option<&[u8]>| part.map(|part| PyBytes::new(py, part));
        let read = read_records(&header, &self.bytes, MOST_BYTES, |record| {
            let headers = record.headers.iter().map(|name| PyBytes::new(py, name)).collect();
            let (key, value) = (bytes(record.key), bytes(record.value));
            records.push((record.offset, record.timestamp, record.sequence, key, value, headers));
        });
        (records, read.err().map(PyValueError::new_err))
    }
}
