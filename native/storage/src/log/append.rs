//! Appending: validate, deduplicate, assign offsets, write once, index, publish.
//!
//! Owns the order of these steps. Validation needs no lock. Under the writer lock no state changes before the bytes
//! are in the file. Readers see the bytes only after indexes and producer state include them.

use std::io;
use std::sync::Arc;

use crate::log::Log;
use crate::log::admission::{AdmittedRecords, Placed, admit};
use crate::log::state::{Tail, View, Writer};
use crate::producer::producer_state::{BatchMetadata, Origin, ProducerEntry, Staged, Terms};
use crate::producer::verification::{BeginningTransaction, ConfirmedTransaction, TransactionCheck, VerificationGuard};
use crate::{AppendError, LogConfig, LogError};
use pybroker_record::{
    Batches, EndMarker, InvalidBatch, SentRecords, TimestampType, batch_crc, set_base_offset,
    set_partition_leader_epoch,
};
use pybroker_sys::file;

/// Smaller segments get no preallocated blocks, so that many small partitions do not occupy disk space.
const AHEAD_FROM: u64 = 64 << 10;
/// Most bytes to preallocate at once.
const AHEAD_MOST: u64 = 32 << 20;

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub first_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The timestamp set by the broker, ms; -1 under CreateTime.
    pub log_append_time: i64,
    /// First readable offset of the log.
    pub log_start_offset: i64,
    /// Bytes written (0 for a duplicate).
    pub bytes: usize,
    /// Records appended (0 for a duplicate).
    pub record_count: usize,
    /// Largest timestamp among the batches, ms; -1 when none has one.
    pub max_timestamp: i64,
    /// Whether the batches were in the log already. The offsets are then those of the first append.
    pub duplicate: bool,
    /// Whether the append rolled the log: a flush of the older segments is due.
    pub rolled: bool,
}

/// The properties of an append that decide whether the log rolls.
#[derive(Clone, Copy)]
pub(crate) struct Incoming {
    pub(crate) bytes: u64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
}

impl Log {
    /// Appends a Produce whose batches are not parsed yet; see [`Log::append_as_leader`].
    ///
    /// # Errors
    /// See [`AppendError`]. After an error the log is unchanged.
    pub fn append(&self, batches: &mut [u8], leader_epoch: i32, now_ms: i64) -> Result<Appended, AppendError> {
        let sent = SentRecords::find(batches).map_err(AppendError::Invalid)?;
        self.append_as_leader(sent, leader_epoch, now_ms, TransactionCheck::Guarded(None))
    }

    /// Appends a Produce with [`Log::append_as_leader_unsynced`], and syncs the log if `flush.messages` requires it.
    ///
    /// # Errors
    /// See [`AppendError`]. After an error the log is unchanged.
    pub fn append_as_leader(
        &self,
        sent: SentRecords<'_>,
        leader_epoch: i32,
        now_ms: i64,
        check: TransactionCheck,
    ) -> Result<Appended, AppendError> {
        let appended = self.append_as_leader_unsynced(sent, leader_epoch, now_ms, check)?;
        self.flush_when_many()?;
        Ok(appended)
    }

    /// Validates every batch, converts old message formats and other codecs than the topic's, and rejects or
    /// recognises duplicates by producer state. Assigns offsets, leader epoch and (under LogAppendTime) timestamps in
    /// place, and writes all batches at once.
    ///
    /// The caller checks whether a sync is due ([`Log::is_sync_due`]).
    ///
    /// # Errors
    /// See [`AppendError`]. After an error the log is unchanged.
    pub fn append_as_leader_unsynced(
        &self,
        sent: SentRecords<'_>,
        leader_epoch: i32,
        now_ms: i64,
        check: TransactionCheck,
    ) -> Result<Appended, AppendError> {
        self.append_admitted(&mut self.admit(sent, now_ms)?, leader_epoch, now_ms, check)
    }

    /// The first half of [`Log::append_as_leader_unsynced`], which needs no lock: validates, stamps and converts the sent
    /// records.
    ///
    /// # Errors
    /// `Invalid`, or `TooLarge` for more bytes than a segment can have.
    pub fn admit<'a>(&self, sent: SentRecords<'a>, now_ms: i64) -> Result<AdmittedRecords<'a>, AppendError> {
        let config = self.config.load();
        let mut batches = admit(sent, &config, now_ms)?;
        let bytes = batches.parts().0.len();
        if bytes as u64 > config.segment_bytes {
            return Err(AppendError::TooLarge { bytes, limit: config.segment_bytes });
        }
        let log_append_time = match config.timestamp_type {
            TimestampType::CreateTime => -1,
            TimestampType::LogAppendTime => now_ms,
        };
        Ok(AdmittedRecords { batches, log_append_time })
    }

    /// The second half of [`Log::append_as_leader_unsynced`], under the writer lock. If the leader is fenced, the records stay
    /// as admitted, and can be appended at a later epoch.
    ///
    /// # Errors
    /// See [`AppendError`]. After an error the log is unchanged.
    pub fn append_admitted(
        &self,
        admitted: &mut AdmittedRecords<'_>,
        leader_epoch: i32,
        now_ms: i64,
        check: TransactionCheck,
    ) -> Result<Appended, AppendError> {
        let log_append_time = admitted.log_append_time;
        let (batches, placed) = admitted.batches.parts();
        let mut writer = self.writer.lock();
        writer.ensure_leads(leader_epoch)?;
        if let Some(original) = placed.iter().find_map(|batch| writer.producers.find_duplicate(&batch.header)) {
            return Ok(self.duplicate(original, log_append_time));
        }
        self.assign(batches, placed, leader_epoch);
        let staged = stage(&writer, batches, placed, &writer.terms(Origin::Client, check))?;
        let appended = self.write(&mut writer, batches, placed, staged, log_append_time, now_ms)?;
        end_verifications(&mut writer, placed, false);
        Ok(appended)
    }

    /// Appends batches that have their offsets already (replication). Gaps are allowed, smaller offsets are not.
    ///
    /// # Errors
    /// See [`AppendError`]. After an error the log is unchanged.
    pub fn append_as_follower(&self, batches: &[u8], now_ms: i64) -> Result<Appended, AppendError> {
        let placed = parse(batches, true)?;
        let appended = {
            let mut writer = self.writer.lock();
            let mut expected = self.log_end_offset();
            for Placed { header, .. } in &placed {
                if header.base_offset < expected {
                    return Err(AppendError::UnexpectedOffset { expected, found: header.base_offset });
                }
                expected = header.next_offset();
            }
            let staged =
                stage(&writer, batches, &placed, &writer.terms(Origin::Replication, TransactionCheck::Unchecked))?;
            let appended = self.write(&mut writer, batches, &placed, staged, -1, now_ms)?;
            end_verifications(&mut writer, &placed, false);
            appended
        };
        self.flush_when_many()?;
        Ok(appended)
    }

    /// Appends batches built by this node (coordinators, the quorum). Assigns offsets and leader epoch in place. The
    /// rules for clients do not apply, but fenced producers and coordinators are rejected.
    ///
    /// # Errors
    /// See [`AppendError`]. After an error the log is unchanged.
    pub fn append_as_coordinator(
        &self,
        batches: &mut [u8],
        leader_epoch: i32,
        now_ms: i64,
    ) -> Result<Appended, AppendError> {
        let appended =
            self.append_as_coordinator_unsynced(batches, leader_epoch, now_ms, TransactionCheck::Unchecked, false)?;
        self.flush_when_many()?;
        Ok(appended)
    }

    /// Like [`Log::append_as_coordinator`], for a coordinator. A batch that begins a transaction is checked. Markers follow
    /// the rule of their `transaction.version` (`markers_bump_epoch`: 2 or later). No sync is awaited.
    ///
    /// # Errors
    /// See [`AppendError`]. After an error the log is unchanged.
    pub fn append_as_coordinator_unsynced(
        &self,
        batches: &mut [u8],
        leader_epoch: i32,
        now_ms: i64,
        check: TransactionCheck,
        markers_bump_epoch: bool,
    ) -> Result<Appended, AppendError> {
        let mut placed = parse(batches, false)?;
        if let Some(old) = placed.iter().find(|batch| batch.header.magic < 2) {
            return Err(AppendError::Invalid(InvalidBatch::UnsupportedFormat(old.header.magic)));
        }
        let mut writer = self.writer.lock();
        writer.ensure_leads(leader_epoch)?;
        self.assign(batches, &mut placed, leader_epoch);
        let terms = Terms { markers_bump_epoch, ..writer.terms(Origin::Coordinator, check) };
        let staged = stage(&writer, batches, &placed, &terms)?;
        let appended = self.write(&mut writer, batches, &placed, staged, -1, now_ms)?;
        end_verifications(&mut writer, &placed, markers_bump_epoch);
        Ok(appended)
    }

    /// Begins the verification of a transaction. Returns the guard for the append of its first batch, or `None` when
    /// the transaction is open in this log already or its coordinator has confirmed it.
    ///
    /// # Errors
    /// `InvalidProducerEpoch` for a fenced producer epoch.
    pub fn begin_verification(
        &self,
        beginning: BeginningTransaction,
        now_ms: i64,
    ) -> Result<Option<VerificationGuard>, AppendError> {
        let mut writer = self.writer.lock();
        if writer.producers.has_open_transaction(beginning.producer_id, beginning.producer_epoch)? {
            return Ok(None);
        }
        Ok(writer.verifications.begin(beginning, now_ms))
    }

    /// Records a coordinator's confirmation that a producer's transaction is open and includes this partition. The
    /// first batch then needs no verification. Does nothing if the log has a later producer epoch or coordinator
    /// epoch.
    pub fn confirm_transaction(&self, confirmed: ConfirmedTransaction, now_ms: i64) {
        let mut writer = self.writer.lock();
        if writer.producers.may_confirm(confirmed) {
            writer.verifications.confirm(confirmed, now_ms);
        }
    }

    /// Returns all producers of the log, ordered by producer id.
    pub fn active_producers(&self) -> Vec<(i64, ProducerEntry)> {
        let writer = self.writer.lock();
        let mut producers: Vec<_> = writer.producers.iter().map(|(id, entry)| (id, *entry)).collect();
        drop(writer);
        producers.sort_unstable_by_key(|(id, _)| *id);
        producers
    }

    fn duplicate(&self, original: BatchMetadata, log_append_time: i64) -> Appended {
        Appended {
            first_offset: original.first_offset(),
            last_offset: original.last_offset,
            log_append_time: if log_append_time < 0 { -1 } else { original.timestamp },
            log_start_offset: self.log_start_offset(),
            bytes: 0,
            record_count: 0,
            max_timestamp: original.timestamp,
            duplicate: true,
            rolled: false,
        }
    }

    /// Assigns the next offsets to the batches. The caller holds the writer lock, so no other append can use them.
    fn assign(&self, batches: &mut [u8], placed: &mut [Placed], leader_epoch: i32) {
        let mut next = self.log_end_offset();
        for Placed { start, header } in placed {
            let batch = &mut batches[*start..*start + header.size()];
            set_base_offset(batch, next);
            set_partition_leader_epoch(batch, leader_epoch);
            header.base_offset = next;
            header.partition_leader_epoch = leader_epoch;
            next = header.next_offset();
        }
    }

    fn write(
        &self,
        writer: &mut Writer,
        batches: &[u8],
        placed: &[Placed],
        staged: Staged,
        log_append_time: i64,
        now_ms: i64,
    ) -> Result<Appended, AppendError> {
        self.ensure_online()?;
        let (Some(first), Some(last)) = (placed.first(), placed.last()) else { return Ok(self.nothing()) };
        let config = self.config.load();
        let incoming = Incoming {
            bytes: batches.len() as u64,
            last_offset: last.header.last_offset(),
            max_timestamp: placed.iter().map(|batch| batch.header.max_timestamp).max().unwrap_or(-1),
        };
        let rolled = self.maybe_roll(writer, &config, incoming, now_ms)?;
        let view = self.view.load_full();
        self.assign_epochs(placed)?;
        let interval = u64::from(config.index_interval_bytes);
        reserve_index(writer, &view, placed, interval)?;
        if staged.has_aborted() {
            // After the batches are written, no step may fail for lack of a file descriptor.
            view.segments.active().txn_index.prepare()?;
        }
        self.write_bytes(writer, &config, &view, batches)?;
        let next = index(writer, &view, placed, interval);
        let aborted = writer.producers.commit(staged, next.end_offset);
        view.segments.active().txn_index.append(&aborted).map_err(|error| self.failed(error))?;
        view.segments.active().set_size(next.end_position);
        self.publish_transactions(writer);
        let log_start_offset = next.log_start_offset;
        self.view.store(Arc::new(next));
        Ok(Appended {
            first_offset: first.header.base_offset,
            last_offset: incoming.last_offset,
            log_append_time,
            log_start_offset,
            bytes: batches.len(),
            record_count: placed.iter().map(|batch| batch.header.record_count.max(0) as usize).sum(),
            max_timestamp: incoming.max_timestamp,
            duplicate: false,
            rolled,
        })
    }

    /// Returns the result of an append without batches.
    fn nothing(&self) -> Appended {
        let view = self.view.load();
        Appended {
            first_offset: view.end_offset,
            last_offset: view.end_offset - 1,
            log_append_time: -1,
            log_start_offset: view.log_start_offset,
            bytes: 0,
            record_count: 0,
            max_timestamp: -1,
            duplicate: false,
            rolled: false,
        }
    }

    /// Writes the bytes at the end of the active segment: all of them, or none.
    fn write_bytes(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        view: &View,
        batches: &[u8],
    ) -> Result<(), AppendError> {
        let active = view.segments.active();
        let log_file = &*active.file()?;
        reserve_ahead(writer, config, log_file, view.end_position, batches.len() as u64);
        let Err(source) = file::write_all_at(log_file, batches, view.end_position) else { return Ok(()) };
        writer.reserved = view.end_position;
        let undone = file::set_len(log_file, view.end_position);
        let full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let error = LogError::io(active.path())(source);
        // A full disk or exhausted memory does no damage once the partial write is truncated. Any other error takes
        // the log offline.
        Err(if (full || error.is_exhausted()) && undone.is_ok() { error } else { self.failed(error) }.into())
    }

    /// Assigns the leader epochs that begin with these batches, before the batches are written, as Kafka does.
    ///
    /// If a batch is then not written, the next different epoch entry or the next opening of the log removes its
    /// entry.
    fn assign_epochs(&self, placed: &[Placed]) -> Result<(), LogError> {
        let mut file = self.epochs.lock();
        let news = |batch: &Placed, latest: Option<i32>| {
            latest.is_none_or(|latest| batch.header.partition_leader_epoch > latest)
                && batch.header.partition_leader_epoch >= 0
        };
        if !placed.iter().any(|batch| news(batch, file.epochs.latest())) {
            return Ok(());
        }
        let mut epochs = file.epochs.clone();
        for batch in placed {
            if news(batch, epochs.latest()) {
                epochs.assign(batch.header.partition_leader_epoch, batch.header.base_offset);
            }
        }
        epochs.write(&self.home.path(), false)?;
        file.epochs = epochs;
        file.dirty = true;
        Ok(())
    }

    /// Syncs the log if `flush.messages` requires it.
    ///
    /// # Errors
    /// `Io` when the log cannot be synced.
    pub fn flush_when_many(&self) -> Result<(), AppendError> {
        if self.is_sync_due() {
            self.flush()?;
        }
        Ok(())
    }
}

/// Ends the verifications of the written transactional batches; `markers_bump_epoch` as in
/// [`Log::append_as_coordinator_unsynced`].
fn end_verifications(writer: &mut Writer, placed: &[Placed], markers_bump_epoch: bool) {
    for Placed { header, .. } in placed.iter().filter(|batch| batch.header.is_transactional()) {
        writer.verifications.end(header, markers_bump_epoch);
    }
}

fn corrupt(reason: String) -> AppendError {
    AppendError::Invalid(InvalidBatch::Corrupt(reason))
}

/// Parses the batches in bytes from this or another broker.
fn parse(batches: &[u8], check_crc: bool) -> Result<Vec<Placed>, AppendError> {
    let mut start = 0;
    let mut placed = Vec::with_capacity(1);
    for batch in Batches::new(batches) {
        let (header, bytes) = batch.map_err(AppendError::malformed)?;
        if check_crc && batch_crc(bytes) != header.crc {
            return Err(corrupt(format!("the batch at offset {} does not match its checksum", header.base_offset)));
        }
        placed.push(Placed { start, header });
        start += bytes.len();
    }
    Ok(placed)
}

fn stage(writer: &Writer, batches: &[u8], placed: &[Placed], terms: &Terms<'_>) -> Result<Staged, AppendError> {
    let mut staged = Staged::default();
    for &Placed { start, ref header } in placed {
        let marker =
            EndMarker::parse(header, &batches[start..start + header.size()]).map_err(AppendError::malformed)?;
        writer.producers.stage(&mut staged, header, marker, terms)?;
    }
    Ok(staged)
}

/// Preallocates blocks before a write: as many bytes as the segment has, within bounds.
///
/// Appending to reserved blocks costs a third to a half less than growing the file write by write (docs/adr/0003).
fn reserve_ahead(writer: &mut Writer, config: &LogConfig, log_file: &std::fs::File, position: u64, bytes: u64) {
    let end = position + bytes;
    if end <= writer.reserved || (end < AHEAD_FROM && !config.preallocate) {
        return;
    }
    let ahead = if config.preallocate { config.segment_bytes } else { end.min(AHEAD_MOST) };
    let target = end.max((position + ahead).min(config.segment_bytes));
    file::reserve_beyond_end(log_file, position, target - position);
    // Recorded even if the preallocation failed: the next attempt is due after `target`, not at every append.
    writer.reserved = target;
}

/// Reserves space for the index entries of these batches before anything is written.
fn reserve_index(writer: &Writer, view: &View, placed: &[Placed], interval: u64) -> Result<(), LogError> {
    let mut since = writer.bytes_since_index;
    let mut due = 0;
    for Placed { header, .. } in placed {
        if since > interval {
            due += 1;
            since = 0;
        }
        since += header.size() as u64;
    }
    if due > 0 {
        let active = view.segments.active();
        active.offset_index.map.reserve(due)?;
        active.time_index.map.reserve(due)?;
    }
    Ok(())
}

/// Updates indexes and writer state for batches that are in the file, and returns the view that includes them.
fn index(writer: &mut Writer, view: &View, placed: &[Placed], interval: u64) -> View {
    let mut next = view.clone();
    let active = view.segments.active();
    for Placed { header, .. } in placed {
        writer.first_timestamp.get_or_insert(header.max_timestamp);
        let due = writer.bytes_since_index > interval;
        active.add_batch(header, header.last_offset(), next.end_position, due);
        if due {
            writer.bytes_since_index = 0;
        }
        writer.bytes_since_index += header.size() as u64;
        next.tail = Tail::at(header, next.end_position);
        next.end_position += header.size() as u64;
        next.end_offset = header.next_offset();
    }
    next
}
