//! Reads the batches of a coordinator's topic: its records, and the positions of invalid ones.
//!
//! Owns `RecordTable.decode`. A malformed record affects no other record.

use pybroker_record::{BatchHeader, Batches, EndMarker, Record, RecordError, Records, records_section};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::coordinator::record_type::RecordType;
use crate::error::{MalformedMessage, UnsupportedVersion};

/// A row of a transaction's records, or its end: begin and end in the list of records, producer id and epoch, and whether it
/// was committed; `None` for records.
type Transacted = (usize, usize, i64, i16, Option<bool>);

/// An invalid part: its position in the list of records, first and last offset, the key of a record if only its value is
/// malformed, and the cause.
type Fault<'py> = (usize, i64, i64, Option<Bound<'py, PyAny>>, String);

/// Records, the offset after them, the bytes that they take, how many were skipped, the transactions' rows, and the invalid
/// parts.
pub type Decoded<'py> = (Bound<'py, PyList>, i64, usize, usize, Vec<Transacted>, Vec<Fault<'py>>);

/// The result so far.
pub struct Reading<'a, 'py> {
    py: Python<'py>,
    types: &'a [RecordType],
    check: Option<&'a Py<PyAny>>,
    list: Bound<'py, PyList>,
    skipped: usize,
    transacted: Vec<Transacted>,
    faults: Vec<Fault<'py>>,
}

impl<'a, 'py> Reading<'a, 'py> {
    /// `check` raises for a value that no record may have.
    pub fn new(py: Python<'py>, types: &'a [RecordType], check: Option<&'a Py<PyAny>>) -> Self {
        let list = PyList::empty(py);
        Self { py, types, check, list, skipped: 0, transacted: vec![], faults: vec![] }
    }

    /// Reads the whole batches at the front of a buffer.
    pub fn read(mut self, batches: &[u8], max_bytes: usize) -> PyResult<Decoded<'py>> {
        let (mut next_offset, mut taken) = (-1, 0);
        let mut scratch = Vec::new();
        for batch in Batches::new(batches) {
            let (header, bytes) = match batch {
                Ok(whole) => whole,
                Err(RecordError::Truncated { .. }) if taken > 0 => break,
                Err(error) => return Err(MalformedMessage::new_err(error.to_string())),
            };
            (next_offset, taken) = (header.next_offset(), taken + bytes.len());
            let begin = self.list.len();
            if header.is_control() {
                match EndMarker::parse(&header, bytes) {
                    Ok(Some(marker)) => self.transacted.push(row(&header, begin, begin, Some(marker.commit))),
                    Ok(None) => {}
                    Err(error) => self.fail(&header, header.base_offset, &error),
                }
                continue;
            }
            match records_section(&header, bytes, &mut scratch, max_bytes) {
                Ok(section) => self.read_records(&header, section)?,
                Err(error) => self.fail(&header, header.base_offset, &error),
            }
            if header.is_transactional() {
                self.transacted.push(row(&header, begin, self.list.len(), None));
            }
        }
        Ok((self.list, next_offset, taken, self.skipped, self.transacted, self.faults))
    }

    /// Records that the records of a batch are invalid from an offset on.
    fn fail(&mut self, header: &BatchHeader, first: i64, error: &RecordError) {
        self.faults.push((self.list.len(), first, header.next_offset() - 1, None, error.to_string()));
    }

    fn read_records(&mut self, header: &BatchHeader, section: &[u8]) -> PyResult<()> {
        let mut next = header.base_offset;
        for record in Records::new(section, header.record_count) {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    // The beginning of the next record is unknown.
                    self.fail(header, next, &error);
                    break;
                }
            };
            let offset = header.base_offset + i64::from(record.offset_delta);
            next = offset + 1;
            let mut key = None;
            match self.read_record(&record, &mut key) {
                Ok(Some(value)) => self.list.append((key, value))?,
                Ok(None) => self.skipped += 1,
                Err(error) if is_fault(self.py, &error) => {
                    self.faults.push((self.list.len(), offset, offset, key, error.value(self.py).to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the value of a record, `None` in it for a tombstone; `None` for a type that is not in the table. Sets `key`
    /// as soon as it is read.
    fn read_record(
        &self,
        record: &Record<'_>,
        key: &mut Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Option<Bound<'py, PyAny>>>> {
        let raw = record.key.ok_or_else(|| MalformedMessage::new_err("a record without a key"))?;
        let number = leading_i16(raw)?;
        let Some(kind) = self.types.iter().find(|kind| kind.number == number) else { return Ok(None) };
        *key = Some(kind.key.get().read(self.py, raw, 0, 2, usize::MAX)?.0);
        let Some(raw) = record.value else { return Ok(Some(None)) };
        let (value, _) = kind.value.get().read(self.py, raw, leading_i16(raw)?, 2, usize::MAX)?;
        if let Some(check) = self.check {
            check.call1(self.py, (&value,))?;
        }
        Ok(Some(Some(value)))
    }
}

/// Whether an error is about the bytes of a record; every other error ends the reading.
fn is_fault(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<MalformedMessage>(py) || error.is_instance_of::<UnsupportedVersion>(py)
}

fn row(header: &BatchHeader, begin: usize, end: usize, committed: Option<bool>) -> Transacted {
    (begin, end, header.producer_id, header.producer_epoch, committed)
}

fn leading_i16(bytes: &[u8]) -> PyResult<i16> {
    match bytes.first_chunk() {
        Some(number) => Ok(i16::from_be_bytes(*number)),
        None => Err(MalformedMessage::new_err("a key or value of less than two bytes")),
    }
}
