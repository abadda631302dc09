//! The topics that this broker knows, as an immutable snapshot that the control plane replaces as a whole.
//!
//! The hot path uses one snapshot for a whole request. A topic that is not in the table is not rejected: the request
//! is passed to Python once, which may know the topic already (it was just created) and publishes a newer table.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::ids::{BrokerId, LeaderEpoch};
use super::leader::Eligibility;
use super::partition::Partition;
use super::role::{Following, Role};
use super::topic_counters::TopicCounters;
use pybroker_wire::{BrokerEndpoint, LeaderAndEpoch, TopicId, TopicRef};

/// The leader's id if there is no leader.
const NO_LEADER: BrokerId = BrokerId(-1);

/// One partition of the table: its replica on this broker, and its leader.
#[derive(Clone, Debug)]
pub struct PartitionSlot {
    /// The replica on this broker, if there is one.
    pub partition: Option<Arc<Partition>>,
    /// Whether the replica's log directory failed.
    pub offline: bool,
    /// The leader's broker id, -1 when there is none.
    pub leader: BrokerId,
    /// The leader's epoch.
    pub leader_epoch: LeaderEpoch,
}

impl PartitionSlot {
    /// Returns the leader and its epoch for responses (KIP-951). A changed role is used here before the table with
    /// the change is published.
    pub fn current_leader(&self) -> LeaderAndEpoch {
        let known = LeaderAndEpoch { id: self.leader, epoch: self.leader_epoch };
        let Some(partition) = self.partition.as_ref().filter(|it| it.leader_epoch() > self.leader_epoch.0) else {
            return known;
        };
        match &*partition.role() {
            Role::Follower(Following { leader, leader_epoch }) => LeaderAndEpoch { id: *leader, epoch: *leader_epoch },
            Role::None { leader_epoch } => LeaderAndEpoch { id: NO_LEADER, epoch: *leader_epoch },
            // This broker is the leader already, but the table does not contain the change yet.
            Role::Leader(_) => known,
        }
    }
}

/// A topic: its name, its id, its partitions by index.
#[derive(Debug)]
pub struct Topic {
    pub name: Arc<str>,
    /// The id, stable across restarts, new when a topic of the same name is made again.
    pub id: TopicId,
    /// Whether it is an internal topic of a coordinator. Clients may not produce to it.
    pub internal: bool,
    /// Slots by partition index; `None` where an index is missing.
    pub partitions: Vec<Option<PartitionSlot>>,
    /// The topic's counters. A table that replaces this one shares them.
    pub counters: Arc<TopicCounters>,
}

impl Topic {
    /// Returns the slot of a partition index; `None` when the topic has no such partition.
    pub fn slot(&self, index: i32) -> Option<&PartitionSlot> {
        self.partitions.get(usize::try_from(index).ok()?)?.as_ref()
    }
}

/// The snapshot of all topics.
#[derive(Clone, Debug, Default)]
pub struct TopicTable {
    /// For each listener of this broker, the endpoints of the other brokers for clients of that listener.
    brokers: Arc<[(String, Vec<BrokerEndpoint>)]>,
    /// Brokers whose replicas may be in the ISR, and their broker epochs; `None` before that is known, which allows
    /// all brokers.
    eligible: Option<Arc<[(BrokerId, i64)]>>,
    by_name: FxHashMap<Arc<str>, Arc<Topic>>,
    by_id: FxHashMap<TopicId, Arc<Topic>>,
}

impl TopicTable {
    /// Creates a table without topics.
    pub fn new(brokers: Vec<(String, Vec<BrokerEndpoint>)>) -> Self {
        Self { brokers: brokers.into(), ..Self::default() }
    }

    /// Returns the endpoints of the other brokers for clients of a listener. Brokers without that listener are left
    /// out.
    pub fn brokers_of(&self, listener: &str) -> &[BrokerEndpoint] {
        self.brokers.iter().find(|(name, _)| name == listener).map_or(&[], |(_, brokers)| brokers)
    }

    /// Returns the same table with the brokers whose replicas may be in the ISR: those that are neither fenced nor
    /// shutting down. Each has the epoch of its registration.
    pub fn with_eligible(&self, brokers: impl IntoIterator<Item = (BrokerId, i64)>) -> Self {
        Self { eligible: Some(brokers.into_iter().collect()), ..self.clone() }
    }

    /// Returns whether a broker's replicas may be in the ISR.
    pub fn eligibility(&self, broker: BrokerId) -> Eligibility {
        let Some(eligible) = &self.eligible else { return Eligibility::Unknown };
        let found = eligible.iter().find(|(id, _)| *id == broker);
        found.map_or(Eligibility::None, |(_, epoch)| Eligibility::At(*epoch))
    }

    /// Returns a new table with the topics `upsert` and without those named in `remove`. Other topics are shared with
    /// this one.
    pub fn replace(&self, upsert: impl IntoIterator<Item = Topic>, remove: &[String]) -> Self {
        let mut next = self.clone();
        for name in remove {
            if let Some(topic) = next.by_name.remove(name.as_str()) {
                next.by_id.remove(&topic.id);
            }
        }
        for mut topic in upsert {
            if let Some(old) = next.by_name.get(&topic.name).filter(|old| old.id == topic.id) {
                topic.counters = Arc::clone(&old.counters);
            }
            let topic = Arc::new(topic);
            if let Some(old) = next.by_name.insert(Arc::clone(&topic.name), Arc::clone(&topic)) {
                next.by_id.remove(&old.id);
            }
            next.by_id.insert(topic.id, topic);
        }
        next
    }

    /// Returns the topic with that name.
    pub fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    /// Returns the topic with that id.
    pub fn by_id(&self, id: &TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(id)
    }

    /// Returns the topic that a client refers to.
    pub fn find(&self, topic: &TopicRef) -> Option<&Topic> {
        match topic {
            TopicRef::Name(name) => self.by_name(name).map(|topic| &**topic),
            TopicRef::Id(id) => self.by_id(id).map(|topic| &**topic),
        }
    }

    /// Returns all topics, in no order.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.values()
    }

    /// Returns the number of topics.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns whether there are no topics.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, id: u8) -> Topic {
        Topic { name: name.into(), id: [id; 16], internal: false, partitions: Vec::new(), counters: Arc::default() }
    }

    #[test]
    fn a_topic_is_found_by_name_and_by_id() {
        let table = TopicTable::default().replace([topic("a", 1), topic("b", 2)], &[]);
        assert_eq!(table.by_name("a").map(|t| t.id), Some([1; 16]));
        assert_eq!(table.by_id(&[2; 16]).map(|t| &*t.name), Some("b"));
    }

    #[test]
    fn who_may_be_in_sync_outlives_changes_of_topics() {
        let table = TopicTable::default();
        assert_eq!(table.eligibility(BrokerId(1)), Eligibility::Unknown);
        let table = table.with_eligible([(BrokerId(2), 7)]).replace([topic("a", 1)], &[]);
        assert_eq!(table.eligibility(BrokerId(1)), Eligibility::None);
        assert_eq!(table.eligibility(BrokerId(2)), Eligibility::At(7));
        assert_eq!(table.with_eligible([(BrokerId(1), 7)]).len(), 1);
    }

    #[test]
    fn what_is_counted_of_a_topic_goes_on_until_it_is_made_again() {
        let table = TopicTable::default().replace([topic("a", 1)], &[]);
        table.by_name("a").unwrap().counters.of(0, 1).sent(5);
        let same = table.replace([topic("a", 1)], &[]);
        same.by_name("a").unwrap().counters.of(0, 1).sent(2);
        assert_eq!(table.by_name("a").unwrap().counters.counts().map(|counts| counts.bytes_out), Some(7));
        let other = same.replace([topic("a", 2)], &[]);
        assert_eq!(other.by_name("a").unwrap().counters.counts(), None);
    }

    #[test]
    fn a_topic_made_again_is_found_by_its_new_id_only() {
        let table = TopicTable::default().replace([topic("a", 1)], &[]).replace([topic("a", 3)], &[]);
        assert!(table.by_id(&[1; 16]).is_none());
        assert_eq!(table.by_id(&[3; 16]).map(|t| &*t.name), Some("a"));
        let removed = table.replace([], &["a".into()]);
        assert!(removed.is_empty() && removed.by_id(&[3; 16]).is_none());
    }
}
