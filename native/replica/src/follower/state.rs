//! The states of a fetched partition, and the allowed transitions.

/// The cause of a state change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchEvent {
    /// A response was applied.
    Taken,
    /// The leader returned an error, or its response was invalid. The fetch is retried later.
    Refused,
    /// The partition has used its share of the throttle (KIP-73). The fetch is retried later.
    Throttled,
    /// The backoff is over.
    Due,
    /// The leader has a later epoch than this replica. Newer metadata will arrive.
    Fenced,
    /// The log has failed, or is closed.
    LogFailed,
    /// The connection is lost.
    Disconnected,
}

/// The kind of a state, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchStateKind {
    Fetching,
    BackingOff,
    AwaitingMetadata,
    Failed,
}

/// The state of a partition. In a new leader epoch it starts with `Fetching`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchState {
    /// It is in the fetch session.
    Fetching,
    /// It is fetched again from `until_ms` on. `tries` counts the failures in a row.
    BackingOff { until_ms: i64, tries: u32 },
    /// It is not fetched before the control plane names the leader.
    AwaitingMetadata,
    /// Its log accepts no appends.
    Failed,
}

/// The allowed transitions: state, event, next state.
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
    /// Returns the state's kind.
    pub fn kind(&self) -> FetchStateKind {
        match self {
            Self::Fetching => FetchStateKind::Fetching,
            Self::BackingOff { .. } => FetchStateKind::BackingOff,
            Self::AwaitingMetadata => FetchStateKind::AwaitingMetadata,
            Self::Failed => FetchStateKind::Failed,
        }
    }

    /// Returns the next kind in [`TRANSITIONS`]; `None` for an event that is impossible in this state.
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
