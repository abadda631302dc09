//! `<offset>.snapshot`: the producer state at an offset, in Kafka's binary schema.
//!
//! ```text
//! version int16 = 1 | crc uint32 (CRC-32C of all that follows) | count int32 | count times:
//!   producer_id int64, epoch int16, last_sequence int32, last_offset int64, offset_delta int32, timestamp int64,
//!   coordinator_epoch int32, current_txn_first_offset int64
//! ```
//! A producer has one entry for each of its last batches, oldest first, so that a retry of each is recognised after a
//! restart. Kafka writes only the last batch. If it reads several entries of one id, it keeps the later one
//! (`ProducerStateManager.loadProducerEntry`).

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::LogError;
use crate::directory::checkpoint::replace_file;
use crate::directory::log_dir::{LogHome, SNAPSHOT_SUFFIX, parse_segment_file_name, segment_file_name};
use crate::producer::producer_state::{BatchMetadata, ProducerEntry, ProducerStates};
use pybroker_record::crc32c;
use pybroker_sys::file;

const VERSION: i16 = 1;
const CRC_AT: usize = 2;
const ENTRIES_AT: usize = 6;
const ENTRY_BYTES: usize = 46;

/// Writes the snapshot of `states` at its end offset.
pub(crate) fn write(home: &LogHome, states: &ProducerStates) -> Result<(), LogError> {
    replace_file(&home.segment_file(states.end_offset(), SNAPSHOT_SUFFIX), &encode(states), false)
}

/// Reads the snapshot at `offset`.
pub(crate) fn read(directory: &Path, offset: i64) -> Result<ProducerStates, LogError> {
    let path = directory.join(segment_file_name(offset, SNAPSHOT_SUFFIX));
    let bytes = file::read(&path).map_err(LogError::io(&path))?;
    match decode(&bytes) {
        Ok(entries) => Ok(ProducerStates::restored(entries, offset)),
        Err(reason) => Err(LogError::Corrupt { path, reason: reason.to_owned() }),
    }
}

/// Returns the offsets of the snapshots in a directory, ascending.
pub(crate) fn offsets(directory: &Path) -> Result<Vec<i64>, LogError> {
    let mut offsets = Vec::new();
    for entry in file::list(directory).map_err(LogError::io(directory))? {
        let name = entry.map_err(LogError::io(directory))?.file_name();
        offsets.extend(name.to_str().and_then(|name| parse_segment_file_name(name, SNAPSHOT_SUFFIX)));
    }
    offsets.sort_unstable();
    Ok(offsets)
}

/// Removes the snapshot at `offset`, if it exists.
pub(crate) fn remove(directory: &Path, offset: i64) {
    let _ = file::remove(&directory.join(segment_file_name(offset, SNAPSHOT_SUFFIX)));
}

/// Encodes the snapshot of `states`.
#[must_use]
pub fn encode(states: &ProducerStates) -> Vec<u8> {
    let count: usize = states.iter().map(|(_, entry)| entry.batches().len().max(1)).sum();
    let mut out = Vec::with_capacity(ENTRIES_AT + 4 + count * ENTRY_BYTES);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(count as i32).to_be_bytes());
    for (id, entry) in states.iter() {
        let Some((last, earlier)) = entry.batches().split_last() else {
            put_entry(&mut out, id, entry, BatchMetadata { timestamp: entry.last_timestamp, ..BatchMetadata::NONE });
            continue;
        };
        earlier.iter().for_each(|batch| put_entry(&mut out, id, entry, *batch));
        // Expiry uses the timestamp of a marker that followed the batch.
        put_entry(&mut out, id, entry, BatchMetadata { timestamp: entry.last_timestamp, ..*last });
    }
    let crc = crc32c(&out[ENTRIES_AT..]);
    out[CRC_AT..ENTRIES_AT].copy_from_slice(&crc.to_be_bytes());
    out
}

fn put_entry(out: &mut Vec<u8>, id: i64, entry: &ProducerEntry, batch: BatchMetadata) {
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&entry.epoch.to_be_bytes());
    out.extend_from_slice(&batch.last_sequence.to_be_bytes());
    out.extend_from_slice(&batch.last_offset.to_be_bytes());
    out.extend_from_slice(&batch.offset_delta.to_be_bytes());
    out.extend_from_slice(&batch.timestamp.to_be_bytes());
    out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&entry.current_txn_first_offset.to_be_bytes());
}

/// Decodes the producers of a snapshot. If an id has several entries, keeps the batches of the last epoch, and the
/// other fields of the last entry.
///
/// # Errors
/// The problem, as text.
pub fn decode(bytes: &[u8]) -> Result<FxHashMap<i64, ProducerEntry>, &'static str> {
    let (head, rest) = bytes.split_at_checked(ENTRIES_AT + 4).ok_or("shorter than its header")?;
    if head[..CRC_AT] != VERSION.to_be_bytes() {
        return Err("unknown version");
    }
    if head[CRC_AT..ENTRIES_AT] != crc32c(&bytes[ENTRIES_AT..]).to_be_bytes() {
        return Err("the checksum does not match");
    }
    let count = Fields(&head[ENTRIES_AT..]).int32();
    if usize::try_from(count).ok().and_then(|count| count.checked_mul(ENTRY_BYTES)) != Some(rest.len()) {
        return Err("the length does not match the count");
    }
    let mut producers: FxHashMap<i64, ProducerEntry> = FxHashMap::default();
    for (id, entry) in rest.chunks_exact(ENTRY_BYTES).map(decode_entry) {
        producers.entry(id).and_modify(|known| *known = known.followed_by(&entry)).or_insert(entry);
    }
    Ok(producers)
}

fn decode_entry(bytes: &[u8]) -> (i64, ProducerEntry) {
    let mut fields = Fields(bytes);
    let id = fields.int64();
    let mut entry = ProducerEntry::new(fields.int16());
    let batch = BatchMetadata {
        last_sequence: fields.int32(),
        last_offset: fields.int64(),
        offset_delta: fields.int32(),
        timestamp: fields.int64(),
    };
    entry.coordinator_epoch = fields.int32();
    entry.current_txn_first_offset = fields.int64();
    entry.last_timestamp = batch.timestamp;
    if batch.last_offset >= 0 {
        entry.remember(batch);
    }
    (id, entry)
}

/// Big-endian fields of a slice whose length has been checked.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        if let Some((head, tail)) = self.0.split_at_checked(N) {
            field.copy_from_slice(head);
            self.0 = tail;
        }
        field
    }

    fn int16(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }

    fn int32(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn int64(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn states() -> ProducerStates {
        let mut known = ProducerEntry::new(3);
        known.remember(BatchMetadata { last_sequence: 6, last_offset: 9, offset_delta: 2, timestamp: 99 });
        known.remember(BatchMetadata { last_sequence: 7, last_offset: 10, offset_delta: 0, timestamp: 100 });
        known.last_timestamp = 100;
        ProducerStates::restored([(5, known), (6, ProducerEntry::new(1))], 11)
    }

    #[test]
    fn a_snapshot_keeps_the_last_batches_of_each_producer() {
        let dir = tempfile::tempdir().unwrap();
        write(&LogHome::new(dir.path()), &states()).unwrap();
        let read = read(dir.path(), 11).unwrap();
        let entry = read.get(5).unwrap();
        assert_eq!((entry.epoch, entry.last_timestamp), (3, 100));
        assert_eq!(entry.batches(), states().get(5).unwrap().batches());
        assert_eq!(entry.batches().len(), 2);
        assert_eq!(read.get(6).unwrap().batches(), []);
        assert_eq!(read.end_offset(), 11);
        assert_eq!(offsets(dir.path()).unwrap(), [11]);
    }

    #[test]
    fn the_last_entry_of_an_id_says_all_but_its_earlier_batches() {
        let batch = |n: i32| BatchMetadata { last_sequence: n, last_offset: n.into(), offset_delta: 0, timestamp: 1 };
        let of_epoch = |epoch: i16, numbers: std::ops::Range<i32>| {
            let mut entry = ProducerEntry::new(epoch);
            entry.last_timestamp = 1;
            numbers.for_each(|n| entry.remember(batch(n)));
            entry
        };
        let old = of_epoch(1, 0..3);
        assert_eq!(old.followed_by(&of_epoch(1, 3..4)), of_epoch(1, 0..4));
        assert_eq!(old.followed_by(&of_epoch(1, 3..7)), of_epoch(1, 2..7), "five at most");
        assert_eq!(old.followed_by(&of_epoch(2, 3..4)), of_epoch(2, 3..4));
        assert_eq!(old.followed_by(&of_epoch(1, 3..3)), of_epoch(1, 0..0));
        // Kafka's own files have one entry per id.
        let states = ProducerStates::restored([(5, of_epoch(1, 0..5))], 9);
        let bytes = encode(&states);
        let entries: Vec<(i64, ProducerEntry)> =
            bytes[ENTRIES_AT + 4..].chunks_exact(ENTRY_BYTES).map(decode_entry).collect();
        assert_eq!(entries.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [5; 5]);
        assert_eq!(entries.last().unwrap().1, of_epoch(1, 4..5), "Kafka takes the last");
        assert_eq!(decode(&bytes).unwrap()[&5], of_epoch(1, 0..5));
    }

    #[test]
    fn an_open_transaction_and_its_coordinator_survive() {
        let mut open = ProducerEntry::new(3);
        open.remember(BatchMetadata { last_sequence: 7, last_offset: 10, offset_delta: 0, timestamp: 100 });
        (open.current_txn_first_offset, open.coordinator_epoch) = (8, 5);
        let dir = tempfile::tempdir().unwrap();
        write(&LogHome::new(dir.path()), &ProducerStates::restored([(5, open)], 11)).unwrap();
        let read = read(dir.path(), 11).unwrap();
        let entry = read.get(5).unwrap();
        assert_eq!((entry.current_txn_first_offset, entry.coordinator_epoch), (8, 5));
        assert_eq!(read.transactions().first_unstable(), Some(8));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>, sealed: bool) {
            if sealed && bytes.len() >= ENTRIES_AT {
                bytes[..CRC_AT].copy_from_slice(&VERSION.to_be_bytes());
                let crc = crc32c(&bytes[ENTRIES_AT..]);
                bytes[CRC_AT..ENTRIES_AT].copy_from_slice(&crc.to_be_bytes());
            }
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let whole = encode(&states());
        assert_eq!(whole.len(), ENTRIES_AT + 4 + 3 * ENTRY_BYTES);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "byte {at}");
            assert!(decode(&whole[..at]).is_err(), "cut at {at}");
        }
    }
}
