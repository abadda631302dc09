//! Appending to a partition: who may, and what has to come before it is acknowledged.

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

/// Why nothing was appended.
#[derive(Debug)]
pub enum NotAppended {
    /// This broker does not lead the partition, or its log is closed.
    NotLeader,
    /// `acks=all` with fewer replicas in sync than `min.insync.replicas`.
    NotEnoughReplicas {
        /// Replicas in sync.
        in_sync: usize,
        /// Replicas asked for.
        wanted: usize,
    },
    /// The log refused the batches.
    Log(AppendError),
}

/// A transaction that has ended, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedTransaction {
    pub marker: EndMarker,
    pub producer_id: i64,
    /// The epoch that the marker is written with.
    pub producer_epoch: i16,
    /// Whether that is beyond the epoch of the transaction's batches (`transaction.version` 2).
    pub bumped: bool,
}

/// What a producer sent is in the log.
#[derive(Debug)]
pub struct Produced {
    pub appended: Appended,
    /// What has to come before it is acknowledged; `None` when it may be at once.
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
    /// Appends a producer's batches, which are still to be found in the bytes; see [`Partition::append_sent`].
    pub fn append(
        &self,
        batches: &mut [u8],
        all: bool,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Produced, NotAppended> {
        let sent = SentRecords::find(batches).map_err(|error| NotAppended::Log(AppendError::Invalid(error)))?;
        self.append_sent(sent, all, now_ms, TransactionCheck::Guarded(None), wake)
    }

    /// Appends a producer's records, advances the high watermark, and wakes by `wake` the requests that this satisfies.
    ///
    /// Batches that need not be converted are patched in place (offsets, leader epoch, append time). `all` asks for
    /// `min.insync.replicas`, and that they have it before it is acknowledged; `check` for what begins a transaction.
    pub fn append_sent(
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

    /// Appends what a coordinator has decided, for all replicas in sync, as [`Partition::append`] does but for one thing:
    /// it waits for no disk. What is not settled then has to be synced.
    pub fn append_deferred(
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

    /// Appends a coordinator's batches as they are: markers, and what else belongs to transactions. Wakes as
    /// [`Partition::append_sent`] does.
    pub fn append_as_coordinator(
        &self,
        batches: &mut [u8],
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        let append = |epoch| self.log.append_internal(batches, epoch, now_ms);
        Ok(self.append_in_epoch(RequiredIsr::Any, append, wake)?.0)
    }

    /// Appends a coordinator's batches of transactions as they are, for all replicas in sync, and waits for no disk; `check`
    /// is for what begins a transaction.
    pub fn append_transactional(
        &self,
        batches: &mut [u8],
        now_ms: i64,
        check: TransactionCheck,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        let append = |epoch| self.log.append_coordinated(batches, epoch, now_ms, check, false);
        Ok(self.append_in_epoch(RequiredIsr::Min, append, wake)?.0)
    }

    /// Appends the marker that ends a producer's transaction, for all replicas in sync, and waits for no disk: what it still
    /// lacks is returned with it.
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
        let append = |epoch| self.log.append_coordinated(&mut batch, epoch, now_ms, check, bumped);
        let (appended, epoch) = self.append_in_epoch(RequiredIsr::Min, append, wake)?;
        Ok((appended, self.awaited_to_settle_since(epoch, appended.last_offset + 1)))
    }

    /// Begins to verify a transaction whose next batch is for this partition: the guard that the batch is to be appended with,
    /// or `None` where the transaction is open here already, or its coordinator has confirmed it.
    pub fn begin_verification(
        &self,
        beginning: BeginningTransaction,
        now_ms: i64,
    ) -> Result<Option<VerificationGuard>, NotAppended> {
        let role = self.role.load();
        self.leads(&role)?;
        Ok(self.log.begin_verification(beginning, now_ms)?)
    }

    /// See [`pybroker_storage::Log::confirm_transaction`]; nothing where another broker leads.
    pub fn confirm_transaction(&self, confirmed: ConfirmedTransaction, now_ms: i64) {
        let role = self.role.load();
        if self.leads(&role).is_ok() {
            self.log.confirm_transaction(confirmed, now_ms);
        }
    }

    /// What was sent, if this broker may append it: an error of the role comes before one of the records.
    fn admitted<'a>(&self, sent: SentRecords<'a>, all: bool, now_ms: i64) -> Result<AdmittedRecords<'a>, NotAppended> {
        RequiredIsr::of(all).check(self.leads(&self.role.load())?)?;
        Ok(self.log.admit(sent, now_ms)?)
    }

    /// Appends by `append`, which is given the leader epoch in force, and shows what was appended; returns the epoch with it.
    ///
    /// An epoch may grow while this broker stays the leader. An append that finds its epoch gone by then is done at the new
    /// one: refused, it would be passed by what the same producer has sent behind it.
    fn append_in_epoch(
        &self,
        required: RequiredIsr,
        mut append: impl FnMut(i32) -> Result<Appended, AppendError>,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<(Appended, LeaderEpoch), NotAppended> {
        let mut gone_by = None;
        loop {
            let role = self.role.load();
            let leader = self.leads(&role)?;
            let epoch = leader.leader_epoch();
            if gone_by == Some(epoch) {
                // The log was made ready for a leader that did not come.
                return Err(NotAppended::NotLeader);
            }
            required.check(leader)?;
            match append(epoch.0) {
                Err(AppendError::LeaderFenced { .. }) => {
                    gone_by = Some(epoch);
                    drop(role);
                    // The change that raised the epoch has stored its role when it lets go of this.
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

    /// What is appended is there for the other replicas at once, and for consumers where it is committed by that.
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

/// How many replicas in sync an append needs.
#[derive(Clone, Copy)]
enum RequiredIsr {
    Any,
    /// As many replicas in sync as `min.insync.replicas` says.
    Min,
}

impl RequiredIsr {
    /// What `acks` asks for: `all`, or not.
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
