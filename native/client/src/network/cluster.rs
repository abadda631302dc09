//! What the client knows of the cluster: brokers, and who leads which partition. Changed only by Metadata responses.

use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use pybroker_record::LeaderEpoch;
use pybroker_wire::ErrorCode;
use pybroker_wire::metadata::MetadataResponse;

/// A broker's id; bootstrap servers have ids below zero until it is known which brokers they are.
pub type NodeId = i32;

/// Who leads one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    pub node: NodeId,
    pub epoch: LeaderEpoch,
}

/// A topic's partitions by index; `None` where there is no leader at present.
#[derive(Debug, Clone, Default)]
pub struct Topic {
    pub leaders: Vec<Option<Leader>>,
    /// The topic's own error code in the last answer.
    pub error_code: ErrorCode,
}

/// The latest known state.
#[derive(Debug, Default)]
pub struct Cluster {
    /// `host:port` by node id.
    pub servers: FxHashMap<NodeId, String>,
    topics: FxHashMap<String, Topic>,
    /// Topics that the next question names.
    wanted: FxHashSet<String>,
    /// When the last answer came.
    pub answered_at: Option<Instant>,
    /// Something looked wrong since the last question was sent.
    pub stale: bool,
    /// A topic is wanted that the last question did not name.
    pub unasked: bool,
}

impl Cluster {
    /// From now on ask for this topic too.
    pub fn want(&mut self, topic: &str) {
        if !self.wanted.contains(topic) {
            self.wanted.insert(topic.to_owned());
            (self.stale, self.unasked) = (true, true);
        }
    }

    /// From now on ask for these topics and no others.
    pub fn want_only<'a>(&mut self, topics: impl Iterator<Item = &'a str>) {
        let wanted: FxHashSet<String> = topics.map(str::to_owned).collect();
        let grown = !wanted.is_subset(&self.wanted);
        (self.stale, self.unasked) = (self.stale | grown, self.unasked | grown);
        self.wanted = wanted;
    }

    /// The topics to ask for, in a fixed order.
    pub fn wanted(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.wanted.iter().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// A topic that was answered at least once.
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// The leader of a partition, if there is one.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<Leader> {
        let index = usize::try_from(partition).ok()?;
        *self.topics.get(topic)?.leaders.get(index)?
    }

    /// Take in an answer. Topics that it does not name keep their state.
    pub fn apply(&mut self, answer: &MetadataResponse, now: Instant) {
        if !answer.brokers.is_empty() {
            self.servers = answer.brokers.iter().map(|b| (b.id, format_server(&b.host, b.port))).collect();
        }
        let mut missing = false;
        for topic in &answer.topics {
            let known = self.topics.entry(topic.name.clone()).or_default();
            known.error_code = topic.error;
            if topic.error != ErrorCode::NONE {
                missing = true;
                continue;
            }
            let count = topic.partitions.iter().map(|p| p.index.0 + 1).max().unwrap_or(0).max(0);
            known.leaders = vec![None; count as usize];
            for partition in topic.partitions.iter().filter(|p| p.index.0 >= 0) {
                let leader = (partition.leader.0 >= 0)
                    .then_some(Leader { node: partition.leader.0, epoch: partition.leader_epoch });
                missing |= leader.is_none();
                known.leaders[partition.index.0 as usize] = leader;
            }
        }
        self.answered_at = Some(now);
        // A question cleared it when it was sent; what was wanted since must be asked for again.
        self.stale |= missing;
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
        let mut answer = MetadataResponse {
            brokers: vec![BrokerMetadata { id: 1, host: "::1".into(), port: 9092 }],
            topics: vec![TopicMetadata {
                error: ErrorCode::NONE,
                name: "t".into(),
                partitions: vec![partition(1, -1), partition(0, 1)],
            }],
        };
        cluster.apply(&answer, Instant::now());
        assert_eq!(Some(Leader { node: 1, epoch: LeaderEpoch(3) }), cluster.leader("t", 0));
        assert_eq!((None, true), (cluster.leader("t", 1), cluster.stale));
        answer.topics[0].partitions[0].leader = BrokerId(1);
        cluster.stale = false;
        cluster.apply(&answer, Instant::now());
        assert!(!cluster.stale && cluster.leader("t", 1).is_some() && cluster.leader("t", 2).is_none());
        assert_eq!("[::1]:9092", cluster.servers[&1]);
    }
}
