//! The decision about one batch: remove it, keep it, or rewrite it with its retained records.
//!
//! Owns Kafka's rules (`Cleaner.cleanInto`, `MemoryRecords.filterTo`). A rewritten batch keeps its base and last
//! offset, producer id and sequence numbers, so that offsets never change and a retry is still recognised. Retained
//! records are copied byte for byte, unless the base timestamp changes: a batch with tombstones gets its delete
//! horizon there (KIP-534).

use std::hint::black_box;

use rustc_hash::FxHashMap;

use super::offset_map::{AHEAD, KeptOffsets, KeyHash, OffsetMap};
use super::old_messages::{self, OldMessage, RecordFilter};
use super::selection::{Counts, Rules, Selection};
use super::transactions::{CleanedTransactions, Marker};
use crate::index::txn_index::AbortedTxn;
use crate::producer::producer_state::{BATCHES_KEPT, ProducerEntry};
use pybroker_record::varint::{put_varint, put_varlong, varint, varlong, varlong_len};
use pybroker_record::{
    BatchHeader, Compression, HEADER_LEN, LOG_OVERHEAD, Offset, Record, RecordError, Records, TimestampType, compress,
    records_section, seal,
};

/// The last batches of an active producer, which stay in the log even without records.
///
/// Kafka's cleaner keeps only the last batch. A producer has up to five batches in flight, and may lose the response
/// to each of them. After producer state is rebuilt from the log, a retry of each must still be recognised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastBatches {
    /// Last offsets of its batches, oldest first; the first `kept` are set, none when only its epoch is known.
    offsets: [i64; BATCHES_KEPT],
    kept: usize,
    epoch: i16,
}

impl LastBatches {
    pub(crate) fn of(entry: &ProducerEntry) -> Self {
        let mut offsets = [-1; BATCHES_KEPT];
        offsets.iter_mut().zip(entry.batches()).for_each(|(offset, batch)| *offset = batch.last_offset);
        Self { offsets, kept: entry.batches().len(), epoch: entry.epoch }
    }

    /// Returns whether an empty batch stays. Of completed transactions only the last batch stays, for its sequence
    /// number: the earlier ones have been acknowledged.
    fn keep(&self, header: &BatchHeader) -> bool {
        match self.offsets[..self.kept].split_last() {
            Some((last, earlier)) => {
                let offset = header.last_offset();
                offset == *last || (!header.is_transactional() && earlier.contains(&offset))
            }
            None => header.is_control() && header.producer_epoch == self.epoch,
        }
    }
}

/// Decides about batches; see the module.
pub(crate) struct Filter<'a> {
    pub(crate) map: &'a OffsetMap,
    pub(crate) kept: Option<KeptOffsets>,
    pub(crate) rules: Rules,
    pub(crate) last_batches: FxHashMap<i64, LastBatches>,
    pub(crate) transactions: CleanedTransactions,
    pub(crate) counts: Counts,
    scratch: Scratch,
}

/// The result of filtering a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The header of the written batch; `None` when nothing was written.
    pub(crate) written: Option<BatchHeader>,
    /// The aborted transaction that the batch ends, if it still has records in the log.
    pub(crate) aborted: Option<AbortedTxn>,
}

/// Buffers that are reused for every batch.
#[derive(Default)]
struct Scratch {
    decompressed: Vec<u8>,
    converted: Vec<u8>,
    gathered: Vec<u8>,
    hashes: Vec<KeyHash>,
    selection: Selection,
}

/// The decision about a batch before its records are read.
#[derive(Clone, Copy)]
struct Authorization {
    /// Whether all of its records are removed.
    discard: bool,
    /// Whether the batch stays when it is empty.
    keep_empty: bool,
    /// Whether it is an unneeded marker, which is removed after its delete horizon.
    unneeded_marker: bool,
}

impl<'a> Filter<'a> {
    pub(crate) fn new(
        map: &'a OffsetMap,
        kept: Option<KeptOffsets>,
        rules: Rules,
        last_batches: FxHashMap<i64, LastBatches>,
    ) -> Self {
        let (transactions, counts, scratch) = (CleanedTransactions::default(), Counts::default(), Scratch::default());
        Self { map, kept, rules, last_batches, transactions, counts, scratch }
    }

    /// Appends the retained part of a batch to `out`.
    ///
    /// # Errors
    /// When the batch's records are malformed. `out` may then contain a part of the batch.
    pub(crate) fn filter(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, RecordError> {
        if header.magic < 2 {
            self.transactions.on_batch(header);
            let mut scratch = std::mem::take(&mut self.scratch);
            let written = self.write_old(header, batch, &mut scratch, out);
            self.scratch = scratch;
            return Ok(Outcome { written: written?, aborted: None });
        }
        let (decision, aborted) = self.check(header, batch)?;
        self.counts.records_read += header.record_count.max(0) as u64;
        let mut scratch = std::mem::take(&mut self.scratch);
        let written = self.write(header, batch, decision, &mut scratch, out);
        self.scratch = scratch;
        Ok(Outcome { written: written?, aborted })
    }

    /// Updates the state of the batch's transaction, and decides about the batch as a whole.
    fn check(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
    ) -> Result<(Authorization, Option<AbortedTxn>), RecordError> {
        let (may_go, aborted) = if header.is_control() {
            match self.transactions.on_control_batch(header, batch)? {
                Marker::Needed => (false, None),
                Marker::Aborted(aborted) => (false, Some(aborted)),
                Marker::Unneeded => (true, None),
            }
        } else {
            (self.transactions.on_batch(header), None)
        };
        let unneeded_marker = may_go && header.is_control();
        let horizon_passed = header.delete_horizon_ms().is_some_and(|horizon| horizon <= self.rules.now_ms);
        let discard = may_go && (!header.is_control() || horizon_passed);
        let last = self.last_batches.get(&header.producer_id).filter(|_| header.has_producer_id());
        let keep_empty = last.is_some_and(|last| last.keep(header)) || header.next_offset() == self.rules.upper;
        Ok((Authorization { discard, keep_empty, unneeded_marker }, aborted))
    }

    fn write(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        decision: Authorization,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<Option<BatchHeader>, RecordError> {
        let Scratch { decompressed, gathered, hashes, selection, .. } = scratch;
        selection.clear();
        let mut section = &[][..];
        if !decision.discard {
            section = records_section(header, batch, decompressed, self.rules.max_decompressed)?;
            self.select(header, section, hashes, selection)?;
        }
        self.counts.records_kept += selection.count as u64;
        if selection.count == 0 {
            return Ok(decision.keep_empty.then(|| write_empty(header, out)));
        }
        let needs_horizon = (selection.tombstones || decision.unneeded_marker) && header.delete_horizon_ms().is_none();
        if selection.count == header.record_count && !needs_horizon {
            out.extend_from_slice(batch);
            return Ok(Some(*header));
        }
        let horizon = needs_horizon.then(|| self.rules.delete_horizon_ms());
        write_selected(header, section, selection, horizon, gathered, out).map(Some)
    }

    /// Writes the retained records of a message or wrapper of format v0 or v1 as one batch.
    ///
    /// The batch of one small message can be three times as large. If all records are retained and the batch does not
    /// fit in the segment, the message is copied unchanged and a later pass converts it. Kafka's cleaner fails there.
    /// Messages with removed records are always rewritten: a record that a tombstone has superseded must not outlive
    /// it.
    fn write_old(
        &mut self,
        header: &BatchHeader,
        message: &[u8],
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<Option<BatchHeader>, RecordError> {
        let Scratch { decompressed, converted, gathered, selection, .. } = scratch;
        selection.clear();
        converted.clear();
        let read_before = self.counts.records_read;
        let check = RecordFilter { map: self.map, rules: &self.rules, counts: &mut self.counts };
        let old = OldMessage { header, bytes: message };
        let batch = old_messages::select(check, old, decompressed, converted, selection)?;
        let all_stays = self.counts.records_read - read_before == selection.count as u64;
        self.counts.records_kept += selection.count as u64;
        if selection.count == 0 {
            return Ok((header.next_offset() == self.rules.upper).then(|| write_empty(&batch, out)));
        }
        let begin = out.len();
        let horizon = selection.tombstones.then(|| self.rules.delete_horizon_ms());
        let written = write_selected(&batch, converted, selection, horizon, gathered, out)?;
        if all_stays && (out.len() - begin) as u64 > message.len() as u64 + self.rules.space_to_grow {
            out.truncate(begin);
            out.extend_from_slice(message);
            return Ok(Some(*header));
        }
        Ok(Some(written))
    }

    /// Selects the retained records.
    fn select(
        &mut self,
        header: &BatchHeader,
        section: &[u8],
        hashes: &mut Vec<KeyHash>,
        selection: &mut Selection,
    ) -> Result<(), RecordError> {
        if header.is_control() {
            return walk(header, section, |_, from, to, record| {
                selection.keep(from, to, record.timestamp_delta, record.value.is_none())
            });
        }
        let deletes_stay = header.delete_horizon_ms().is_none_or(|horizon| self.rules.now_ms < horizon);
        let mut without_key = 0;
        let covering =
            self.kept.as_ref().filter(|kept| kept.cover(&(Offset(header.base_offset)..=Offset(header.last_offset()))));
        if let Some(kept) = covering {
            walk(header, section, |_, from, to, record| {
                without_key += u64::from(record.key.is_none());
                let offset = header.base_offset + i64::from(record.offset_delta);
                if kept.contains(offset) && (record.value.is_some() || deletes_stay) {
                    selection.keep(from, to, record.timestamp_delta, record.value.is_none());
                }
            })?;
        } else {
            hashes.clear();
            walk(header, section, |_, _, _, record| hashes.push(self.map.hash(record.key.unwrap_or_default())))?;
            walk(header, section, |index, from, to, record| {
                if let Some(soon) = hashes.get(index + AHEAD) {
                    black_box(self.map.touch(*soon));
                }
                let offset = header.base_offset + i64::from(record.offset_delta);
                let stays = if offset > self.map.latest() {
                    true
                } else if record.key.is_none() {
                    without_key += 1;
                    false
                } else {
                    let latest = self.map.get(hashes[index]).is_none_or(|latest| offset >= latest);
                    latest && (record.value.is_some() || deletes_stay)
                };
                if stays {
                    selection.keep(from, to, record.timestamp_delta, record.value.is_none());
                }
            })?;
        }
        self.counts.without_key += without_key;
        Ok(())
    }
}

/// Calls `each` with every record of a section: index, start, end, and the record.
#[inline(always)]
fn walk(
    header: &BatchHeader,
    section: &[u8],
    mut each: impl FnMut(usize, usize, usize, &Record<'_>),
) -> Result<(), RecordError> {
    let mut records = Records::new(section, header.record_count);
    let (mut index, mut from) = (0, 0);
    while let Some(record) = records.next() {
        let record = record?;
        let to = section.len() - records.left();
        let inside = record.offset_delta >= 0 && record.offset_delta <= header.last_offset_delta;
        if !inside {
            return Err(RecordError::Record { index: index as i32, reason: "its offset is not the batch's" });
        }
        each(index, from, to, &record);
        (index, from) = (index + 1, to);
    }
    if from != section.len() {
        return Err(RecordError::Record { index: index as i32, reason: "bytes follow the last record" });
    }
    Ok(())
}

/// Writes the header of a batch without records (Kafka's `DefaultRecordBatch.writeEmptyHeader`).
fn write_empty(header: &BatchHeader, out: &mut Vec<u8>) -> BatchHeader {
    let begin = out.len();
    out.resize(begin + HEADER_LEN, 0);
    finish(&mut out[begin..], header.emptied())
}

/// Writes a batch of the selected records.
fn write_selected(
    header: &BatchHeader,
    section: &[u8],
    selection: &Selection,
    horizon_ms: Option<i64>,
    gathered: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<BatchHeader, RecordError> {
    let begin = out.len();
    out.resize(begin + HEADER_LEN, 0);
    let codec = header.compression()?;
    gathered.clear();
    let target = if codec == Compression::None { &mut *out } else { &mut *gathered };
    let shift = horizon_ms.map(|horizon| header.base_timestamp.wrapping_sub(horizon));
    for &(from, to) in &selection.runs {
        match shift {
            None => target.extend_from_slice(&section[from..to]),
            Some(shift) => rebase(&section[from..to], shift, target)?,
        }
    }
    if codec != Compression::None {
        compress(codec, None, gathered, out)?;
    }
    let mut written = *header;
    written.record_count = selection.count;
    if header.timestamp_type() == TimestampType::CreateTime {
        written.max_timestamp = header.base_timestamp.wrapping_add(selection.latest);
    }
    if let Some(horizon) = horizon_ms {
        written.set_delete_horizon(horizon);
    }
    Ok(finish(&mut out[begin..], written))
}

/// Writes a batch's header with length and checksum at the start of its bytes.
fn finish(batch: &mut [u8], mut header: BatchHeader) -> BatchHeader {
    header.batch_length = (batch.len() - LOG_OVERHEAD) as i32;
    header.write(batch);
    seal(batch);
    header.crc = u32::from_be_bytes([batch[17], batch[18], batch[19], batch[20]]);
    header
}

/// Copies records and adds `shift` to their timestamp deltas, for a base timestamp that is `shift` earlier.
fn rebase(records: &[u8], shift: i64, out: &mut Vec<u8>) -> Result<(), RecordError> {
    let mut at = 0;
    while at < records.len() {
        let (length, begin) = varint(records, at)?;
        let end = begin + length as usize;
        let (delta, rest) = varlong(records, begin + 1)?;
        let delta = delta.wrapping_add(shift);
        put_varint(out, (1 + varlong_len(delta) + end - rest) as i32);
        out.push(records[begin]);
        put_varlong(out, delta);
        out.extend_from_slice(&records[rest..end]);
        at = end;
    }
    Ok(())
}
