//! A follower's Fetch on the leader: the check for divergence, and the update of the follower's position.
//!
//! The position is updated before the read, and only if the follower's log is known to be a prefix of this one:
//! records of a diverging log do not count as committed.

use super::ids::{BrokerId, LeaderEpoch, Offset};
use super::leader::{CaughtUp, Eligibility, FollowerPosition};
use super::partition::Partition;
use super::waiting::Waiter;
use pybroker_storage::RepairedEpochs;
use pybroker_wire::fetch::{DivergingEpoch, FetchPartition, ReplicaState};

/// The result of comparing a reader's last epoch and offset with this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The reader's log is a prefix of this one, or the reader did not send its last epoch.
    Agrees,
    /// The reader's log has records of an epoch that ended earlier in this log (KIP-595).
    Diverges(DivergingEpoch),
    /// The end of the reader's last epoch is unknown here.
    Unknown,
}

impl Partition {
    /// Compares a reader's log with this one, by the epoch of its last record and its end offset.
    pub fn agreement(&self, LeaderEpoch(last_fetched_epoch): LeaderEpoch, fetch_offset: Offset) -> Agreement {
        if last_fetched_epoch < 0 {
            return Agreement::Agrees;
        }
        let (epoch, end_offset) = self.log().end_offset_for_epoch(last_fetched_epoch);
        if epoch < 0 || end_offset < 0 {
            Agreement::Unknown
        } else if epoch < last_fetched_epoch || end_offset < fetch_offset.0 {
            Agreement::Diverges(DivergingEpoch { epoch, end_offset })
        } else {
            Agreement::Agrees
        }
    }

    /// Verifies the leader epochs if a follower's log seems to diverge: with a damaged list, the leader would
    /// truncate committed records. Returns the repair, if there was one.
    pub fn verify_epochs_for(&self, requested: &FetchPartition) -> Option<RepairedEpochs> {
        if self.agreement(requested.last_fetched_epoch, Offset(requested.fetch_offset)) == Agreement::Agrees {
            return None;
        }
        // If the log cannot be read, the read of the same Fetch reports the error.
        self.log().verify_epochs(self.leader_epoch()).unwrap_or(None)
    }

    /// Updates the follower's position from its Fetch. Does nothing if the response will contain an error or a
    /// diverging epoch.
    pub fn note_fetch(
        &self,
        replica: ReplicaState,
        eligible: Eligibility,
        requested: &FetchPartition,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> CaughtUp {
        let in_range = (self.log().log_start_offset()..=self.log().log_end_offset()).contains(&requested.fetch_offset);
        if !in_range
            || self.agreement(requested.last_fetched_epoch, Offset(requested.fetch_offset)) != Agreement::Agrees
        {
            return CaughtUp::NoNews;
        }
        // An older follower does not send it.
        let is_named = requested.leader_epoch.0 >= 0;
        let leader_epoch = if is_named { requested.leader_epoch } else { LeaderEpoch(self.leader_epoch()) };
        let position = FollowerPosition {
            replica: BrokerId(replica.id),
            broker_epoch: replica.epoch,
            leader_epoch,
            log_end_offset: requested.fetch_offset,
            log_start_offset: requested.log_start_offset,
            eligible,
        };
        // The response reports the reason.
        self.update_replica_position(position, now_ms, wake).unwrap_or(CaughtUp::NoNews)
    }
}
