//! The processing of a Fetch response by a follower, partition by partition.
//!
//! Invariant: a response changes a log only if it is for the last request that named the partition, in the current
//! leader epoch, with the log end as fetch offset. Otherwise the partition is requested again, because the leader
//! assumes that the follower has the records.

use std::sync::Arc;

use super::super::fetched::{FetchedRecords, FollowerNotice, NotTaken};
use super::super::state::{FetchEvent, FetchState};
use super::super::truncation::LogSpan;
use super::{FetchPartition, Followed, FollowerListener, PartitionKey, REPLICA_FETCH_VERSION, ReplicaFetcher};
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
        self.take_session(&response, now_ms);
        let mut to_sync = Vec::new();
        for received in &response.partitions {
            if let Some(partition) = self.take_partition(frame, number, received, now_ms, listener) {
                to_sync.push(partition);
            }
        }
        self.sync(to_sync, now_ms, listener);
        Ok(())
    }

    /// Processes the session and the error of a whole response.
    fn take_session(&mut self, response: &FetchResponse, now_ms: i64) {
        match response.error {
            ErrorCode::NONE => self.session.responded(response.session_id),
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
    }

    /// Syncs logs before the next request is built, because that request contains the durable end of each log
    /// (`flush=group`).
    fn sync(
        &mut self,
        partitions: Vec<(PartitionKey, Arc<Partition>)>,
        now_ms: i64,
        listener: &mut dyn FollowerListener,
    ) {
        for (key, partition) in partitions {
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
        let TopicRef::Id(topic_id) = received.partition.topic else { return None };
        let key = (topic_id, received.partition.index);
        let followed = self.followed.get_mut(&key)?;
        let requested = followed.requested.as_ref()?;
        if followed.is_stale(requested, number) {
            followed.has_missed = true;
            self.changed.insert(key);
            return None;
        }
        let partition = Arc::clone(&followed.partition);
        let changed = match received.partition.error {
            ErrorCode::NONE => {
                let (fetch_offset, records) = (Offset(requested.fetch_offset), &frame[received.records.clone()]);
                followed.take_records(fetch_offset, received, records, &self.throttle, now_ms, listener)
            }
            ErrorCode::OFFSET_OUT_OF_RANGE => followed.restart(received, now_ms, listener),
            ErrorCode::FENCED_LEADER_EPOCH => {
                self.set(&key, FetchEvent::Fenced, now_ms);
                return None;
            }
            // The leader has not become leader yet, or has not opened the partition: retry soon.
            _ => {
                self.back_off(&key, now_ms);
                return None;
            }
        };
        match changed {
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
    /// Whether a response is for an older request than the last one that named the partition.
    ///
    /// Its records are in the log already, or it is from another leader. An error of an older epoch must not make the
    /// partition wait for metadata that never arrives.
    fn is_stale(&self, requested: &FetchPartition, number: u64) -> bool {
        number < self.named_in
            || requested.leader_epoch != self.following.leader_epoch
            || requested.fetch_offset != self.partition.log().log_end_offset()
            || self.state != FetchState::Fetching
    }

    /// Processes a response without an error: truncates the log to a hole or to the diverging epoch, or appends. Returns
    /// whether the log has changed.
    fn take_records(
        &mut self,
        fetch_offset: Offset,
        received: &ReceivedPartition,
        batches: &[u8],
        throttle: &ReplicationThrottle,
        now_ms: i64,
        listener: &mut dyn FollowerListener,
    ) -> Result<bool, NotTaken> {
        let fetched = &received.partition;
        if let Some(diverging) = fetched.diverging {
            let cut = self.partition.cut_diverging(self.following, diverging, now_ms)?;
            return Ok(notify(listener, &self.partition, cut));
        }
        if self.partition.log().hole().is_some() {
            let cut = self.partition.truncate_to_hole(self.following, now_ms)?;
            return Ok(notify(listener, &self.partition, cut));
        }
        let records = FetchedRecords {
            fetch_offset: fetch_offset.0,
            high_watermark: fetched.high_watermark,
            log_start_offset: fetched.log_start_offset,
            batches,
        };
        self.append(records, throttle, now_ms, listener)
    }

    /// Restarts the log within the leader's range of offsets. Returns whether the log has changed.
    fn restart(
        &self,
        received: &ReceivedPartition,
        now_ms: i64,
        listener: &mut dyn FollowerListener,
    ) -> Result<bool, NotTaken> {
        let fetched = &received.partition;
        let end = Offset(fetched.diverging.map_or(-1, |leader| leader.end_offset));
        let leader = LogSpan { start: Offset(fetched.log_start_offset), end };
        let restarted = self.partition.restart_in_range(self.following, leader, now_ms)?;
        Ok(notify(listener, &self.partition, restarted))
    }

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
