//! The offset up to which a follower's log agrees with its leader's, computed from epochs and offsets.
//!
//! Owns the rules of KIP-101, KIP-279 and KIP-595. Must not know logs: their epochs and offsets are arguments.

use crate::ids::Offset;

/// The largest epoch at or below the requested one, and its end offset in a log; both -1 if the log has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    pub epoch: i32,
    pub end_offset: i64,
}

/// The range of a log: its first offset, and the one after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpan {
    pub start: Offset,
    pub end: Offset,
}

/// Returns the offset to which a follower must truncate its log to agree with its leader.
///
/// `leader` is the leader's largest epoch at or below the follower's last one. `own` is the same lookup in the
/// follower's log for that epoch. If the follower does not have the leader's epoch, it truncates to the end of its
/// own largest epoch below it, and fetches again with that epoch (KIP-279).
pub fn agreed_end(leader: EpochEnd, own: EpochEnd, own_end: Offset) -> Offset {
    let agreed = if own.epoch < 0 {
        // The log has no epoch that early, so the leader's end offset is used.
        leader.end_offset
    } else if own.epoch == leader.epoch {
        own.end_offset.min(leader.end_offset)
    } else {
        own.end_offset
    };
    Offset(agreed.clamp(0, own_end.0))
}

/// The action of a follower after OFFSET_OUT_OF_RANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The log is longer than the leader's: truncate it.
    CutTo(Offset),
    /// The leader's log starts after the end of this one: restart there.
    BeginAt(Offset),
    /// The leader's log has the offset meanwhile: retry.
    Retry,
}

/// Returns the action after OFFSET_OUT_OF_RANGE, if the leader's log has the range `leader`.
pub fn plan_restart(own_end: Offset, leader: LogSpan) -> Restart {
    if leader.start.0 < 0 || leader.end < leader.start {
        // The response has no end offset.
        Restart::Retry
    } else if leader.end < own_end {
        Restart::CutTo(leader.end)
    } else if own_end < leader.start {
        Restart::BeginAt(leader.start)
    } else {
        Restart::Retry
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EpochEnd, LogSpan, Offset, Restart, plan_restart};

    fn agreed_end(leader: EpochEnd, own: EpochEnd, own_end: i64) -> i64 {
        super::agreed_end(leader, own, Offset(own_end)).0
    }

    fn restart(start: i64, span_end: i64) -> Restart {
        plan_restart(Offset(30), LogSpan { start: Offset(start), end: Offset(span_end) })
    }

    const UNKNOWN: EpochEnd = EpochEnd { epoch: -1, end_offset: -1 };

    fn end(epoch: i32, end_offset: i64) -> EpochEnd {
        EpochEnd { epoch, end_offset }
    }

    #[test]
    fn an_epoch_that_both_have_ends_where_it_ends_earlier() {
        assert_eq!(agreed_end(end(3, 20), end(3, 25), 30), 20);
        assert_eq!(agreed_end(end(3, 25), end(3, 20), 30), 20);
    }

    #[test]
    fn a_follower_that_lacks_the_leaders_epoch_goes_back_to_its_own_last_one() {
        assert_eq!(agreed_end(end(3, 20), end(2, 10), 30), 10);
    }

    #[test]
    fn a_log_without_epochs_takes_the_leaders_word() {
        assert_eq!(agreed_end(end(3, 20), UNKNOWN, 30), 20);
        assert_eq!(agreed_end(UNKNOWN, UNKNOWN, 30), 0);
    }

    #[test]
    fn out_of_range_is_cut_or_begun_anew() {
        assert_eq!(restart(5, 20), Restart::CutTo(Offset(20)));
        assert_eq!(restart(40, 50), Restart::BeginAt(Offset(40)));
        assert_eq!(restart(5, 50), Restart::Retry);
        assert_eq!(restart(-1, -1), Restart::Retry);
    }

    proptest! {
        #[test]
        fn nothing_is_ever_made_longer(epoch in -1..4, at in -1..40_i64, own in -1..4, own_at in -1..40_i64, own_end in 0..40_i64) {
            let agreed = agreed_end(end(epoch, at), end(own, own_at), own_end);
            prop_assert!((0..=own_end).contains(&agreed));
        }
    }
}
