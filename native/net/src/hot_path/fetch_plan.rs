//! The planned response to a Fetch: its reads, and whether they are enough to respond.
//!
//! Owns no bytes: a read is a slice of a file. Must not know requests, nor how a response is written.

use pybroker_replica::{FetchSession, Partition};
use pybroker_storage::FileSlice;
use pybroker_storage::txn_index::AbortedTxn;
use pybroker_wire::ErrorCode;
use pybroker_wire::fetch::{AbortedTransaction, FetchedPartition};

/// The offsets of a partition that a session sent last.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub high_watermark: i64,
    pub log_start: i64,
}

/// The part of one partition in the response, before it is written.
#[derive(Debug)]
pub struct Read {
    /// The partition's index in the source.
    pub place: usize,
    /// The end of the readable records; -1 if nothing can be read.
    pub end: i64,
    pub fetched: FetchedPartition,
    pub slice: Option<FileSlice>,
    /// Whether the leader's throttle counts or withholds these bytes.
    pub throttled: Throttled,
    /// The most bytes that a batch may decompress to, if the records have to be converted.
    pub max_decompressed: usize,
}

/// How the leader's throttle treats a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttled {
    No,
    /// The bytes sent count.
    Counted,
    /// Nothing is sent until the throttle permits.
    HeldBack,
}

impl Read {
    /// Whether the partition has an error, a divergence or a preferred replica to return at once.
    pub fn is_urgent(&self) -> bool {
        let FetchedPartition { error, diverging, preferred_read_replica, .. } = &self.fetched;
        *error != ErrorCode::NONE || diverging.is_some() || preferred_read_replica.0 >= 0
    }

    /// The same response with records, and with the aborted transactions for a `read_committed` reader.
    pub fn with(mut self, slice: FileSlice, aborted: &[AbortedTxn]) -> Self {
        self.fetched.records = slice.len;
        let sent = aborted
            .iter()
            .map(|txn| AbortedTransaction { producer_id: txn.producer_id, first_offset: txn.first_offset });
        self.fetched.aborted = sent.collect();
        self.slice = Some(slice);
        self
    }

    /// A partition's response without records.
    pub fn nothing(place: usize, fetched: FetchedPartition) -> Self {
        Self { place, end: -1, fetched, slice: None, throttled: Throttled::No, max_decompressed: 0 }
    }
}

/// The planned reads, and whether they are enough to respond.
#[derive(Debug)]
pub struct Plan {
    pub reads: Vec<Read>,
    /// Bytes of records.
    pub bytes: i64,
    /// Whether a partition has an error or another result to return at once.
    pub failed: bool,
}

impl Plan {
    /// A plan without partitions.
    pub fn nothing() -> Self {
        Self { reads: Vec::new(), bytes: 0, failed: false }
    }

    /// Whether the leader's throttle withholds the records of a partition.
    pub fn is_held_back(&self) -> bool {
        self.reads.iter().any(|read| read.throttled == Throttled::HeldBack)
    }

    /// Whether to respond at once.
    pub fn enough(&self, min_bytes: i64) -> bool {
        self.failed || self.reads.is_empty() || self.bytes >= min_bytes
    }
}

/// Sets the high watermark and the log start offset of a partition's response.
pub fn note_offsets(fetched: &mut FetchedPartition, replica: &Partition) {
    fetched.high_watermark = replica.high_watermark();
    fetched.last_stable_offset = replica.last_stable_offset();
    fetched.log_start_offset = replica.log().log_start_offset();
}

/// Whether a read differs from what its session sent last.
pub fn is_news(session: &FetchSession, read: &Read) -> bool {
    let fetched = &read.fetched;
    let Some(known) = session.partitions().get(read.place) else { return false };
    fetched.records > 0
        || read.is_urgent()
        || fetched.high_watermark != known.sent_high_watermark
        || fetched.log_start_offset != known.sent_log_start
}

/// Records in a session the offsets that it sends.
pub fn note_sent(session: &mut FetchSession, read: &Read) {
    let fetched = &read.fetched;
    if fetched.records > 0 {
        session.begin_after(read.place);
    }
    let Some(known) = session.partitions_mut().get_mut(read.place) else { return };
    // The receiver ignores the offsets that accompany an error or a divergence: the next response repeats them.
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
        let requested = FetchPartition {
            topic: TopicRef::Id([7; 16]),
            index: PartitionIndex(0),
            fetch_offset: 4,
            max_bytes: 1,
            leader_epoch: LeaderEpoch(1),
            last_fetched_epoch: LeaderEpoch(0),
            log_start_offset: 0,
        };
        let cache = FetchSessionCache::new(1, 1000);
        let session = cache.begin(SessionOwner::Follower, true, vec![requested.clone()], 0).unwrap();
        let mut session = session.lock();
        let plain = FetchedPartition { high_watermark: 4, log_start_offset: 0, ..nothing_fetched(&requested) };
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
