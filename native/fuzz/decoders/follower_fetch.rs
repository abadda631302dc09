//! A leader's response to a follower's Fetch. The follower appends its records to the log, or leaves the log unchanged.

#[path = "../../storage/tests/it/log_fixture.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod log_fixture;

use std::sync::Arc;

use log_fixture::{NOW, build, config, quick_directory};
use pybroker_record::{Batches, Compression, LeaderEpoch, Offset};
use pybroker_replica::{
    BrokerId, FetcherSettings, FollowerListener, FollowerNotice, Following, Partition, REPLICA_FETCH_VERSION,
    ReplicaFetcher, ReplicationThrottle, ThrottleLimit, Waiter,
};
use pybroker_storage::{Log, OpenLog};
use pybroker_wire::fetch::{DivergingEpoch, FetchedHead, FetchedPartition, write_response};
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::{ErrorCode, TopicRef};

const TOPIC_ID: [u8; 16] = [7; 16];
/// Number of input bytes that become the response's numeric fields. The following bytes become its records.
const NUMBERS: usize = 8;

struct Silent;

impl FollowerListener for Silent {
    fn wake(&mut self, _waiter: Waiter) {}

    fn log_failed(&mut self, _partition: &Partition, error: &str) {
        panic!("a response made the log fail: {error}");
    }

    fn exhausted(&mut self, _error: &str) {}

    fn not_taken(&mut self, _partition: &Partition, _why: &str) {}

    fn notice(&mut self, _partition: &Partition, _notice: &FollowerNotice) {}
}

/// Passes the bytes to a follower as a Fetch response, and then as the numbers and records of a Fetch response.
pub fn decode(bytes: &[u8]) {
    let root = quick_directory();
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, _) = Log::open(&root.path().join("t-0"), config(), how).expect("an empty log");
    let partition = Arc::new(Partition::new("t".into(), 0, TOPIC_ID, root.path().to_path_buf(), log, 0));
    // Records of an epoch that the leader has, too: so the follower may have to truncate them.
    let (mut records, _) = build(&[20, 20], 0, (7, 0, 0), Compression::None);
    partition.log().begin_epoch(1).expect("the first epoch");
    partition.log().append(&mut records, 1, NOW).expect("valid records");
    let mut fetcher = ReplicaFetcher::new(settings(), Arc::new(ReplicationThrottle::new(ThrottleLimit::NONE)));
    let following = Following { leader: BrokerId(1), leader_epoch: LeaderEpoch(2) };
    partition.become_follower(following, &mut |_| ()).expect("it has no role yet");
    fetcher.follow(Arc::clone(&partition), following);
    for frame in [bytes.to_vec(), respond(bytes)] {
        let _ = fetcher.next_request(NOW);
        let _ = fetcher.take_response(&frame, NOW, &mut Silent);
        check(&partition);
    }
}

fn settings() -> FetcherSettings {
    FetcherSettings {
        replica: BrokerId(2),
        broker_epoch: 1,
        min_bytes: 1,
        max_wait_ms: 500,
        max_bytes: 1 << 20,
        response_max_bytes: 10 << 20,
        first_backoff_ms: 0,
        backoff_ms: 0,
    }
}

/// Builds a response for the partition: the first bytes are its numeric fields, the rest its records.
fn respond(bytes: &[u8]) -> Vec<u8> {
    let (numbers, records) = bytes.split_at(NUMBERS.min(bytes.len()));
    let number = |at: usize| i64::from(numbers.get(at).copied().unwrap_or(0).cast_signed());
    let is_diverging = number(3) > 100;
    let partition = FetchedPartition {
        topic: TopicRef::Id(TOPIC_ID),
        index: 0,
        error: if number(0) > 100 { ErrorCode::OFFSET_OUT_OF_RANGE } else { ErrorCode::NONE },
        high_watermark: number(1),
        last_stable_offset: -1,
        log_start_offset: number(2),
        aborted: Vec::new(),
        preferred_read_replica: BrokerId(-1),
        records: records.len(),
        diverging: is_diverging.then(|| DivergingEpoch { epoch: number(4) as i32, end_offset: number(5) }),
        current_leader: None,
    };
    let mut out = vec![0; RESPONSE_BODY];
    let head = FetchedHead { throttle_time_ms: 0, error: ErrorCode::NONE, session_id: 1, read_committed: false };
    let mut at = None;
    write_response(&mut out, REPLICA_FETCH_VERSION, head, &[partition], &[], &mut |place, _| at = Some(place));
    if let Some(at) = at {
        out.splice(at..at, records.iter().copied());
    }
    out
}

/// Checks that the offsets of the log are in order, and that every batch in it can be read.
fn check(partition: &Partition) {
    let (start, end) = (partition.log().log_start_offset(), partition.log().log_end_offset());
    assert!(0 <= start && start <= end, "{start} to {end}");
    assert!(partition.high_watermark() <= end);
    let slice = partition.plan_read(Offset(start)..Offset(end), usize::MAX, true).expect("it is in the log");
    let mut bytes = vec![0; slice.len];
    std::os::unix::fs::FileExt::read_exact_at(&*slice.file, &mut bytes, slice.position).expect("it is there");
    let mut next = None;
    for batch in Batches::new(&bytes) {
        let (header, _) = batch.expect("what is in the log is a batch");
        assert!(next.is_none_or(|next| header.base_offset >= next));
        next = Some(header.last_offset() + 1);
    }
}
