//! How far a follower's log agrees with its leader's: arithmetic on epochs and offsets.
//!
//! Owns the rules of KIP-101, KIP-279 and KIP-595. Must not know logs: what they say is an argument.

use crate::ids::Offset;

/// The last epoch at or below one that was asked for, and where it ends in a log; both -1 where the log knows none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    pub epoch: i32,
    pub end_offset: i64,
}

/// What a log spans: its first offset, and the one after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpan {
    pub start: Offset,
    pub end: Offset,
}

/// Where a follower's log is to end so that it agrees with its leader's.
///
/// `leader` is the last epoch that the leader has at or below the follower's last one; `own` is what the follower's log says
/// to that epoch. Where the follower lacks the epoch that the leader named, it cuts to the end of its own last one before it
/// and asks again with that one (KIP-279).
pub fn agreed_end(leader: EpochEnd, own: EpochEnd, own_end: Offset) -> Offset {
    let agreed = if own.epoch < 0 {
        // The log has no epochs so early; the leader's word is all there is.
        leader.end_offset
    } else if own.epoch == leader.epoch {
        own.end_offset.min(leader.end_offset)
    } else {
        own.end_offset
    };
    Offset(agreed.clamp(0, own_end.0))
}

/// What a follower does whose next offset its leader does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Its log is longer than the leader's: cut it.
    CutTo(Offset),
    /// The leader's log starts behind its end: begin anew there.
    BeginAt(Offset),
    /// The leader's log has the offset by now: ask again.
    AskAgain,
}

/// Plans what follows OFFSET_OUT_OF_RANGE, where the leader's log spans `leader`.
pub fn plan_restart(own_end: Offset, leader: LogSpan) -> Restart {
    if leader.start.0 < 0 || leader.end < leader.start {
        // The leader did not say.
        Restart::AskAgain
    } else if leader.end < own_end {
        Restart::CutTo(leader.end)
    } else if own_end < leader.start {
        Restart::BeginAt(leader.start)
    } else {
        Restart::AskAgain
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
        assert_eq!(restart(5, 50), Restart::AskAgain);
        assert_eq!(restart(-1, -1), Restart::AskAgain);
    }

    proptest! {
        #[test]
        fn nothing_is_ever_made_longer(epoch in -1..4, at in -1..40_i64, own in -1..4, own_at in -1..40_i64, own_end in 0..40_i64) {
            let agreed = agreed_end(end(epoch, at), end(own, own_at), own_end);
            prop_assert!((0..=own_end).contains(&agreed));
        }
    }
}
