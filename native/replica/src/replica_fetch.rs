//! A follower's Fetch, as its leader sees it: where the logs part, and what the leader learns from it.
//!
//! The position that a Fetch names is noted before anything is read, and only where the follower's log is known to be a
//! beginning of this one: what a diverging log has is not what is committed here.

use super::ids::{BrokerId, LeaderEpoch, Offset};
use super::leader::{CaughtUp, Eligibility, FollowerPosition};
use super::partition::Partition;
use super::waiting::Waiter;
use pybroker_storage::RepairedEpochs;
use pybroker_wire::fetch::{DivergingEpoch, FetchPartition, ReplicaState};

/// What a reader's last epoch and offset say about its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// It is a beginning of this one, or the reader does not say.
    Agrees,
    /// It has records of an epoch that ended earlier here (KIP-595).
    Diverges(DivergingEpoch),
    /// Where that epoch ended is not known here.
    Unknown,
}

impl Partition {
    /// Compares a reader's log with this one, by the epoch of its last record and its end.
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

    /// Compares the leader epochs with the log where a follower's log seems to diverge from it: by a damaged list, a leader
    /// would truncate what is committed. Returns the repair.
    pub fn verify_epochs_for(&self, asked: &FetchPartition) -> Option<RepairedEpochs> {
        if self.agreement(asked.last_fetched_epoch, Offset(asked.fetch_offset)) == Agreement::Agrees {
            return None;
        }
        // The read of the same Fetch reports a log that cannot be read.
        self.log().verify_epochs(self.leader_epoch()).unwrap_or(None)
    }

    /// Notes what a follower's Fetch says of its log. Nothing is noted where the Fetch is to be answered with an error or a
    /// diverging epoch.
    pub fn note_fetch(
        &self,
        replica: ReplicaState,
        eligible: Eligibility,
        asked: &FetchPartition,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> CaughtUp {
        let in_range = (self.log().log_start_offset()..=self.log().log_end_offset()).contains(&asked.fetch_offset);
        if !in_range || self.agreement(asked.last_fetched_epoch, Offset(asked.fetch_offset)) != Agreement::Agrees {
            return CaughtUp::NoNews;
        }
        // An older follower does not name it.
        let is_named = asked.leader_epoch.0 >= 0;
        let leader_epoch = if is_named { asked.leader_epoch } else { LeaderEpoch(self.leader_epoch()) };
        let position = FollowerPosition {
            replica: BrokerId(replica.id),
            broker_epoch: replica.epoch,
            leader_epoch,
            log_end_offset: asked.fetch_offset,
            log_start_offset: asked.log_start_offset,
            eligible,
        };
        // Why it is refused is the answer's affair.
        self.update_replica_position(position, now_ms, wake).unwrap_or(CaughtUp::NoNews)
    }
}
