//! The computation of the high watermark.
//!
//! `high watermark = min(log end offset of every replica that is in sync or about to join the ISR)` (Kafka's
//! replication design).

/// Returns the offset up to which (exclusive) all counted replicas have the log.
///
/// `local` is the leader's own log end offset. `others` are those of the other counted replicas: the in-sync ones,
/// and those that have caught up and wait to join the ISR. With a single replica the result is `local`.
pub fn high_watermark(local: i64, others: impl IntoIterator<Item = i64>) -> i64 {
    others.into_iter().fold(local, i64::min)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::high_watermark;

    #[test]
    fn a_leader_alone_commits_what_it_has() {
        assert_eq!(high_watermark(7, []), 7);
    }

    proptest! {
        #[test]
        fn every_replica_that_counts_has_what_is_below_and_one_has_no_more(local: i64, others: Vec<i64>) {
            let reached = high_watermark(local, others.iter().copied());
            let all: Vec<i64> = others.into_iter().chain([local]).collect();
            prop_assert!(all.iter().all(|position| reached <= *position) && all.contains(&reached));
        }
    }

    #[test]
    fn the_slowest_in_sync_replica_decides() {
        assert_eq!(high_watermark(7, [9, 5, 6]), 5);
    }
}
