//! Appends to a partition: the required role and in-sync replicas, and the conditions for the acknowledgement.

use std::sync::atomic::Ordering;

use super::acknowledgement::Awaited;
use super::ids::LeaderEpoch;
use super::leader::Leader;
use super::partition::Partition;
use super::role::Role;
use super::waiting::Waiter;
use pybroker_record::{EndMarker, ProducerId, SentRecords};
use pybroker_storage::{
    AdmittedRecords, AppendError, Appended, BeginningTransaction, ConfirmedTransaction, TransactionCheck,
    VerificationGuard,
};

/// Why an append was rejected.
#[derive(Debug)]
pub enum NotAppended {
    /// This broker is not the leader of the partition, or the log is closed.
    NotLeader,
    /// `acks=all` with fewer in-sync replicas than `min.insync.replicas`.
    NotEnoughReplicas {
        /// Number of in-sync replicas.
        in_sync: usize,
        /// Number of required in-sync replicas.
        wanted: usize,
    },
    /// The log rejected the batches.
    Log(AppendError),
}

/// A completed transaction and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedTransaction {
    pub marker: EndMarker,
    pub producer_id: i64,
    /// The producer epoch of the marker.
    pub producer_epoch: i16,
    /// Whether that epoch is higher than the epoch of the transaction's batches (`transaction.version` 2).
    pub bumped: bool,
}

/// The result of a producer's append.
#[derive(Debug)]
pub struct Produced {
    pub appended: Appended,
    /// The conditions for the acknowledgement; `None` when the append can be acknowledged at once.
    pub awaited: Option<Awaited>,
}

impl From<AppendError> for NotAppended {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::LeaderFenced { .. } => Self::NotLeader,
            AppendError::Invalid(_)
            | AppendError::TooLarge { .. }
            | AppendError::OutOfOrderSequence { .. }
            | AppendError::InvalidProducerEpoch { .. }
            | AppendError::CoordinatorFenced { .. }
            | AppendError::InvalidTxnState { .. }
            | AppendError::NotVerified { .. }
            | AppendError::UnexpectedOffset { .. }
            | AppendError::Io { .. }
            | AppendError::Exhausted { .. }
            | AppendError::Offline { .. } => Self::Log(error),
        }
    }
}

impl Partition {
    /// Appends a producer's batches, which are not parsed yet; see [`Partition::append_as_leader`].
    pub fn append(
        &self,
        batches: &mut [u8],
        all: bool,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Produced, NotAppended> {
        let sent = SentRecords::find(batches).map_err(|error| NotAppended::Log(AppendError::Invalid(error)))?;
        self.append_as_leader(sent, all, now_ms, TransactionCheck::Guarded(None), wake)
    }

    /// Appends a producer's records, advances the high watermark, and wakes the requests that this satisfies through
    /// `wake`.
    ///
    /// Batches without conversion are changed in place (offsets, leader epoch, append time). `all` requires
    /// `min.insync.replicas` for the append and the acknowledgement. `check` applies to batches that begin a
    /// transaction.
    pub fn append_as_leader(
        &self,
        sent: SentRecords<'_>,
        all: bool,
        now_ms: i64,
        check: TransactionCheck,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Produced, NotAppended> {
        let mut admitted = self.admitted(sent, all, now_ms)?;
        let append = |epoch| {
            let appended = self.log.append_admitted(&mut admitted, epoch, now_ms, check)?;
            self.log.flush_when_many()?;
            Ok(appended)
        };
        let (appended, epoch) = self.append_in_epoch(RequiredIsr::of(all), append, wake)?;
        let awaited = self.awaited(epoch, appended.last_offset + 1, all, wake);
        Ok(Produced { appended, awaited })
    }

    /// Appends a coordinator's records with `acks=all`, like [`Partition::append`], but does not wait for the disk.
    /// The caller must sync records that are not settled.
    pub fn append_as_leader_unsynced(
        &self,
        batches: &mut [u8],
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        let sent = SentRecords::find(batches).map_err(|error| NotAppended::Log(AppendError::Invalid(error)))?;
        let mut admitted = self.admitted(sent, true, now_ms)?;
        let check = TransactionCheck::Guarded(None);
        let append = |epoch| self.log.append_admitted(&mut admitted, epoch, now_ms, check);
        Ok(self.append_in_epoch(RequiredIsr::Min, append, wake)?.0)
    }

    /// Appends a coordinator's batches unchanged: markers and other transactional batches. Wakes requests as
    /// [`Partition::append_as_leader`] does.
    pub fn append_as_coordinator(
        &self,
        batches: &mut [u8],
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        let append = |epoch| self.log.append_as_coordinator(batches, epoch, now_ms);
        Ok(self.append_in_epoch(RequiredIsr::Any, append, wake)?.0)
    }

    /// Appends a coordinator's transactional batches unchanged with `acks=all`, and does not wait for the disk.
    /// `check` applies to batches that begin a transaction.
    pub fn append_transactional(
        &self,
        batches: &mut [u8],
        now_ms: i64,
        check: TransactionCheck,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        let append = |epoch| self.log.append_as_coordinator_unsynced(batches, epoch, now_ms, check, false);
        Ok(self.append_in_epoch(RequiredIsr::Min, append, wake)?.0)
    }

    /// Appends the end marker of a producer's transaction with `acks=all`, and does not wait for the disk. Also
    /// returns the conditions that are still missing for the acknowledgement.
    pub fn append_marker(
        &self,
        ended: &EndedTransaction,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<(Appended, Awaited), NotAppended> {
        let &EndedTransaction { marker, producer_id, producer_epoch, bumped } = ended;
        let mut batch =
            marker.build(ProducerId(producer_id), producer_epoch, now_ms).map_err(AppendError::malformed)?;
        let check = TransactionCheck::Unchecked;
        let append = |epoch| self.log.append_as_coordinator_unsynced(&mut batch, epoch, now_ms, check, bumped);
        let (appended, epoch) = self.append_in_epoch(RequiredIsr::Min, append, wake)?;
        Ok((appended, self.awaited_to_complete_since(epoch, appended.last_offset + 1)))
    }

    /// Begins the verification of a transaction before its first batch. Returns the guard for the append of the
    /// batch, or `None` when the transaction is open in this log already or its coordinator has confirmed it.
    pub fn begin_verification(
        &self,
        beginning: BeginningTransaction,
        now_ms: i64,
    ) -> Result<Option<VerificationGuard>, NotAppended> {
        let role = self.role.load();
        self.leads(&role)?;
        Ok(self.log.begin_verification(beginning, now_ms)?)
    }

    /// See [`pybroker_storage::Log::confirm_transaction`]. Does nothing if another broker is the leader.
    pub fn confirm_transaction(&self, confirmed: ConfirmedTransaction, now_ms: i64) {
        let role = self.role.load();
        if self.leads(&role).is_ok() {
            self.log.confirm_transaction(confirmed, now_ms);
        }
    }

    /// Validates sent records if this broker may append them. Errors of the role take precedence over those of the
    /// records.
    fn admitted<'a>(&self, sent: SentRecords<'a>, all: bool, now_ms: i64) -> Result<AdmittedRecords<'a>, NotAppended> {
        RequiredIsr::of(all).check(self.leads(&self.role.load())?)?;
        Ok(self.log.admit(sent, now_ms)?)
    }

    /// Calls `append` with the current leader epoch, publishes the appended records, and returns the epoch.
    ///
    /// The epoch may rise while this broker stays the leader. An append that fails because its epoch is over is
    /// retried with the new epoch. If it were rejected, later batches of the same producer would overtake it.
    fn append_in_epoch(
        &self,
        required: RequiredIsr,
        mut append: impl FnMut(i32) -> Result<Appended, AppendError>,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<(Appended, LeaderEpoch), NotAppended> {
        let mut removed_by = None;
        loop {
            let role = self.role.load();
            let leader = self.leads(&role)?;
            let epoch = leader.leader_epoch();
            if removed_by == Some(epoch) {
                // The log was prepared for a new leader epoch, but this broker did not become leader.
                return Err(NotAppended::NotLeader);
            }
            required.check(leader)?;
            match append(epoch.0) {
                Err(AppendError::LeaderFenced { .. }) => {
                    removed_by = Some(epoch);
                    drop(role);
                    // Waits until the role change that raised the epoch has stored the new role.
                    drop(self.role_change.lock());
                }
                appended => {
                    let appended = appended?;
                    self.show_appended(leader, &appended, wake);
                    return Ok((appended, epoch));
                }
            }
        }
    }

    /// Publishes appended records to waiting replicas, and to consumers if the append advances the high watermark.
    fn show_appended(&self, leader: &Leader, appended: &Appended, wake: &mut dyn FnMut(Waiter)) {
        if !leader.is_alone() && !appended.duplicate {
            self.waiting.appended(appended.last_offset + 1, appended.bytes, wake);
        }
        self.maybe_advance_high_watermark(Some(appended), wake);
    }

    fn leads<'a>(&self, role: &'a Role) -> Result<&'a Leader, NotAppended> {
        role.leader().filter(|_| !self.closed.load(Ordering::Acquire)).ok_or(NotAppended::NotLeader)
    }
}

/// The number of in-sync replicas that an append requires.
#[derive(Clone, Copy)]
enum RequiredIsr {
    Any,
    /// At least `min.insync.replicas` in-sync replicas.
    Min,
}

impl RequiredIsr {
    /// Returns the requirement of `acks`: `all`, or none.
    fn of(all: bool) -> Self {
        if all { Self::Min } else { Self::Any }
    }

    fn check(self, leader: &Leader) -> Result<(), NotAppended> {
        match self {
            Self::Min if !leader.has_enough_in_sync() => {
                Err(NotAppended::NotEnoughReplicas { in_sync: leader.in_sync(), wanted: leader.min_in_sync() })
            }
            Self::Min | Self::Any => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
