//! The preferred read replica of a consumer (KIP-392): a replica in the consumer's rack, if the leader is in another
//! rack.
//!
//! Owns the table of racks, which the control plane replaces, and the selection of Kafka's
//! `RackAwareReplicaSelector`. Only in-sync replicas that have the fetch offset are selected: a lagging replica would
//! send the consumer back.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::ids::{BrokerId, Offset};
use super::leader::{Leader, ReplicaState};

/// The racks of the brokers that consumers can reach. Empty if consumers read only from leaders.
#[derive(Debug)]
pub struct ReadReplicas {
    own_rack: Option<Arc<str>>,
    racks: FxHashMap<BrokerId, Arc<str>>,
}

impl ReadReplicas {
    /// Creates the table for a broker in `own_rack`, from the other brokers and their racks.
    pub fn new(own_rack: Option<&str>, others: impl IntoIterator<Item = (BrokerId, String)>) -> Self {
        let racks = others.into_iter().map(|(id, rack)| (id, rack.into())).collect();
        Self { own_rack: own_rack.map(Into::into), racks }
    }

    /// Returns the consumer's rack, if a broker there may serve the consumer better than this one.
    pub fn other_rack(&self, rack: &str) -> Option<Arc<str>> {
        if rack.is_empty() || self.own_rack.as_deref() == Some(rack) {
            return None;
        }
        self.racks.values().find(|other| &***other == rack).map(Arc::clone)
    }

    /// Returns the replica in a rack that has the offset and the highest log end offset; `None` to read from the
    /// leader.
    pub fn preferred(&self, leader: &Leader, rack: &str, Offset(offset): Offset) -> Option<BrokerId> {
        let is_near = |id: BrokerId| self.racks.get(&id).is_some_and(|other| &**other == rack);
        let serves = |replica: &ReplicaState| {
            let has_offset = replica.log_start_offset <= offset && offset <= replica.log_end_offset;
            replica.in_sync && has_offset && is_near(replica.id)
        };
        let freshest = leader.replicas().filter(serves).max_by_key(|it| (it.log_end_offset, it.caught_up_ms, it.id.0));
        freshest.map(|replica| replica.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leader::{Eligibility, FollowerInSync, FollowerPosition, Leadership};
    use crate::{LeaderEpoch, Offset};

    fn leader(replicas: &[(i32, bool, i64, i64)]) -> Leader {
        let followers =
            replicas.iter().map(|&(id, in_sync, ..)| FollowerInSync { id: BrokerId(id), in_sync }).collect();
        let leader_epoch = LeaderEpoch(1);
        let leadership = Leadership { leader_epoch, partition_epoch: 0, followers, min_in_sync: 1 };
        let leader = Leader::new(leadership, None, Offset(0), 0);
        for &(id, _, log_start_offset, log_end_offset) in replicas {
            let replica = BrokerId(id);
            let position = FollowerPosition {
                replica,
                broker_epoch: -1,
                leader_epoch,
                log_end_offset,
                log_start_offset,
                eligible: Eligibility::Unknown,
            };
            leader.update_position(position, Offset(100), 5).unwrap();
        }
        leader
    }

    fn table() -> ReadReplicas {
        let racks = [(2, "b"), (3, "b"), (4, "c")];
        ReadReplicas::new(Some("a"), racks.map(|(id, rack)| (BrokerId(id), rack.to_owned())))
    }

    #[test]
    fn a_consumer_of_the_leaders_rack_or_of_none_stays_with_the_leader() {
        let table = table();
        assert_eq!(table.other_rack("a"), None);
        assert_eq!(table.other_rack(""), None);
        assert_eq!(table.other_rack("d"), None, "no broker is there");
        assert_eq!(table.other_rack("b").as_deref(), Some("b"));
    }

    #[test]
    fn the_replica_of_the_rack_that_has_most_is_preferred() {
        let leader = leader(&[(2, true, 0, 90), (3, true, 0, 95), (4, true, 0, 100)]);
        assert_eq!(table().preferred(&leader, "b", Offset(50)), Some(BrokerId(3)));
        assert_eq!(table().preferred(&leader, "c", Offset(50)), Some(BrokerId(4)));
        assert_eq!(table().preferred(&leader, "b", Offset(96)), None, "neither has it");
    }

    #[test]
    fn replicas_that_are_out_of_sync_or_lack_the_offset_are_not_preferred() {
        let leader = leader(&[(2, false, 0, 100), (3, true, 40, 100), (4, true, 0, 100)]);
        assert_eq!(table().preferred(&leader, "b", Offset(50)), Some(BrokerId(3)));
        assert_eq!(table().preferred(&leader, "b", Offset(39)), None, "deleted there");
    }

    #[test]
    fn a_replica_of_which_nothing_is_known_is_not_preferred() {
        let followers = vec![FollowerInSync { id: BrokerId(2), in_sync: true }];
        let leadership = Leadership { followers, ..Leadership::alone(1) };
        let leader = Leader::new(leadership, None, Offset(0), 0);
        assert_eq!(table().preferred(&leader, "b", Offset(0)), None);
    }
}
