//! What a Fetch could be answered with now: the reads that are planned, and whether they are worth an answer.
//!
//! Owns no bytes: a read is a slice of a file. Must not know requests, nor how an answer is written.

use pybroker_replica::{FetchSession, Partition};
use pybroker_storage::FileSlice;
use pybroker_storage::txn_index::AbortedTxn;
use pybroker_wire::ErrorCode;
use pybroker_wire::fetch::{AbortedTransaction, FetchedPartition};

/// The offsets of a partition that a session was sent last.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub high_watermark: i64,
    pub log_start: i64,
}

/// One partition's part of the answer, before it is written.
#[derive(Debug)]
pub struct Read {
    /// Its place among the source's partitions.
    pub place: usize,
    /// Up to where there was something to read; -1 where nothing can be.
    pub end: i64,
    pub fetched: FetchedPartition,
    pub slice: Option<FileSlice>,
    /// Its bytes are of a throttled replica; without them it waits for the throttle alone.
    pub throttled: Throttled,
    /// The most that a batch of it may decompress to, where it has to be converted.
    pub max_decompressed: usize,
}

/// What the leader's throttle has to do with a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttled {
    No,
    /// What is sent counts.
    Counted,
    /// Nothing is sent for now.
    HeldBack,
}

impl Read {
    /// Whether it has something to say that cannot wait.
    pub fn is_urgent(&self) -> bool {
        let FetchedPartition { error, diverging, preferred_read_replica, .. } = &self.fetched;
        *error != ErrorCode::NONE || diverging.is_some() || preferred_read_replica.0 >= 0
    }

    /// The same answer with records, and with the transactions that a `read_committed` reader leaves out.
    pub fn with(mut self, slice: FileSlice, aborted: &[AbortedTxn]) -> Self {
        self.fetched.records = slice.len;
        let sent = aborted
            .iter()
            .map(|txn| AbortedTransaction { producer_id: txn.producer_id, first_offset: txn.first_offset });
        self.fetched.aborted = sent.collect();
        self.slice = Some(slice);
        self
    }

    /// An answer without records.
    pub fn nothing(place: usize, fetched: FetchedPartition) -> Self {
        Self { place, end: -1, fetched, slice: None, throttled: Throttled::No, max_decompressed: 0 }
    }
}

/// What there is to answer, and what decides whether it is worth answering now.
#[derive(Debug)]
pub struct Plan {
    pub reads: Vec<Read>,
    /// Bytes of records.
    pub bytes: i64,
    /// Whether a partition has something to say that cannot wait.
    pub failed: bool,
}

impl Plan {
    /// Without partitions.
    pub fn nothing() -> Self {
        Self { reads: Vec::new(), bytes: 0, failed: false }
    }

    /// Whether a partition's records are held back by the leader's throttle.
    pub fn is_held_back(&self) -> bool {
        self.reads.iter().any(|read| read.throttled == Throttled::HeldBack)
    }

    /// Whether it is to be answered now.
    pub fn enough(&self, min_bytes: i64) -> bool {
        self.failed || self.reads.is_empty() || self.bytes >= min_bytes
    }
}

/// Has an answer say how far a replica is committed, and where its log starts.
pub fn note_offsets(fetched: &mut FetchedPartition, replica: &Partition) {
    fetched.high_watermark = replica.high_watermark();
    fetched.last_stable_offset = replica.last_stable_offset();
    fetched.log_start_offset = replica.log().log_start_offset();
}

/// Whether a read is news to its session.
pub fn is_news(session: &FetchSession, read: &Read) -> bool {
    let fetched = &read.fetched;
    let Some(known) = session.partitions().get(read.place) else { return false };
    fetched.records > 0
        || read.is_urgent()
        || fetched.high_watermark != known.sent_high_watermark
        || fetched.log_start_offset != known.sent_log_start
}

/// Notes in a session what it is sent.
pub fn note_sent(session: &mut FetchSession, read: &Read) {
    let fetched = &read.fetched;
    if fetched.records > 0 {
        session.begin_after(read.place);
    }
    let Some(known) = session.partitions_mut().get_mut(read.place) else { return };
    // What comes with an error, or with a log to be cut, is not taken: the next answer says it again.
    let taken = !read.is_urgent();
    known.sent_high_watermark = if taken { fetched.high_watermark } else { -1 };
    known.sent_log_start = if taken { fetched.log_start_offset } else { -1 };
}

#[cfg(test)]
mod tests {
    use super::super::fetcher::nothing_fetched;
    use super::*;
    use pybroker_replica::{FetchSessionCache, LeaderEpoch, PartitionIndex, SessionOwner};
    use pybroker_wire::TopicRef;
    use pybroker_wire::fetch::{DivergingEpoch, FetchPartition};

    #[test]
    fn offsets_beside_an_error_or_a_log_to_be_cut_are_said_again() {
        let asked = FetchPartition {
            topic: TopicRef::Id([7; 16]),
            index: PartitionIndex(0),
            fetch_offset: 4,
            max_bytes: 1,
            leader_epoch: LeaderEpoch(1),
            last_fetched_epoch: LeaderEpoch(0),
            log_start_offset: 0,
        };
        let cache = FetchSessionCache::new(1, 1000);
        let session = cache.begin(SessionOwner::Follower, true, vec![asked.clone()], 0).unwrap();
        let mut session = session.lock();
        let plain = FetchedPartition { high_watermark: 4, log_start_offset: 0, ..nothing_fetched(&asked) };
        let diverging = Some(DivergingEpoch { epoch: 0, end_offset: 3 });
        let error = ErrorCode::KAFKA_STORAGE_ERROR;
        let mut is_news = |fetched: FetchedPartition| {
            let read = Read::nothing(0, fetched);
            let news = is_news(&session, &read);
            note_sent(&mut session, &read);
            news
        };
        assert!(is_news(plain.clone()));
        assert!(!is_news(plain.clone()));
        for urgent in [FetchedPartition { diverging, ..plain.clone() }, FetchedPartition { error, ..plain.clone() }] {
            assert!(is_news(urgent));
            assert!(is_news(plain.clone()), "the follower took nothing of the answer before");
            assert!(!is_news(plain.clone()));
        }
    }
}
