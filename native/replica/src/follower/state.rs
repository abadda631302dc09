//! The states of a partition that is fetched, and which may follow which.

/// Why the state of a partition changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchEvent {
    /// An answer was taken.
    Taken,
    /// The leader refused it, or what it sent was no good: it is asked again later.
    Refused,
    /// What it may fetch for now is fetched (KIP-73): it is asked for again later.
    Throttled,
    /// The time to wait is over.
    Due,
    /// The leader is of a later epoch than this replica follows at: newer metadata is to come.
    Fenced,
    /// The log has failed, or is closed.
    LogFailed,
    /// The connection is lost.
    Disconnected,
}

/// A state without what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchStateKind {
    Fetching,
    BackingOff,
    AwaitingMetadata,
    Failed,
}

/// What a fetcher does about a partition. A new leader epoch begins with `Fetching`, whatever was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchState {
    /// It is in the session.
    Fetching,
    /// It is asked for again from `until_ms` on; the `tries`th wait in a row.
    BackingOff { until_ms: i64, tries: u32 },
    /// It is not asked for before the control plane says whom to follow.
    AwaitingMetadata,
    /// Its log takes nothing any more.
    Failed,
}

/// The changes that exist: the state before, what happens, the state after.
pub const TRANSITIONS: [(FetchStateKind, FetchEvent, FetchStateKind); 12] = [
    (FetchStateKind::Fetching, FetchEvent::Taken, FetchStateKind::Fetching),
    (FetchStateKind::Fetching, FetchEvent::Refused, FetchStateKind::BackingOff),
    (FetchStateKind::Fetching, FetchEvent::Throttled, FetchStateKind::BackingOff),
    (FetchStateKind::Fetching, FetchEvent::Fenced, FetchStateKind::AwaitingMetadata),
    (FetchStateKind::Fetching, FetchEvent::LogFailed, FetchStateKind::Failed),
    (FetchStateKind::Fetching, FetchEvent::Disconnected, FetchStateKind::Fetching),
    (FetchStateKind::BackingOff, FetchEvent::Due, FetchStateKind::Fetching),
    (FetchStateKind::BackingOff, FetchEvent::Disconnected, FetchStateKind::BackingOff),
    (FetchStateKind::AwaitingMetadata, FetchEvent::Disconnected, FetchStateKind::AwaitingMetadata),
    (FetchStateKind::Failed, FetchEvent::Disconnected, FetchStateKind::Failed),
    (FetchStateKind::BackingOff, FetchEvent::LogFailed, FetchStateKind::Failed),
    (FetchStateKind::AwaitingMetadata, FetchEvent::LogFailed, FetchStateKind::Failed),
];

impl FetchState {
    /// The state's name.
    pub fn kind(&self) -> FetchStateKind {
        match self {
            Self::Fetching => FetchStateKind::Fetching,
            Self::BackingOff { .. } => FetchStateKind::BackingOff,
            Self::AwaitingMetadata => FetchStateKind::AwaitingMetadata,
            Self::Failed => FetchStateKind::Failed,
        }
    }

    /// The kind that [`TRANSITIONS`] lists for what happens; `None` for what cannot happen in this state.
    pub fn after(&self, event: FetchEvent) -> Option<FetchStateKind> {
        let listed = TRANSITIONS.iter().find(|(from, what, _)| *from == self.kind() && *what == event);
        listed.map(|(_, _, to)| *to)
    }
}

#[cfg(test)]
mod tests {
    use super::{FetchEvent, FetchState, TRANSITIONS};

    #[test]
    fn no_change_is_listed_twice() {
        for (at, (from, event, _)) in TRANSITIONS.iter().enumerate() {
            assert!(!TRANSITIONS[..at].iter().any(|(other, what, _)| (other, what) == (from, event)));
        }
    }

    #[test]
    fn what_has_failed_is_not_asked_for_again() {
        assert_eq!(FetchState::Failed.after(FetchEvent::Due), None);
        assert_eq!(FetchState::AwaitingMetadata.after(FetchEvent::Due), None);
    }
}
