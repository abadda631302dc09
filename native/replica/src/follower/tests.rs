//! Followers over a network that is a function call: the requests of a fetcher, and random histories.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::fetched::{FetchedRecords, NotTaken};
use super::{FetchState, FetcherSettings, FollowerListener, FollowerNotice, REPLICA_FETCH_VERSION, ReplicaFetcher};
use crate::log_fixture::{NOW, build, config, quick_directory};
use crate::{
    Agreement, BrokerId, Eligibility, FollowerInSync, Following, LeaderEpoch, Leadership, Offset, Partition,
    ReplicationThrottle, ThrottleLimit, Waiter,
};
use pybroker_record::{Batches, Compression};
use pybroker_storage::{Log, LogConfig, OpenLog};
use pybroker_wire::fetch::{
    DivergingEpoch, FetchPartition, FetchRequest, FetchedHead, FetchedPartition, write_response,
};
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::{ErrorCode, TopicRef};

pub(super) const TOPIC_ID: [u8; 16] = [7; 16];
const SETTINGS: FetcherSettings = FetcherSettings {
    replica: BrokerId(0),
    broker_epoch: 1,
    min_bytes: 1,
    max_wait_ms: 500,
    max_bytes: 1 << 20,
    response_max_bytes: 10 << 20,
    first_backoff_ms: 10,
    backoff_ms: 1000,
};

pub(super) fn no_limit() -> Arc<ReplicationThrottle> {
    Arc::new(ReplicationThrottle::new(ThrottleLimit::NONE))
}

#[derive(Default)]
pub(super) struct Reported(pub(super) Vec<String>);

impl FollowerListener for Reported {
    fn wake(&mut self, _waiter: Waiter) {}

    fn log_failed(&mut self, _partition: &Partition, error: &str) {
        panic!("the log failed: {error}");
    }

    fn exhausted(&mut self, error: &str) {
        panic!("{error}");
    }

    fn not_taken(&mut self, _partition: &Partition, why: &str) {
        self.0.push(why.to_owned());
    }

    fn notice(&mut self, _partition: &Partition, notice: &FollowerNotice) {
        self.0.push(notice.to_string());
    }
}

/// A broker with one partition; its directory stays when its process ends.
pub(super) struct Broker {
    id: i32,
    pub(super) partition: Arc<Partition>,
    pub(super) fetcher: ReplicaFetcher,
    /// The reports of its fetcher.
    pub(super) reported: Reported,
    /// Whether it truncates its log to its high watermark when it becomes follower, and compares no epochs, as before
    /// KIP-101.
    by_watermark: bool,
}

fn open(directory: &Path, config: LogConfig, high_watermark: i64) -> Arc<Partition> {
    open_index(0, directory, config, high_watermark)
}

fn open_index(index: i32, directory: &Path, config: LogConfig, high_watermark: i64) -> Arc<Partition> {
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark, now_ms: NOW };
    let (log, _) = Log::open(&directory.join(format!("t-{index}")), config, how).unwrap();
    Arc::new(Partition::new("t".into(), index, TOPIC_ID, directory.to_path_buf(), log, high_watermark))
}

impl Broker {
    pub(super) fn start(id: i32, directory: &Path) -> Self {
        Self::with(id, directory, config(), no_limit())
    }

    pub(super) fn with(id: i32, directory: &Path, config: LogConfig, throttle: Arc<ReplicationThrottle>) -> Self {
        let settings = FetcherSettings { replica: BrokerId(id), ..SETTINGS };
        let fetcher = ReplicaFetcher::new(settings, throttle);
        let reported = Reported::default();
        Self { id, partition: open(directory, config, 0), fetcher, reported, by_watermark: false }
    }

    pub(super) fn truncating(self, by_watermark: bool) -> Self {
        Self { by_watermark, ..self }
    }

    /// Ends the process and starts another one, with the oldest possible checkpointed high watermark.
    pub(super) fn restart(self, directory: &Path, high_watermark: i64) -> Self {
        self.partition.log().close().unwrap();
        let (id, by_watermark) = (self.id, self.by_watermark);
        drop(self);
        let mut next = Self::start(id, &directory.join("gone")).truncating(by_watermark);
        next.partition = open(directory, config(), high_watermark);
        next
    }

    pub(super) fn lead(&self, epoch: i32, others: &[i32]) {
        let followers = others.iter().map(|&id| FollowerInSync { id: BrokerId(id), in_sync: true }).collect();
        let leadership =
            Leadership { leader_epoch: LeaderEpoch(epoch), partition_epoch: epoch, followers, min_in_sync: 1 };
        self.partition.become_leader(leadership, NOW, &mut |_| ()).unwrap();
    }

    pub(super) fn follow(&mut self, epoch: i32, leader: i32) {
        let following = Following { leader: BrokerId(leader), leader_epoch: LeaderEpoch(epoch) };
        self.partition.become_follower(following, &mut |_| ()).unwrap();
        if self.by_watermark {
            self.partition.log().truncate_to(Offset(self.partition.high_watermark()), NOW).unwrap();
        }
        self.fetcher.follow(Arc::clone(&self.partition), following);
    }

    pub(super) fn append(&self, records: usize) {
        for _ in 0..records {
            let (mut bytes, _) = build(&[20], 0, (-1, -1, -1), Compression::None);
            self.partition.append(&mut bytes, false, NOW, &mut |_| ()).unwrap();
        }
    }

    pub(super) fn end(&self) -> i64 {
        self.partition.log().log_end_offset()
    }

    /// Returns offset and epoch of each batch.
    pub(super) fn batches(&self) -> Vec<(i64, i32)> {
        let bytes = read(&self.partition, self.partition.log().log_start_offset());
        Batches::new(&bytes)
            .map(|batch| batch.unwrap().0)
            .map(|it| (it.base_offset, it.partition_leader_epoch))
            .collect()
    }

    /// Sends one request to the leader and processes the response. Returns the request.
    pub(super) fn fetch(&mut self, leader: &Self) -> Option<FetchRequest<'static>> {
        let request = self.fetcher.next_request(NOW)?;
        let mut known = Vec::new();
        // The request names only changed partitions. This leader has no session, so it gets the partition's position
        // each time.
        let position = self.partition.fetch_position();
        if let Some(following) = following(&self.partition) {
            known.push(FetchPartition {
                topic: TopicRef::Id(TOPIC_ID),
                index: crate::PartitionIndex(0),
                fetch_offset: position.offset,
                max_bytes: SETTINGS.max_bytes,
                leader_epoch: following.leader_epoch,
                last_fetched_epoch: position.last_epoch,
                log_start_offset: position.log_start_offset,
            });
        }
        let frame = leader.respond(&request, &known);
        self.fetcher.take_response(&frame, NOW, &mut self.reported).unwrap();
        Some(request)
    }

    pub(super) fn catch_up(&mut self, leader: &Self) {
        for _ in 0..20 {
            if self.fetch(leader).is_none() {
                return;
            }
        }
    }

    pub(super) fn respond(&self, request: &FetchRequest<'_>, requested: &[FetchPartition]) -> Vec<u8> {
        let mut fetched = Vec::new();
        let mut records = Vec::new();
        for one in requested {
            self.partition.verify_epochs_for(one);
            self.partition.note_fetch(request.replica, Eligibility::Unknown, one, NOW, &mut |_| ());
            let log = self.partition.log();
            let mut response = FetchedPartition {
                topic: one.topic.clone(),
                index: one.index.0,
                error: ErrorCode::NONE,
                high_watermark: self.partition.high_watermark(),
                last_stable_offset: -1,
                log_start_offset: log.log_start_offset(),
                aborted: Vec::new(),
                preferred_read_replica: BrokerId(-1),
                records: 0,
                diverging: None,
                current_leader: None,
            };
            let span = log.log_start_offset()..=log.log_end_offset();
            let compared = self.partition.agreement(one.last_fetched_epoch, Offset(one.fetch_offset));
            match if self.by_watermark { Agreement::Agrees } else { compared } {
                _ if one.leader_epoch.0 < self.partition.leader_epoch() => {
                    response.error = ErrorCode::FENCED_LEADER_EPOCH;
                }
                _ if one.leader_epoch.0 != self.partition.leader_epoch() => {
                    response.error = ErrorCode::UNKNOWN_LEADER_EPOCH;
                }
                Agreement::Diverges(diverging) => response.diverging = Some(diverging),
                Agreement::Agrees if span.contains(&one.fetch_offset) => {
                    records = read(&self.partition, one.fetch_offset);
                    response.records = records.len();
                }
                Agreement::Agrees | Agreement::Unknown => {
                    response.error = ErrorCode::OFFSET_OUT_OF_RANGE;
                    response.diverging = Some(DivergingEpoch { epoch: -1, end_offset: log.log_end_offset() });
                }
            }
            fetched.push(response);
        }
        let mut out = vec![0; RESPONSE_BODY];
        let head = FetchedHead { throttle_time_ms: 0, error: ErrorCode::NONE, session_id: 9, read_committed: false };
        let mut at = None;
        write_response(&mut out, REPLICA_FETCH_VERSION, head, &fetched, &[], &mut |place, _| at = Some(place));
        if let Some(at) = at {
            out.splice(at..at, records);
        }
        out
    }
}

fn following(partition: &Partition) -> Option<Following> {
    match &*partition.role() {
        crate::Role::Follower(following) => Some(*following),
        crate::Role::Leader(_) | crate::Role::None { .. } => None,
    }
}

pub(super) fn read(partition: &Partition, from: i64) -> Vec<u8> {
    let end = partition.log().log_end_offset();
    let slice = partition.plan_read(Offset(from)..Offset(end), 1 << 20, true).unwrap();
    let mut bytes = vec![0; slice.len];
    slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
    bytes
}

#[test]
fn a_leader_that_appended_nothing_leaves_no_epoch_behind_that_others_lack() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(5, &[2]);
    two.lead(6, &[1]);
    two.append(1);
    one.follow(6, 2);
    one.catch_up(&two);
    assert_eq!(one.batches(), [(0, 6)]);
    assert_eq!(one.partition.log().latest_epoch(), Some(6));
}

#[test]
fn a_follower_reports_committed_records_that_it_truncates() {
    let (a, b) = (quick_directory(), quick_directory());
    let (one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    one.append(5);
    two.follow(1, 1);
    two.catch_up(&one);
    two.catch_up(&one);
    assert_eq!((two.end(), two.partition.high_watermark()), (5, 5));
    // The leader loses acknowledged records.
    one.partition.log().truncate_to(Offset(2), NOW).unwrap();
    one.lead(2, &[2]);
    two.follow(2, 1);
    two.catch_up(&one);
    assert_eq!(two.end(), 2);
    assert_eq!(
        two.reported.0,
        ["truncated from offset 5 to 2, below its high watermark 5: the leader's log has other records there, or none"]
    );
}

#[test]
fn a_follower_behind_the_leaders_log_begins_anew_where_it_starts() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    two.append(5);
    one.follow(1, 2);
    two.partition.log().advance_log_start(3).unwrap();
    one.catch_up(&two);
    assert_eq!((one.partition.log().log_start_offset(), one.end()), (3, 5));
    assert_eq!(one.batches(), [(3, 1), (4, 1)]);
}

#[test]
fn a_damaged_answer_is_not_appended_and_asked_for_again_later() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    two.append(1);
    one.follow(1, 2);
    let request = one.fetcher.next_request(NOW).unwrap();
    let mut frame = two.respond(&request, &request.partitions);
    let last = frame.len() - 8;
    frame[last] ^= 1;
    let mut reported = Reported::default();
    one.fetcher.take_response(&frame, NOW, &mut reported).unwrap();
    assert_eq!((one.end(), reported.0.len()), (0, 1));
    let state = one.fetcher.state(&(TOPIC_ID, 0)).unwrap();
    assert_eq!(state, FetchState::BackingOff { until_ms: NOW + 10, tries: 1 });
    assert!(one.fetcher.next_request(NOW).is_none(), "nothing else is fetched");
    assert_eq!(one.fetcher.due_ms(), Some(NOW + 10));
    assert!(one.fetcher.next_request(NOW + 10).is_some());
}

#[test]
fn a_session_names_a_partition_again_only_when_it_has_news() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    one.follow(1, 2);
    assert_eq!(one.fetch(&two).map(|request| (request.session_epoch, request.partitions.len())), Some((0, 1)));
    assert_eq!(one.fetch(&two).map(|request| (request.session_epoch, request.partitions.len())), Some((1, 0)));
    two.append(1);
    assert_eq!(one.fetch(&two).map(|request| (request.session_epoch, request.partitions.len())), Some((2, 0)));
    let next = one.fetch(&two).unwrap();
    assert_eq!((next.session_epoch, next.partitions.len(), next.partitions[0].fetch_offset), (3, 1, 1));
    one.fetcher.unfollow(&(TOPIC_ID, 0));
    assert!(one.fetcher.next_request(NOW).is_none());
}

/// A leader that continues in a newer epoch rejects the waiting Fetch of the older epoch, while the follower has
/// fetched again in the newer one.
#[test]
fn a_refusal_of_an_older_epoch_does_not_end_the_fetch_at_the_newer_one() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    one.follow(1, 2);
    let first = one.fetch(&two).unwrap();
    let waits = one.fetcher.next_request(NOW).unwrap();
    two.lead(2, &[1]);
    two.append(1);
    one.follow(2, 2);
    let again = one.fetcher.next_request(NOW).unwrap();
    assert_eq!((one.fetcher.in_flight(), again.partitions.len()), (2, 1));
    let mut reported = Reported::default();
    one.fetcher.take_response(&two.respond(&waits, &first.partitions), NOW, &mut reported).unwrap();
    assert_eq!(one.fetcher.state(&(TOPIC_ID, 0)), Some(FetchState::Fetching));
    one.fetcher.take_response(&two.respond(&again, &again.partitions), NOW, &mut reported).unwrap();
    assert_eq!(one.batches(), [(0, 2)]);
}

/// Another thread fetched the partition before, and appended the response in flight.
#[test]
fn an_answer_from_an_offset_where_the_log_ended_before_is_asked_for_again() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    one.follow(1, 2);
    let first = one.fetch(&two).unwrap();
    two.append(1);
    let waits = one.fetcher.next_request(NOW).unwrap();
    let frame = two.respond(&waits, &first.partitions);
    let batches = read(&two.partition, 0);
    let follows = following(&one.partition).unwrap();
    let records =
        |fetch_offset| FetchedRecords { fetch_offset, high_watermark: 0, log_start_offset: 0, batches: &batches };
    assert!(one.partition.append_fetched(follows, records(0), NOW, &mut |_| ()).unwrap());
    let again = one.partition.append_fetched(follows, records(0), NOW, &mut |_| ());
    assert!(matches!(again, Err(NotTaken::Outdated)), "{again:?}");
    let mut reported = Reported::default();
    one.fetcher.take_response(&frame, NOW, &mut reported).unwrap();
    assert_eq!((one.fetcher.state(&(TOPIC_ID, 0)), reported.0), (Some(FetchState::Fetching), vec![]));
    assert_eq!(one.fetcher.next_request(NOW).unwrap().partitions[0].fetch_offset, 1);
}

#[test]
fn what_was_not_taken_is_named_again_though_nothing_changed() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    one.follow(1, 2);
    let first = one.fetch(&two).unwrap();
    let waits = one.fetcher.next_request(NOW).unwrap();
    let follows = following(&one.partition).unwrap();
    // The partition is added again: the response in flight is for the earlier assignment.
    one.fetcher.follow(Arc::clone(&one.partition), follows);
    one.fetcher.follow(Arc::clone(&one.partition), Following { leader_epoch: LeaderEpoch(2), ..follows });
    let again = one.fetcher.next_request(NOW).unwrap();
    assert_eq!(again.partitions.len(), 1);
    let mut reported = Reported::default();
    one.fetcher.take_response(&two.respond(&waits, &first.partitions), NOW, &mut reported).unwrap();
    one.fetcher.take_response(&two.respond(&again, &[]), NOW, &mut reported).unwrap();
    assert_eq!(one.fetcher.next_request(NOW).unwrap().partitions, again.partitions);
}

#[test]
fn a_partition_is_asked_for_again_when_it_is_due_though_a_request_waits() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    one.follow(1, 2);
    one.fetch(&two).unwrap();
    // The leader has older metadata of another partition.
    let other = open_index(1, a.path(), config(), 0);
    one.fetcher.follow(other, Following { leader: BrokerId(2), leader_epoch: LeaderEpoch(2) });
    let refused = one.fetcher.next_request(NOW).unwrap();
    one.fetcher.take_response(&two.respond(&refused, &refused.partitions), NOW, &mut Reported::default()).unwrap();
    assert!(one.fetcher.next_request(NOW).is_some(), "the first partition's request waits");
    assert_eq!(one.fetcher.due_ms(), Some(NOW + 10));
    assert!(one.fetcher.next_request(NOW + 9).is_none());
    let again = one.fetcher.next_request(NOW + 10).unwrap();
    assert_eq!(again.partitions, refused.partitions);
    assert_eq!((one.fetcher.in_flight(), one.fetcher.due_ms()), (2, None));
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Fetch,
    Elect { first: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..4_usize).prop_map(Step::Append),
        Just(Step::Fetch),
        Just(Step::Fetch),
        any::<bool>().prop_map(|first| Step::Elect { first }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// After any elections and appends, a follower that has caught up has the same log as its leader.
    #[test]
    fn logs_are_alike_after_any_history(steps in prop::collection::vec(step(), 1..40)) {
        let (a, b) = (quick_directory(), quick_directory());
        let mut brokers = [Broker::start(0, a.path()), Broker::start(1, b.path())];
        let (mut epoch, mut leader) = (1, 0);
        brokers[0].lead(epoch, &[1]);
        brokers[1].follow(epoch, 0);
        for step in steps.into_iter().chain([Step::Elect { first: true }]) {
            match step {
                Step::Append(records) => brokers[leader].append(records),
                Step::Fetch => {
                    let [one, two] = &mut brokers;
                    if leader == 0 { two.fetch(one) } else { one.fetch(two) };
                }
                Step::Elect { first } => {
                    epoch += 1;
                    leader = usize::from(!first);
                    brokers[leader].lead(epoch, &[1 - leader as i32]);
                    brokers[1 - leader].fetcher.disconnected();
                    brokers[1 - leader].follow(epoch, leader as i32);
                }
            }
        }
        let [one, two] = &mut brokers;
        two.catch_up(one);
        prop_assert_eq!(one.batches(), two.batches());
    }
}
