//! Transaction markers, from the append to their acknowledgement.
//!
//! Owns the result of each marker, in the order of the call. Must not know transaction coordinators, nor requests.

use std::sync::Arc;

use crate::hot_path::{HotPath, errors};
use pybroker_replica::{Awaited, EndedTransaction, NotAppended, Partition, Standing, Waiter};
use pybroker_wire::ErrorCode;

/// The result of one marker.
#[derive(Debug)]
enum Marker {
    /// It is in the log.
    Appended(Arc<Partition>, Awaited),
    /// It was not appended, for this error.
    Refused(ErrorCode),
}

/// Markers that were appended together.
#[derive(Debug)]
pub struct AppendedMarkers {
    markers: Vec<Marker>,
}

impl AppendedMarkers {
    /// Appends the marker of each transaction to its partition.
    pub(crate) fn append(
        hot_path: &HotPath,
        ended: Vec<(Arc<Partition>, EndedTransaction)>,
        wake: &mut dyn FnMut(Waiter),
    ) -> Self {
        let now_ms = hot_path.wall_ms();
        let append = |(partition, ended): (Arc<Partition>, EndedTransaction)| match partition
            .append_marker(&ended, now_ms, wake)
        {
            Ok((_, awaited)) => Marker::Appended(partition, awaited),
            Err(NotAppended::NotLeader) => Marker::Refused(ErrorCode::NOT_LEADER_OR_FOLLOWER),
            Err(NotAppended::NotEnoughReplicas { .. }) => Marker::Refused(ErrorCode::NOT_ENOUGH_REPLICAS),
            Err(NotAppended::Log(error)) => Marker::Refused(errors::code_of(hot_path, &partition, &error)),
        };
        Self { markers: ended.into_iter().map(append).collect() }
    }

    /// The markers that are not acknowledged yet, and the condition that each waits for.
    pub(crate) fn unsettled(&self) -> Vec<(&Arc<Partition>, &Awaited)> {
        let mut unsettled = Vec::new();
        for marker in &self.markers {
            if let Marker::Appended(partition, awaited) = marker
                && partition.standing(awaited) == Standing::Waiting
            {
                unsettled.push((partition, awaited));
            }
        }
        unsettled
    }

    /// The error of each marker: NONE if its transaction has ended in its partition, REQUEST_TIMED_OUT if that is not known
    /// yet.
    pub fn error_codes(&self) -> Vec<ErrorCode> {
        let code = |marker: &Marker| match marker {
            Marker::Appended(partition, awaited) => {
                errors::not_acknowledged(partition, awaited).unwrap_or(ErrorCode::NONE)
            }
            Marker::Refused(error) => *error,
        };
        self.markers.iter().map(code).collect()
    }
}
