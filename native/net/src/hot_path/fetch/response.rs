//! The response to a Fetch: its size for the client's quota, the session's record of what is sent, the bytes.

use super::{FetchedBy, PendingFetch, Source};
use crate::connection::response::{Response, Slice};
use crate::hot_path::errors::ListenerView;
use crate::hot_path::fetch_plan::{Plan, Read, Throttled, is_news, note_sent};
use crate::hot_path::{HotPath, HotPathApi};
use crate::measures::counters::ThreadCounters;
use crate::quota::Throttle;
use pybroker_replica::{Isolation, SessionRefused, TopicTable};
use pybroker_storage::{ConvertedSlice, NotConverted};
use pybroker_wire::fetch::{FetchedHead, FetchedPartition, newest_format, write_response};
use pybroker_wire::frame::RequestHead;
use pybroker_wire::{BrokerEndpoint, ErrorCode};

/// Bytes that Kafka adds to the body for the size of a response (`FetchResponse.sizeOf`).
const SIZE_BYTES: usize = 4;

/// The response to a request with an invalid session id or epoch.
pub(super) fn refuse(head: &RequestHead, refused: SessionRefused, counters: &ThreadCounters) -> Response {
    let error = match refused {
        SessionRefused::NotFound => ErrorCode::FETCH_SESSION_ID_NOT_FOUND,
        SessionRefused::InvalidEpoch => ErrorCode::INVALID_FETCH_SESSION_EPOCH,
        SessionRefused::TopicIdError => ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR,
    };
    counters.error(HotPathApi::Fetch.key(), error);
    let mut bytes = Response::begin(head.correlation_id, 64);
    let fetched = FetchedHead { throttle_time_ms: 0, error, session_id: 0, read_committed: false };
    write_response(&mut bytes, head.api_version, fetched, &[], &[], &mut |_, _| {});
    Response::finish(bytes, Vec::new())
}

impl PendingFetch {
    /// The partition to return and its slice, as stored in the log or converted to the format that the client supports.
    fn slice(&self, read: Read) -> (FetchedPartition, Option<Slice>) {
        let Read { mut fetched, slice, max_decompressed, .. } = read;
        let (slice, magic) = match (slice, newest_format(self.version)) {
            (Some(slice), Some(magic)) => (slice, magic),
            (slice, _) => return (fetched, slice.map(Slice::File)),
        };
        fetched.records = 0;
        match ConvertedSlice::begin(slice, magic, max_decompressed) {
            Ok(converted) => {
                fetched.records = converted.len();
                let any = !converted.is_empty();
                return (fetched, any.then(|| Slice::Converted(Box::new(converted))));
            }
            Err(NotConverted::Codec) => fetched.error = ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            Err(NotConverted::Corrupt(_)) => fetched.error = ErrorCode::CORRUPT_MESSAGE,
            Err(NotConverted::Io(_)) => fetched.error = self.storage_error(),
        }
        (fetched.high_watermark, fetched.last_stable_offset) = (-1, -1);
        (fetched, None)
    }

    /// The first fields of the response.
    fn head(&self, throttle: Throttle, session_id: i32) -> FetchedHead {
        FetchedHead {
            throttle_time_ms: throttle.time_ms,
            error: ErrorCode::NONE,
            session_id,
            read_committed: self.fetched_by == FetchedBy::Consumer(Isolation::LastStable),
        }
    }

    /// Bytes of a response with these partitions, as Kafka counts them for `consumer_byte_rate`.
    fn size(&self, fetched: &[FetchedPartition], endpoints: &[&BrokerEndpoint]) -> usize {
        let mut body = Vec::with_capacity(96 + 64 * fetched.len());
        write_response(&mut body, self.version, self.head(Throttle::default(), 0), fetched, endpoints, &mut |_, _| {});
        SIZE_BYTES + body.len() + fetched.iter().map(|partition| partition.records).sum::<usize>()
    }

    /// The throttle time for a response with these reads; zero for a client without a quota.
    fn throttle(&self, hot_path: &HotPath, view: ListenerView<'_>, reads: &[Read]) -> Throttle {
        let Some(metered) = &self.metered else { return Throttle::default() };
        let mut reads: Vec<_> = reads.iter().collect();
        reads.sort_by_key(|read| read.place);
        let fetched: Vec<_> = reads.into_iter().map(|read| read.fetched.clone()).collect();
        let endpoints = view.endpoints(fetched.iter().filter_map(|fetched| fetched.current_leader));
        metered.fetched(self.size(&fetched, &endpoints), hot_path.clock.now())
    }

    /// The empty response to a throttled client. A session that would begin with this response is removed (KIP-219).
    fn put_off(&self, hot_path: &HotPath, throttle: Throttle) -> Response {
        let session_id = match &self.source {
            Source::Session { session, full: false } => session.lock().id(),
            Source::Session { session, full: true } => {
                let id = session.lock().id();
                hot_path.sessions.end(self.fetched_by.session_owner(), id);
                0
            }
            Source::Request(_) => 0,
        };
        let mut bytes = Response::begin(self.correlation_id, 64);
        write_response(&mut bytes, self.version, self.head(throttle, session_id), &[], &[], &mut |_, _| {});
        Response::finish(bytes, Vec::new()).muting(throttle)
    }

    /// Writes the response. A session leaves out unchanged partitions and records the offsets that it sends.
    pub(super) fn respond(
        &self,
        hot_path: &HotPath,
        view: ListenerView<'_>,
        plan: Plan,
        counters: &ThreadCounters,
    ) -> Response {
        let mut reads = plan.reads;
        let mut session_id = 0;
        if let Source::Session { session, full } = &self.source {
            let session = session.lock();
            session_id = session.id();
            reads.retain(|read| *full || is_news(&session, read));
        }
        let throttle = self.throttle(hot_path, view, &reads);
        if throttle.time_ms > 0 {
            return self.put_off(hot_path, throttle);
        }
        if let Source::Session { session, .. } = &self.source {
            let mut session = session.lock();
            reads.iter().for_each(|read| note_sent(&mut session, read));
        }
        if self.fetched_by.is_replica() {
            let counted = reads.iter().filter(|read| read.throttled == Throttled::Counted);
            let bytes = counted.map(|read| read.fetched.records).sum();
            hot_path.leader_throttle.record(bytes, hot_path.wall_ms());
        }
        // Kafka's schema groups partitions by topic; reading may have begun in the middle of a topic.
        reads.sort_by_key(|read| read.place);
        let (fetched, mut slices): (Vec<_>, Vec<_>) = reads.into_iter().map(|read| self.slice(read)).unzip();
        self.count(view.table, &fetched, counters);
        for error in fetched.iter().map(|fetched| fetched.error).filter(|error| *error != ErrorCode::NONE) {
            counters.error(HotPathApi::Fetch.key(), error);
        }
        let endpoints = view.endpoints(fetched.iter().filter_map(|fetched| fetched.current_leader));
        let head = self.head(throttle, session_id);
        let mut bytes = Response::begin(self.correlation_id, 96 + 64 * fetched.len());
        let mut placed = Vec::new();
        write_response(&mut bytes, self.version, head, &fetched, &endpoints, &mut |at, partition| {
            if let Some(slice) = slices[partition].take() {
                placed.push((at, slice));
            }
        });
        Response::finish(bytes, placed).for_follower(self.fetched_by.is_replica())
    }

    /// Counts the records sent, by topic.
    fn count(&self, table: &TopicTable, fetched: &[FetchedPartition], counters: &ThreadCounters) {
        for FetchedPartition { topic, records, .. } in fetched.iter().filter(|fetched| fetched.records > 0) {
            if self.fetched_by.is_replica() {
                counters.replicated(*records);
            } else if let Some(topic) = table.find(topic) {
                counters.of_topic(topic).sent(*records);
            }
        }
    }
}
