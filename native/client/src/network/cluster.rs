//! The client's view of the cluster: brokers, and the leaders of partitions.
//!
//! Updated by Metadata responses, and by the leaders in Produce and Fetch responses with errors such as
//! NOT_LEADER_OR_FOLLOWER (KIP-951). Of two leaders of a partition the one with the later epoch is kept, whichever response
//! is newer: a broker with stale metadata returns the earlier one.

use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use pybroker_record::LeaderEpoch;
use pybroker_wire::metadata::{MetadataResponse, PartitionMetadata};
use pybroker_wire::{BrokerEndpoint, ErrorCode, LeaderAndEpoch, TopicId, ZERO_TOPIC_ID};

/// A broker's id; bootstrap servers have negative ids until their broker ids are known.
pub type NodeId = i32;

/// The leader of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    pub node: NodeId,
    pub epoch: LeaderEpoch,
}

/// A topic's partitions by index; `None` without a leader.
#[derive(Debug, Clone, Default)]
pub struct Topic {
    /// Zero if the broker returned none (before Kafka 2.8).
    pub id: TopicId,
    pub leaders: Vec<Option<Leader>>,
    /// The topic's error code in the last response.
    pub error_code: ErrorCode,
    /// The topic was unknown in the last response: the known epochs do not apply to the next topic with its name.
    is_removed: bool,
}

/// The client's view of the cluster.
#[derive(Debug, Default)]
pub struct Cluster {
    /// `host:port` by node id.
    pub servers: FxHashMap<NodeId, String>,
    topics: FxHashMap<String, Topic>,
    /// Topics of the next Metadata request.
    wanted: FxHashSet<String>,
    /// When the last response arrived.
    pub responded_at: Option<Instant>,
    /// Whether metadata is needed, for an error since the last request.
    pub stale: bool,
    /// Whether a topic is wanted that was not in the last request.
    pub not_requested: bool,
    /// The number of leader changes of known partitions; a new epoch of the same leader counts too.
    pub leader_changes: u64,
}

impl Cluster {
    /// Add a topic to the Metadata requests.
    pub fn want(&mut self, topic: &str) {
        if !self.wanted.contains(topic) {
            self.wanted.insert(topic.to_owned());
            (self.stale, self.not_requested) = (true, true);
        }
    }

    /// Set the topics of the Metadata requests.
    pub fn want_only<'a>(&mut self, topics: impl Iterator<Item = &'a str>) {
        let wanted: FxHashSet<String> = topics.map(str::to_owned).collect();
        let grown = !wanted.is_subset(&self.wanted);
        (self.stale, self.not_requested) = (self.stale | grown, self.not_requested | grown);
        self.wanted = wanted;
    }

    /// The topics of the next request, sorted.
    pub fn wanted(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.wanted.iter().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// A topic that was in a response.
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// The leader of a partition; `None` without one.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<Leader> {
        let index = usize::try_from(partition).ok()?;
        *self.topics.get(topic)?.leaders.get(index)?
    }

    /// The id of a topic; `None` if unknown.
    pub fn topic_id(&self, name: &str) -> Option<TopicId> {
        self.topics.get(name).map(|topic| topic.id).filter(|id| *id != ZERO_TOPIC_ID)
    }

    /// Whether the known leader of a partition is another broker than this.
    pub fn leads_elsewhere(&self, topic: &str, partition: i32, node: NodeId) -> bool {
        self.leader(topic, partition).is_some_and(|leader| leader.node != node)
    }

    /// Set the endpoints of brokers from a response with errors.
    pub fn take_endpoints(&mut self, endpoints: &[BrokerEndpoint]) {
        for endpoint in endpoints.iter().filter(|endpoint| endpoint.id >= 0) {
            self.servers.insert(endpoint.id, format_server(&endpoint.host, endpoint.port.into()));
        }
    }

    /// Set the leader that an error names, if its epoch is later than the known one and its endpoint is known. Returns
    /// whether it was set: no Metadata request is needed then.
    pub fn take_hint(&mut self, topic: &str, partition: i32, hint: LeaderAndEpoch) -> bool {
        let (node, epoch) = (hint.id.0, hint.epoch);
        let Ok(index) = usize::try_from(partition) else { return false };
        let Some(known) = self.topics.get_mut(topic).and_then(|topic| topic.leaders.get_mut(index)) else {
            return false;
        };
        if node < 0 || !self.servers.contains_key(&node) || known.is_some_and(|known| epoch <= known.epoch) {
            return false;
        }
        self.leader_changes += u64::from(known.is_some());
        *known = Some(Leader { node, epoch });
        true
    }

    /// Forget the endpoints of brokers: only the bootstrap servers are left. The wanted topics are kept.
    pub fn forget_servers(&mut self) {
        self.servers.clear();
        self.stale = true;
    }

    /// Apply a response. Topics that it does not contain keep their state.
    pub fn apply(&mut self, response: &MetadataResponse, now: Instant) {
        if !response.brokers.is_empty() {
            self.servers = response.brokers.iter().map(|b| (b.id, format_server(&b.host, b.port))).collect();
        }
        let mut missing = false;
        for topic in &response.topics {
            let known = self.topics.entry(topic.name.clone()).or_default();
            known.error_code = topic.error;
            if topic.error != ErrorCode::NONE {
                missing = true;
                if topic.error == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
                    // A topic created again under this name begins with lower epochs.
                    known.id = ZERO_TOPIC_ID;
                    known.is_removed = true;
                }
                continue;
            }
            let is_same = known.id == topic.id && !std::mem::take(&mut known.is_removed);
            known.id = topic.id;
            // A response has all partitions of a topic: an index beyond their number is invalid.
            let named = topic.partitions.len();
            let index_of =
                |partition: &PartitionMetadata| usize::try_from(partition.index.0).ok().filter(|index| *index < named);
            let count = topic.partitions.iter().filter_map(index_of).max().map_or(0, |last| last + 1);
            let before = std::mem::replace(&mut known.leaders, vec![None; count]);
            for partition in &topic.partitions {
                let Some(index) = index_of(partition) else { continue };
                let before = before.get(index).copied().flatten().filter(|_| is_same);
                let leader = latest(before, partition);
                missing |= leader.is_none();
                self.leader_changes += u64::from(before.is_some_and(|it| leader.is_some_and(|now| now != it)));
                known.leaders[index] = leader;
            }
        }
        self.responded_at = Some(now);
        // Sending a request cleared this; topics added since have to be requested again.
        self.stale |= missing;
    }
}

/// The later of the known leader and the leader in a response.
fn latest(before: Option<Leader>, responded: &PartitionMetadata) -> Option<Leader> {
    let (node, epoch) = (responded.leader.0, responded.leader_epoch);
    match before {
        Some(before) if epoch.0 >= 0 && epoch < before.epoch => Some(before),
        _ => (node >= 0).then_some(Leader { node, epoch }),
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub fn format_server(host: &str, port: i32) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pybroker_record::{BrokerId, PartitionIndex};
    use pybroker_wire::metadata::{BrokerMetadata, PartitionMetadata, TopicMetadata};

    #[test]
    fn a_topic_wanted_while_a_question_is_under_way_is_asked_for_next() {
        let mut cluster = Cluster { stale: false, ..Cluster::default() };
        cluster.want("t");
        cluster.apply(&MetadataResponse::default(), Instant::now());
        assert!(cluster.stale);
    }

    #[test]
    fn only_what_is_wanted_is_asked_for() {
        let mut cluster = Cluster::default();
        cluster.want_only(["a", "b"].into_iter());
        assert!(std::mem::take(&mut cluster.stale));
        cluster.want_only(["b"].into_iter());
        assert_eq!((false, vec!["b"]), (cluster.stale, cluster.wanted()));
    }

    #[test]
    fn a_topic_without_leader_keeps_the_cluster_stale() {
        let mut cluster = Cluster::default();
        cluster.want("t");
        let partition = |index, leader| PartitionMetadata {
            error: ErrorCode::NONE,
            index: PartitionIndex(index),
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(3),
        };
        let mut response = MetadataResponse {
            brokers: vec![BrokerMetadata { id: 1, host: "::1".into(), port: 9092 }],
            topics: vec![TopicMetadata {
                error: ErrorCode::NONE,
                name: "t".into(),
                id: ZERO_TOPIC_ID,
                partitions: vec![partition(1, -1), partition(0, 1)],
            }],
            error: ErrorCode::NONE,
        };
        cluster.apply(&response, Instant::now());
        assert_eq!(Some(Leader { node: 1, epoch: LeaderEpoch(3) }), cluster.leader("t", 0));
        assert_eq!((None, true), (cluster.leader("t", 1), cluster.stale));
        response.topics[0].partitions[0].leader = BrokerId(1);
        cluster.stale = false;
        cluster.apply(&response, Instant::now());
        assert!(!cluster.stale && cluster.leader("t", 1).is_some() && cluster.leader("t", 2).is_none());
        assert_eq!("[::1]:9092", cluster.servers[&1]);
    }

    fn responded_leader(id: u8, leader: i32, epoch: i32) -> MetadataResponse {
        let broker = |id| BrokerMetadata { id, host: "h".into(), port: 9092 };
        let partition = PartitionMetadata {
            error: ErrorCode::NONE,
            index: PartitionIndex(0),
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(epoch),
        };
        MetadataResponse {
            brokers: vec![broker(1), broker(2)],
            topics: vec![TopicMetadata {
                error: ErrorCode::NONE,
                name: "t".into(),
                id: [id; 16],
                partitions: vec![partition],
            }],
            error: ErrorCode::NONE,
        }
    }

    fn hint(leader: i32, epoch: i32) -> LeaderAndEpoch {
        LeaderAndEpoch { id: BrokerId(leader), epoch: LeaderEpoch(epoch) }
    }

    #[test]
    fn a_leader_of_a_later_epoch_is_not_given_up_for_an_earlier_one() {
        let mut cluster = Cluster::default();
        let now = Instant::now();
        cluster.apply(&responded_leader(7, 1, 5), now);
        assert!(cluster.take_hint("t", 0, hint(2, 6)) && cluster.leads_elsewhere("t", 0, 1));
        cluster.apply(&responded_leader(7, 1, 5), now);
        assert_eq!(Some(Leader { node: 2, epoch: LeaderEpoch(6) }), cluster.leader("t", 0));
        assert!(!cluster.take_hint("t", 0, hint(1, 6)), "the same epoch is no news");
        cluster.apply(&responded_leader(7, 1, 7), now);
        assert_eq!((1, 2), (cluster.leader("t", 0).unwrap().node, cluster.leader_changes));
    }

    #[test]
    fn an_index_beyond_the_partitions_of_its_topic_is_none() {
        let mut cluster = Cluster::default();
        for index in [1, 2_000_000_000, i32::MAX, -1, i32::MIN] {
            let mut response = responded_leader(7, 1, 5);
            let other = PartitionMetadata { index: PartitionIndex(index), ..response.topics[0].partitions[0].clone() };
            response.topics[0].partitions = vec![other];
            cluster.apply(&response, Instant::now());
            assert_eq!((None, None), (cluster.leader("t", 0), cluster.leader("t", index)));
        }
    }

    #[test]
    fn a_leader_that_cannot_be_found_is_no_help() {
        let mut cluster = Cluster::default();
        cluster.apply(&responded_leader(7, 1, 5), Instant::now());
        assert!(!cluster.take_hint("t", 0, hint(3, 6)) && !cluster.take_hint("t", 1, hint(2, 6)));
        let endpoint = BrokerEndpoint { id: 3, host: "::1".into(), port: 9094, rack: None };
        cluster.take_endpoints(&[endpoint]);
        assert!(cluster.take_hint("t", 0, hint(3, 6)));
        assert_eq!("[::1]:9094", cluster.servers[&3]);
    }

    #[test]
    fn a_topic_made_anew_begins_with_its_own_epochs() {
        let mut cluster = Cluster::default();
        cluster.apply(&responded_leader(7, 1, 5), Instant::now());
        cluster.apply(&responded_leader(8, 2, 0), Instant::now());
        assert_eq!(Some(Leader { node: 2, epoch: LeaderEpoch(0) }), cluster.leader("t", 0));
        let mut removed = responded_leader(0, 1, 0);
        removed.topics[0].error = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        cluster.apply(&responded_leader(0, 1, 9), Instant::now());
        cluster.apply(&removed, Instant::now());
        cluster.apply(&responded_leader(0, 1, 0), Instant::now());
        assert_eq!(Some(Leader { node: 1, epoch: LeaderEpoch(0) }), cluster.leader("t", 0));
    }
}
