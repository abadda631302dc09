//! The processing of a Fetch response by a follower, partition by partition.
//!
//! Invariant: a response changes a log only if it is for the last request that named the partition, in the current
//! leader epoch, with the log end as fetch offset. Otherwise the partition is requested again, because the leader
//! assumes that the follower has the records.

use std::sync::Arc;

use super::super::fetched::{FetchedRecords, FollowerNotice, NotTaken};
use super::super::state::{FetchEvent, FetchState};
use super::super::truncation::LogSpan;
use super::{Followed, FollowerListener, PartitionKey, REPLICA_FETCH_VERSION, ReplicaFetcher};
use crate::ids::Offset;
use crate::partition::Partition;
use crate::throttle::ReplicationThrottle;
use pybroker_storage::AppendError;
use pybroker_wire::fetch::{FetchResponse, ReceivedPartition};
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::primitives::Malformed;
use pybroker_wire::{ErrorCode, TopicRef};

impl ReplicaFetcher {
    /// Processes a response of version [`REPLICA_FETCH_VERSION`], which starts with the correlation id.
    ///
    /// # Errors
    /// When it is not a valid Fetch response. The connection must then be closed.
    pub fn take_response(
        &mut self,
        frame: &[u8],
        now_ms: i64,
        listener: &mut dyn FollowerListener,
    ) -> Result<(), Malformed> {
        let response = FetchResponse::parse(frame, RESPONSE_BODY, REPLICA_FETCH_VERSION)?;
        let number = self.requests - (self.in_flight as u64).saturating_sub(1);
        self.in_flight = self.in_flight.saturating_sub(1);
        match response.error {
            ErrorCode::NONE => self.session.answered(response.session_id),
            ErrorCode::FETCH_SESSION_ID_NOT_FOUND => self.session.refused(true),
            ErrorCode::INVALID_FETCH_SESSION_EPOCH | ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR => {
                self.session.refused(false);
            }
            _ => {
                self.session.refused(false);
                let keys: Vec<_> = self.followed.keys().copied().collect();
                keys.iter().for_each(|key| self.back_off(key, now_ms));
            }
        }
        let mut to_sync = Vec::new();
        for received in &response.partitions {
            if let Some(partition) = self.take_partition(frame, number, received, now_ms, listener) {
                to_sync.push(partition);
            }
        }
        // Synced before the next request is built, because that request contains the durable end of the log
        // (`flush=group`).
        for (key, partition) in to_sync {
            if let Err(error) = partition.sync(&mut |waiter| listener.wake(waiter)) {
                if error.is_exhausted() {
                    listener.exhausted(&error.to_string());
                    self.back_off(&key, now_ms);
                } else {
                    listener.log_failed(&partition, &error.to_string());
                    self.set(&key, FetchEvent::LogFailed, now_ms);
                }
            }
        }
        Ok(())
    }

    /// Processes the response of request `number` for one partition. Returns the partition if its log must be synced
    /// before the next request.
    fn take_partition(
        &mut self,
        frame: &[u8],
        number: u64,
        received: &ReceivedPartition,
        now_ms: i64,
        listener: &mut dyn FollowerListener,
    ) -> Option<(PartitionKey, Arc<Partition>)> {
        let fetched = &received.partition;
        let TopicRef::Id(topic_id) = fetched.topic else { return None };
        let key = (topic_id, fetched.index);
        let followed = self.followed.get_mut(&key)?;
        let asked = followed.asked.as_ref()?;
        let (partition, following) = (Arc::clone(&followed.partition), followed.following);
        // A response to an older request: its records are in the log already, or it is from another leader. An error
        // of an older epoch must not make the partition wait for metadata that never arrives.
        let is_stale = number < followed.named_in
            || asked.leader_epoch != following.leader_epoch
            || asked.fetch_offset != partition.log().log_end_offset()
            || followed.state != FetchState::Fetching;
        if is_stale {
            followed.has_missed = true;
            self.changed.insert(key);
            return None;
        }
        let taken = match (fetched.error, fetched.diverging) {
            (ErrorCode::NONE, None) if partition.log().hole().is_some() => {
                let cut = partition.truncate_to_hole(following, now_ms);
                cut.map(|notice| notify(listener, &partition, notice))
            }
            (ErrorCode::NONE, None) => {
                let records = FetchedRecords {
                    fetch_offset: asked.fetch_offset,
                    high_watermark: fetched.high_watermark,
                    log_start_offset: fetched.log_start_offset,
                    batches: &frame[received.records.clone()],
                };
                followed.append(records, &self.throttle, now_ms, listener)
            }
            (ErrorCode::NONE, Some(diverging)) => {
                let cut = partition.cut_diverging(following, diverging, now_ms);
                cut.map(|notice| notify(listener, &partition, notice))
            }
            (ErrorCode::OFFSET_OUT_OF_RANGE, diverging) => {
                let end = Offset(diverging.map_or(-1, |leader| leader.end_offset));
                let leader = LogSpan { start: Offset(fetched.log_start_offset), end };
                let restarted = partition.restart_in_range(following, leader, now_ms);
                restarted.map(|notice| notify(listener, &partition, notice))
            }
            (ErrorCode::FENCED_LEADER_EPOCH, _) => {
                self.set(&key, FetchEvent::Fenced, now_ms);
                return None;
            }
            // The leader has not become leader yet, or has not opened the partition: retry soon.
            (_, _) => {
                self.back_off(&key, now_ms);
                return None;
            }
        };
        match taken {
            Ok(changed) => {
                self.set(&key, FetchEvent::Taken, now_ms);
                if changed {
                    self.changed.insert(key);
                }
                let syncs = changed && partition.log().is_synced_in_groups();
                syncs.then_some((key, partition))
            }
            Err(error) => {
                self.refuse(&key, &partition, &error, now_ms, listener);
                None
            }
        }
    }

    fn refuse(
        &mut self,
        key: &PartitionKey,
        partition: &Partition,
        error: &NotTaken,
        now_ms: i64,
        listener: &mut dyn FollowerListener,
    ) {
        match error {
            NotTaken::NotFollowing => self.set(key, FetchEvent::Fenced, now_ms),
            NotTaken::Outdated => {
                self.followed.entry(*key).and_modify(|followed| followed.has_missed = true);
                self.changed.insert(*key);
            }
            NotTaken::NoProgress => self.back_off(key, now_ms),
            NotTaken::Log(error) if error.is_exhausted() => {
                listener.exhausted(&error.to_string());
                self.back_off(key, now_ms);
            }
            NotTaken::Log(error) => {
                listener.log_failed(partition, &error.to_string());
                self.set(key, FetchEvent::LogFailed, now_ms);
            }
            NotTaken::Append(error @ AppendError::Exhausted { .. }) => {
                listener.exhausted(&error.to_string());
                self.back_off(key, now_ms);
            }
            NotTaken::Append(error @ AppendError::Io { .. }) => {
                listener.log_failed(partition, &error.to_string());
                // A full disk leaves the log unchanged, so the fetch is retried like a producer's append.
                if partition.log().is_offline() {
                    self.set(key, FetchEvent::LogFailed, now_ms);
                } else {
                    self.back_off(key, now_ms);
                }
            }
            NotTaken::Append(AppendError::Offline { .. }) => self.set(key, FetchEvent::LogFailed, now_ms),
            NotTaken::Append(error) => {
                listener.not_taken(partition, &error.to_string());
                self.back_off(key, now_ms);
            }
        }
    }
}

impl Followed {
    /// Appends the records of a response.
    fn append(
        &mut self,
        records: FetchedRecords<'_>,
        throttle: &ReplicationThrottle,
        now_ms: i64,
        listener: &mut dyn FollowerListener,
    ) -> Result<bool, NotTaken> {
        let bytes = records.batches.len();
        let mut wake = |waiter| listener.wake(waiter);
        let taken = self.partition.append_fetched(self.following, records, now_ms, &mut wake);
        if taken.is_ok() && bytes > 0 {
            listener.appended(bytes);
        }
        if self.partition.throttled().follower() {
            throttle.record(bytes, now_ms);
        }
        self.has_all = self.partition.log().log_end_offset() >= records.high_watermark;
        taken
    }
}

/// Reports a change of a partition's log, and returns true: there is more to fetch.
fn notify(listener: &mut dyn FollowerListener, partition: &Partition, notice: Option<FollowerNotice>) -> bool {
    if let Some(notice) = notice {
        listener.notice(partition, &notice);
    }
    true
}
