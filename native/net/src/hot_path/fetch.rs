//! Fetch, from the frame to the response: at once when enough bytes are available, else when they arrive or the wait ends.

use std::sync::Arc;

use parking_lot::Mutex;

use super::errors::{self, ListenerView};
use super::fetch_plan::{Plan, Read, Sent, Throttled, note_offsets};
use super::fetcher::{
    FetchedBy, NotServed, deduplicated, locate, note_positions, nothing_fetched, preferred_replica, throttled, topic_of,
};
use super::rights::{Checked, Refused};
use super::{Authorization, HotPath, HotPathRequest, Outcome, Right, Who};
use crate::connection::response::Response;
use crate::measures::counters::ThreadCounters;
use crate::quota::Metered;
use pybroker_record::{Compression, Offset};
use pybroker_replica::{
    Agreement, FetchSession, FetchSessionId, Isolation, Partition, SessionPartition, SessionRefused, Topic, TopicTable,
    Waiter, WaitingFetch,
};
use pybroker_storage::ReadError;
use pybroker_wire::ErrorCode;
use pybroker_wire::fetch::{DivergingEpoch, FetchPartition, FetchRequest, FetchedPartition, names_by_id};
use pybroker_wire::frame::RequestHead;

/// First Fetch version whose clients support zstd (KIP-110).
const ZSTD_VERSION: i16 = 10;
/// First Fetch version whose clients know KAFKA_STORAGE_ERROR (KIP-112).
const STORAGE_ERROR_VERSION: i16 = 6;

mod response;

/// The partitions that a fetch reads.
#[derive(Debug)]
enum Source {
    /// The partitions of the request alone.
    Request(Vec<FetchPartition>),
    /// The partitions of a session; a `full` response names every one of them.
    Session { session: Arc<Mutex<FetchSession>>, full: bool },
}

/// A fetch between its request and its response.
#[derive(Debug)]
pub struct PendingFetch {
    version: i16,
    correlation_id: i32,
    max_wait_ms: u64,
    max_bytes: usize,
    fetched_by: FetchedBy,
    /// The consumer's rack, if another broker is in it.
    rack: Option<Arc<str>>,
    /// The topics that the client may not read.
    refused: Refused,
    source: Source,
    /// The usage to record against the consumer's quotas; `None` for replication.
    metered: Option<Metered>,
    /// The entry in the purgatory, once the fetch waits. `registered` has the partitions that it waits for.
    waiting: Option<Arc<WaitingFetch>>,
    registered: Vec<Arc<Partition>>,
}

/// Reads the partitions of a Fetch and responds, or lets the fetch wait.
pub fn handle(
    hot_path: &HotPath,
    requested: HotPathRequest<'_>,
    frame: &[u8],
    wake: &mut dyn FnMut(Waiter),
    counters: &ThreadCounters,
) -> Outcome {
    let HotPathRequest { head, waiter, listener, who, decided, metered, .. } = requested;
    let request = match FetchRequest::parse(frame, head.body, head.api_version) {
        Ok(request) => FetchRequest { partitions: deduplicated(request.partitions), ..request },
        Err(error) => return Outcome::Close(format!("malformed Fetch version {}: {error}", head.api_version)),
    };
    let refused = match check(hot_path, who, &request, decided) {
        Ok(refused) => refused,
        Err(outcome) => return outcome,
    };
    let (min_bytes, max_wait_ms) = (i64::from(request.min_bytes), request.max_wait_ms.max(0) as u64);
    let mut pending = match begin(hot_path, head, request, refused, metered, wake) {
        Ok(pending) => pending,
        Err(refused) => return Outcome::Response(response::refuse(head, refused, counters)),
    };
    // A response is never larger than the quota allows: a client that waits for more bytes would wait in vain.
    let min_bytes = min_bytes.min(i64::try_from(pending.max_bytes).unwrap_or(i64::MAX));
    let table = hot_path.table.load();
    let view = ListenerView { table: &table, listener };
    pending.note_positions(hot_path, &table, wake);
    let plan = pending.plan(hot_path, &table, Some(counters));
    if max_wait_ms == 0 || plan.enough(min_bytes) || pending.begins_follower_session() {
        return Outcome::Response(pending.respond(hot_path, view, plan, counters));
    }
    if pending.fetched_by.is_replica() && plan.is_held_back() {
        let wait_ms = hot_path.leader_throttle.wait_ms(hot_path.wall_ms());
        pending.max_wait_ms = pending.max_wait_ms.min(u64::try_from(wait_ms).unwrap_or(0).max(1));
    }
    pending.wait(&table, WaitingFetch::new(waiter, min_bytes - plan.bytes), &plan);
    // An append between the plan and the registration did not complete this fetch.
    let again = pending.plan(hot_path, &table, None);
    if (again.bytes > plan.bytes || again.failed) && again.enough(min_bytes) && pending.claim() {
        pending.leave();
        return Outcome::Response(pending.respond(hot_path, view, again, counters));
    }
    pending.metered = pending.metered.map(Metered::pause);
    Outcome::Wait(Box::new(pending))
}

/// Authorizes a fetch, the partitions of its session included; the outcome if the control plane has to decide first.
fn check(
    hot_path: &HotPath,
    who: Option<Who>,
    request: &FetchRequest<'_>,
    decided: Option<&Authorization>,
) -> Result<Refused, Outcome> {
    let fetched_by = FetchedBy::of(request);
    let right = if fetched_by.is_replica() { Right::ClusterAction } else { Right::Read };
    let table = hot_path.table.load();
    let named = request.partitions.iter().map(|partition| &partition.topic);
    let session = who
        .filter(|_| request.session_epoch > 0)
        .and_then(|_| hot_path.sessions.peek(fetched_by.session_owner(), FetchSessionId(request.session_id)));
    let session = session.as_ref().map(|session| session.lock());
    let kept = session.as_ref().map_or(&[][..], |session| session.partitions());
    let topics = named.clone().chain(kept.iter().map(|partition| &partition.requested.topic));
    match hot_path.check(who, right, &table, topics.clone(), decided) {
        Checked::Known(refused) if decided.is_some() => Ok(refused),
        Checked::Known(refused) => match errors::unresolved(&table, named) {
            None => Ok(refused),
            // The retried request needs a decision about the right as well: the right of a broker is not about topics.
            Some(_) if who.is_some() => Err(errors::to_be_checked(&table, topics, right, None)),
            Some(unresolved) => Err(unresolved),
        },
        Checked::Unknown => Err(errors::to_be_checked(&table, topics, right, None)),
    }
}

/// Finds or creates the fetch session of a request (KIP-227).
fn begin(
    hot_path: &HotPath,
    head: &RequestHead,
    request: FetchRequest<'_>,
    refused: Refused,
    metered: Option<Metered>,
    wake: &mut dyn FnMut(Waiter),
) -> Result<PendingFetch, SessionRefused> {
    let fetched_by = FetchedBy::of(&request);
    let metered = metered.filter(|_| !fetched_by.is_replica());
    let owner = fetched_by.session_owner();
    let by_id = names_by_id(head.api_version);
    let now = hot_path.wall_ms();
    let source = match (request.session_id, request.session_epoch) {
        // A client that may read nothing gets no session and evicts no other session.
        (_, 0 | -1) if matches!(refused, Refused::Everything) => Source::Request(request.partitions),
        _ if matches!(refused, Refused::Everything) => return Err(SessionRefused::NotFound),
        (id, epoch @ (0 | -1)) => {
            if id != 0 {
                hot_path.sessions.end(owner, id);
            }
            let made = if epoch == 0 && !request.partitions.is_empty() {
                hot_path.sessions.begin(owner, by_id, request.partitions.clone(), now)
            } else {
                None
            };
            match made {
                Some(session) => Source::Session { session, full: true },
                None => Source::Request(request.partitions),
            }
        }
        (id, epoch) => {
            let session = hot_path.sessions.resume(owner, FetchSessionId(id), epoch, by_id, now)?;
            let (before, is_empty) = {
                let mut session = session.lock();
                session.update(request.partitions, &request.forgotten);
                (session.set_waiting(None), session.partitions().is_empty())
            };
            if let Some(before) = before.filter(|before| before.supersede()) {
                wake(before.waiter());
            }
            if is_empty {
                // The session has no partitions left to remember (Kafka's `FetchManager.newContext`).
                hot_path.sessions.end(owner, id);
                Source::Request(Vec::new())
            } else {
                Source::Session { session, full: false }
            }
        }
    };
    let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0);
    let allowed = metered.as_ref().map_or(usize::MAX, Metered::max_fetched_bytes);
    let racks = hot_path.read_replicas.load();
    let rack = racks.as_ref().filter(|_| !fetched_by.is_replica()).and_then(|racks| racks.other_rack(request.rack));
    Ok(PendingFetch {
        version: head.api_version,
        correlation_id: head.correlation_id,
        max_wait_ms: request.max_wait_ms.max(0) as u64,
        // A follower's limit is the setting of a broker, not of a client.
        max_bytes: if fetched_by.is_replica() {
            max_bytes
        } else {
            max_bytes.min(hot_path.fetch_max_bytes).min(allowed)
        },
        fetched_by,
        rack,
        refused,
        source,
        metered,
        waiting: None,
        registered: Vec::new(),
    })
}

impl PendingFetch {
    /// The longest wait, ms.
    pub fn max_wait_ms(&self) -> u64 {
        self.max_wait_ms
    }

    /// Memory that the fetch takes while it waits. The partitions of sessions are not counted: sessions have their own
    /// limit.
    pub fn memory(&self) -> u64 {
        let named = match &self.source {
            Source::Request(partitions) => std::mem::size_of_val(partitions.as_slice()),
            Source::Session { .. } => 0,
        };
        (named + std::mem::size_of_val(self.registered.as_slice())) as u64
    }

    /// Whether the response has to return a new session's id at once: a follower names the session when its partitions
    /// change.
    fn begins_follower_session(&self) -> bool {
        self.fetched_by.is_replica() && matches!(self.source, Source::Session { full: true, .. })
    }

    /// Claims the right to respond; see [`WaitingFetch::claim`].
    pub fn claim(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.claim())
    }

    /// Responds with the records available at this time.
    pub fn complete(mut self, hot_path: &HotPath, listener: &str, counters: &ThreadCounters) -> Response {
        let superseded = self.waiting.as_ref().is_some_and(|waiting| waiting.is_superseded());
        self.leave();
        self.metered.iter_mut().for_each(Metered::resume);
        let table = hot_path.table.load();
        let plan = if superseded { Plan::nothing() } else { self.plan(hot_path, &table, Some(counters)) };
        self.respond(hot_path, ListenerView { table: &table, listener }, plan, counters)
    }

    /// Ends the fetch without a response: its connection has closed.
    pub fn abandon(mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            for partition in self.registered.drain(..) {
                partition.stop_waiting(&waiting);
            }
        }
    }

    fn wait(&mut self, table: &TopicTable, waiting: Arc<WaitingFetch>, plan: &Plan) {
        let mut registered = Vec::new();
        let mut reads = plan.reads.iter();
        let isolation = self.fetched_by.isolation();
        self.source.each(|place, partition, _| {
            let read = reads.next().filter(|read| read.place == place);
            if read.is_some_and(|read| read.throttled == Throttled::HeldBack) {
                // New records do not help: the throttle withholds them.
                return;
            }
            let seen = read.map_or(-1, |read| read.end);
            let slot = table.find(&partition.topic).and_then(|topic| topic.slot(partition.index.0));
            if let Some(replica) = slot.and_then(|slot| slot.partition.as_ref()) {
                replica.wait(&waiting, isolation, seen);
                registered.push(Arc::clone(replica));
            }
        });
        self.registered = registered;
        if let Source::Session { session, .. } = &self.source
            && self.fetched_by.is_replica()
        {
            session.lock().set_waiting(Some(Arc::clone(&waiting)));
        }
        self.waiting = Some(waiting);
    }

    /// Records the log offsets that a follower reports, once for each request.
    fn note_positions(&self, hot_path: &HotPath, table: &TopicTable, wake: &mut dyn FnMut(Waiter)) {
        if let FetchedBy::Replica(replica) = self.fetched_by
            && !matches!(self.refused, Refused::Everything)
        {
            let now_ms = hot_path.wall_ms();
            self.source.each(|_, requested, _| note_positions(hot_path, table, replica, requested, now_ms, wake));
        }
    }

    /// Plans the read of every partition, without a change to the session. A session starts after the partitions of its last
    /// response, so that a busy partition does not starve the others. `counters`, if given, count the partitions read.
    fn plan(&self, hot_path: &HotPath, table: &TopicTable, counters: Option<&ThreadCounters>) -> Plan {
        let mut plan = Plan::nothing();
        self.source.each(|place, partition, sent| {
            let topic = topic_of(table, partition);
            let read = self.read(hot_path, topic, place, partition, plan.bytes);
            if let (Some(counters), Ok(topic)) = (counters, topic) {
                counters.of_topic(topic).read(!errors::is_usual(read.fetched.error));
            }
            plan.bytes += read.fetched.records as i64;
            plan.failed |= read.is_urgent();
            if let Some(sent) = sent
                && self.fetched_by.is_replica()
            {
                // Consumers read from followers (KIP-392): they need a new high watermark without delay.
                let is_committed = sent.high_watermark < read.fetched.high_watermark;
                // A DeleteRecords request waits until the followers have deleted the records.
                let is_deleted = (0..read.fetched.log_start_offset).contains(&sent.log_start);
                plan.failed |= is_deleted || (is_committed && hot_path.is_high_watermark_eager());
            }
            plan.reads.push(read);
        });
        plan
    }

    /// Plans the read of one partition; `taken` bytes of the response are already planned.
    fn read(
        &self,
        hot_path: &HotPath,
        topic: Result<&Topic, NotServed>,
        place: usize,
        partition: &FetchPartition,
        taken: i64,
    ) -> Read {
        let mut fetched = nothing_fetched(partition);
        if self.refused.contains(&partition.topic) {
            fetched.error = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
            return Read::nothing(place, fetched);
        }
        let located = topic.and_then(|topic| locate(topic, partition, self.fetched_by, self.version));
        let replica = match located {
            Ok(replica) => replica,
            Err((error, leader)) => {
                (fetched.error, fetched.current_leader) = (error, leader);
                return Read::nothing(place, fetched);
            }
        };
        if self.version < ZSTD_VERSION && replica.log().compression() == Some(Compression::Zstd) {
            fetched.error = ErrorCode::UNSUPPORTED_COMPRESSION_TYPE;
            return Read::nothing(place, fetched);
        }
        let preferred = self.rack.as_ref().and_then(|rack| preferred_replica(hot_path, rack, replica, partition));
        if let Some(preferred) = preferred {
            fetched.preferred_read_replica = preferred;
            note_offsets(&mut fetched, replica);
            return Read::nothing(place, fetched);
        }
        let end = match self.fetched_by.isolation() {
            Isolation::HighWatermark => replica.high_watermark(),
            Isolation::LastStable => replica.last_stable_offset(),
            Isolation::LogEnd => replica.log().log_end_offset(),
        };
        let left = self.max_bytes.saturating_sub(taken as usize);
        let wanted = left.min(usize::try_from(partition.max_bytes).unwrap_or(0));
        let agreement = replica.agreement(partition.last_fetched_epoch, Offset(partition.fetch_offset));
        note_offsets(&mut fetched, replica);
        match agreement {
            Agreement::Agrees => {}
            Agreement::Diverges(diverging) => {
                fetched.diverging = Some(diverging);
                return Read::nothing(place, fetched);
            }
            Agreement::Unknown => return self.out_of_range(replica, place, fetched),
        }
        let offsets = Offset(partition.fetch_offset)..Offset(end);
        // The first batch is returned whole however large it is, so that a consumer always makes progress (KIP-74).
        let planned = if self.fetched_by == FetchedBy::Consumer(Isolation::LastStable) {
            replica.plan_read_committed(offsets, wanted, taken == 0)
        } else {
            replica.plan_read(offsets, wanted, taken == 0).map(|slice| (slice, Vec::new()))
        };
        match planned {
            Ok((slice, aborted)) if slice.len > 0 => {
                let throttled = throttled(hot_path, self.fetched_by, replica);
                if throttled == Throttled::HeldBack {
                    return Read { throttled, ..Read::nothing(place, fetched) };
                }
                let max_decompressed = replica.log().max_decompressed_bytes();
                Read { end, throttled, max_decompressed, ..Read::nothing(place, fetched) }.with(slice, &aborted)
            }
            Ok(_) => Read { end, ..Read::nothing(place, fetched) },
            Err(ReadError::OffsetOutOfRange { .. }) => self.out_of_range(replica, place, fetched),
            Err(error) => {
                let error = self.unreadable(hot_path, replica, partition.fetch_offset, &error);
                Read::nothing(place, FetchedPartition { error, ..nothing_fetched(partition) })
            }
        }
    }

    /// The response for an offset out of range. A follower gets the start and end offset of this log, so that it can
    /// continue (docs/adr/0045).
    fn out_of_range(&self, replica: &Partition, place: usize, mut fetched: FetchedPartition) -> Read {
        fetched.error = ErrorCode::OFFSET_OUT_OF_RANGE;
        (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset) = (-1, -1, -1);
        if self.fetched_by.is_replica() {
            let position = replica.fetch_position();
            fetched.log_start_offset = position.log_start_offset;
            fetched.diverging = Some(DivergingEpoch { epoch: position.last_epoch.0, end_offset: position.offset });
        }
        Read::nothing(place, fetched)
    }

    /// The error code of a failed read, which is logged.
    fn unreadable(&self, hot_path: &HotPath, replica: &Partition, offset: i64, error: &ReadError) -> ErrorCode {
        match error {
            ReadError::Corrupt { .. } => {
                hot_path.unreadable(replica, offset, &error.to_string());
                ErrorCode::CORRUPT_MESSAGE
            }
            // Retriable.
            ReadError::Exhausted { .. } => {
                hot_path.exhausted(&error.to_string());
                self.storage_error()
            }
            ReadError::Io { .. } | ReadError::OffsetOutOfRange { .. } => self.storage_error(),
        }
    }

    /// The error code of a failed log directory. An older client does not know KAFKA_STORAGE_ERROR: the other code makes it
    /// refresh its metadata.
    fn storage_error(&self) -> ErrorCode {
        if self.version < STORAGE_ERROR_VERSION {
            ErrorCode::NOT_LEADER_OR_FOLLOWER
        } else {
            ErrorCode::KAFKA_STORAGE_ERROR
        }
    }
}

impl Source {
    /// Visits the partitions in read order, each with its position and, in a session, the offsets last sent.
    fn each(&self, mut visit: impl FnMut(usize, &FetchPartition, Option<Sent>)) {
        match self {
            Source::Request(partitions) => partitions.iter().enumerate().for_each(|(place, p)| visit(place, p, None)),
            Source::Session { session, .. } => {
                let session = session.lock();
                let (first, partitions) = (session.first(), session.partitions());
                let rotated = (first..partitions.len()).chain(0..first);
                rotated.for_each(|place| {
                    let SessionPartition { requested, sent_high_watermark, sent_log_start } = &partitions[place];
                    visit(
                        place,
                        requested,
                        Some(Sent { high_watermark: *sent_high_watermark, log_start: *sent_log_start }),
                    );
                });
            }
        }
    }
}
