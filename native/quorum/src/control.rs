//! Control batches of the metadata log: records for the quorum itself, each with a type.
//!
//! Owns the key of such a record (Kafka's `ControlRecordType`: a version and a type) and the batch around the
//! records. Must not know the content of values: Python declares those messages.

use pybroker_record::{HEADER_LEN, Records};

use crate::batch::{BatchError, CONTROL, begin, checked_header, finish, put_record};

const KEY_LEN: usize = 4;

/// Builds one control batch of records, each with its type and value.
pub fn build_control(records: &[(i16, &[u8])], timestamp: i64) -> Vec<u8> {
    let mut batch = begin(records.iter().map(|(_, value)| value.len() + 32).sum());
    for (delta, (kind, value)) in records.iter().enumerate() {
        put_record(&mut batch, delta, Some(&key(*kind)), value);
    }
    finish(&mut batch, records.len(), timestamp, CONTROL);
    batch
}

/// Parses and checks the control batch at the start of `buffer`. Returns type and value of each record.
///
/// # Errors
/// `Short` and `Corrupt`. The latter also for a batch without control records.
pub fn parse_control(buffer: &[u8]) -> Result<Vec<(i16, &[u8])>, BatchError> {
    let corrupt = |what: &str| BatchError::Corrupt { at: 0, what: what.to_owned() };
    let header = checked_header(buffer, 0)?;
    if !header.is_control() {
        return Err(corrupt("it is none of control records"));
    }
    let mut found = Vec::new();
    for record in Records::new(&buffer[HEADER_LEN..header.size()], header.record_count) {
        let record = record.map_err(|error| corrupt(&error.to_string()))?;
        let (Some(key), Some(value)) = (record.key, record.value) else {
            return Err(corrupt("a control record has no key or no value"));
        };
        let Some(&[_, _, high, low]) = key.first_chunk::<KEY_LEN>() else {
            return Err(corrupt("the key of a control record is cut short"));
        };
        found.push((i16::from_be_bytes([high, low]), value));
    }
    Ok(found)
}

/// Returns the key of a record: its format version, then the type.
fn key(kind: i16) -> [u8; KEY_LEN] {
    let [high, low] = kind.to_be_bytes();
    [0, 0, high, low]
}

#[cfg(test)]
mod tests {
    use super::{build_control, parse_control};
    use crate::batch::{self, BatchError};

    #[test]
    fn what_is_built_is_parsed_with_its_types() {
        let built = build_control(&[(3, b"head"), (6, b"")], 7);
        assert_eq!(parse_control(&built).unwrap(), [(3, &b"head"[..]), (6, b"")]);
        let (batches, size) = batch::parse(&built).unwrap();
        assert!(batches[0].is_control && size == built.len() && batches[0].last_offset == 1);
    }

    #[test]
    fn every_cut_and_every_changed_byte_of_what_the_checksum_covers_is_refused() {
        let built = build_control(&[(3, b"head")], 7);
        for cut in 0..built.len() {
            assert_eq!(parse_control(&built[..cut]), Err(BatchError::Short { at: 0 }));
        }
        for at in 17..built.len() {
            let mut damaged = built.clone();
            damaged[at] ^= 1;
            assert!(parse_control(&damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_batch_of_metadata_is_none_of_control_records() {
        assert!(matches!(parse_control(&batch::build_records(&[b"a"], 0)), Err(BatchError::Corrupt { .. })));
    }
}
