//! One assigned partition in the fetcher's I/O thread: its position, the node to read from, and its back-off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::inbox::{Mark, Start, Wanted};
use crate::network::cluster::{Cluster, Leader, NodeId};
use pybroker_record::LeaderEpoch;
use pybroker_wire::fetch::DivergingEpoch;
use pybroker_wire::{TopicId, TopicRef};

/// An epoch that no leader exceeds: a back-off with it is not shortened by a new leader.
const NO_LATER: LeaderEpoch = LeaderEpoch(i32::MAX);

/// A replica to read from in place of the leader, as the leader requested (KIP-392).
#[derive(Debug, Clone, Copy)]
struct Preferred {
    node: NodeId,
    until: Instant,
}

/// The state of a partition that is independent of the position.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    leader_epoch: LeaderEpoch,
    preferred: Option<Preferred>,
}

impl Kept {
    /// The state of a partition that was not read before.
    pub const NOTHING: Self = Self { leader_epoch: LeaderEpoch(-1), preferred: None };
}

/// One assigned partition.
#[derive(Debug)]
pub struct Part {
    pub topic: Arc<str>,
    pub index: i32,
    pub start: Start,
    pub mark: Mark,
    pub paused: bool,
    /// Whether a request with this partition is in flight.
    pub busy: bool,
    hold_until: Option<Instant>,
    /// Epoch of the leader that the back-off applies to; a leader of a later epoch gets a request at once.
    held_for: LeaderEpoch,
    /// Epoch of the leader known at the last request.
    pub requested_epoch: LeaderEpoch,
    /// Consecutive failed requests.
    pub failures: u32,
    /// Epoch of the leader that it was last read from; -1 before that.
    pub leader_epoch: LeaderEpoch,
    /// Leader epoch of the record before the position; -1 if unknown.
    pub last_epoch: LeaderEpoch,
    /// The topic's name or id in the last Fetch.
    named: TopicRef,
    preferred: Option<Preferred>,
}

impl Part {
    /// A partition without requests so far. `kept` is the state under its previous mark.
    pub fn new(wanted: Wanted, kept: Kept) -> Self {
        let Wanted { topic, index, start, mark, paused, epoch } = wanted;
        Self {
            named: TopicRef::Name(Arc::clone(&topic)),
            topic,
            index,
            start,
            mark,
            paused,
            busy: false,
            hold_until: None,
            held_for: NO_LATER,
            requested_epoch: LeaderEpoch(-1),
            failures: 0,
            leader_epoch: kept.leader_epoch,
            last_epoch: epoch,
            preferred: kept.preferred,
        }
    }

    /// The state that a seek or a pause keeps. A seek keeps the preferred replica, as Kafka's consumer does: if that replica
    /// lacks the offset, it returns an error, and the fetcher reads from the leader.
    pub const fn kept(&self) -> Kept {
        Kept { leader_epoch: self.leader_epoch, preferred: self.preferred }
    }

    /// Whether this leader epoch is later than that of the last Fetch; records the epoch.
    pub fn leads_anew(&mut self, epoch: LeaderEpoch) -> bool {
        let known = self.leader_epoch;
        self.leader_epoch = known.max(epoch);
        known.0 >= 0 && epoch > known
    }

    /// Send no request before the given time, even to a new leader.
    pub fn rest_until(&mut self, until: Instant) {
        (self.hold_until, self.held_for) = (Some(until), NO_LATER);
    }

    /// Send no request before the given time to the leader of the last request.
    pub fn hold(&mut self, until: Instant) {
        (self.hold_until, self.held_for) = (Some(until), self.requested_epoch);
    }

    /// The end of the back-off, if it is in the future.
    pub fn held(&self, leader: Option<Leader>, now: Instant) -> Option<Instant> {
        let is_another = leader.is_some_and(|leader| leader.epoch > self.held_for);
        self.hold_until.filter(|hold| *hold > now && !is_another)
    }

    /// The node to read from: the preferred replica until it expires and as long as the node is known, else the leader.
    pub fn source(&mut self, leader: Leader, cluster: &Cluster, now: Instant) -> NodeId {
        self.preferred = self.preferred.filter(|it| it.until > now && cluster.servers.contains_key(&it.node));
        self.preferred.map_or(leader.node, |preferred| preferred.node)
    }

    /// Read from this node until the given time.
    pub fn prefer(&mut self, node: NodeId, until: Instant) {
        self.preferred = Some(Preferred { node, until });
    }

    /// Read from the leader again; returns whether there was a preferred replica.
    pub fn leave_preferred(&mut self) -> bool {
        self.preferred.take().is_some()
    }

    /// Set the topic's name or id for the next Fetch. The last epoch of another topic with this name does not apply.
    pub fn name(&mut self, id: Option<TopicId>) -> TopicRef {
        let named = id.map_or_else(|| TopicRef::Name(Arc::clone(&self.topic)), TopicRef::Id);
        if matches!((&self.named, &named), (TopicRef::Id(before), TopicRef::Id(now)) if before != now) {
            self.last_epoch = LeaderEpoch(-1);
        }
        self.named = named.clone();
        named
    }

    /// Whether a response contains this partition.
    pub fn is_meant(&self, topic: &TopicRef, index: i32) -> bool {
        self.index == index && (self.named == *topic || topic.is_named(&self.topic))
    }

    /// Continue where the logs diverge, unless the position is before that.
    pub fn take_divergence(&mut self, parts: DivergingEpoch) {
        if let Start::Offset(position) = self.start {
            self.start = Start::Offset(position.min(parts.end_offset));
            self.last_epoch = LeaderEpoch(parts.epoch);
        }
    }
}

/// The back-off after an error that a retry does not resolve.
pub const ERROR_REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn part(position: i64, epoch: i32) -> Part {
        let start = Start::Offset(position);
        let wanted = Wanted { topic: "t".into(), index: 0, start, mark: 1, paused: false, epoch: LeaderEpoch(epoch) };
        Part::new(wanted, Kept::NOTHING)
    }

    const fn leader(node: i32, epoch: i32) -> Leader {
        Leader { node, epoch: LeaderEpoch(epoch) }
    }

    #[test]
    fn a_preferred_replica_is_read_for_its_time_and_while_it_is_known() {
        let (mut part, mut cluster) = (part(0, -1), Cluster::default());
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        cluster.servers.insert(2, "h:1".into());
        part.prefer(2, now + second);
        assert_eq!(2, part.source(leader(1, 0), &cluster, now));
        assert_eq!(1, part.source(leader(1, 0), &cluster, now + second));
        part.prefer(3, now + second);
        assert_eq!(1, part.source(leader(1, 0), &cluster, now), "it is not known");
        part.prefer(2, now + second);
        assert!(part.leave_preferred() && !part.leave_preferred());
    }

    #[test]
    fn a_preferred_replica_and_the_leaders_epoch_outlast_a_seek() {
        let (mut old, mut cluster, now) = (part(0, -1), Cluster::default(), Instant::now());
        cluster.servers.insert(2, "h:1".into());
        old.prefer(2, now + Duration::from_secs(1));
        assert!(!old.leads_anew(LeaderEpoch(4)));
        let start = Start::Offset(7);
        let wanted = Wanted { topic: "t".into(), index: 0, start, mark: 2, paused: false, epoch: LeaderEpoch(-1) };
        let mut moved = Part::new(wanted, old.kept());
        assert_eq!((2, true), (moved.source(leader(1, 4), &cluster, now), moved.leads_anew(LeaderEpoch(5))));
    }

    #[test]
    fn a_leader_of_a_later_epoch_is_asked_at_once() {
        let (mut part, now) = (part(0, -1), Instant::now());
        let until = now + Duration::from_secs(1);
        part.requested_epoch = LeaderEpoch(4);
        part.hold(until);
        assert_eq!((Some(until), None), (part.held(Some(leader(1, 4)), now), part.held(Some(leader(2, 5)), now)));
        part.rest_until(until);
        assert_eq!(Some(until), part.held(Some(leader(2, 6)), now));
    }

    #[test]
    fn reading_goes_on_where_the_logs_part_and_never_later() {
        let mut part = part(10, 4);
        part.take_divergence(DivergingEpoch { epoch: 3, end_offset: 12 });
        assert_eq!((Start::Offset(10), LeaderEpoch(3)), (part.start, part.last_epoch));
        part.take_divergence(DivergingEpoch { epoch: 2, end_offset: 7 });
        assert_eq!((Start::Offset(7), LeaderEpoch(2)), (part.start, part.last_epoch));
    }

    #[test]
    fn the_epochs_of_another_topic_of_this_name_say_nothing() {
        let mut part = part(10, 4);
        assert_eq!((TopicRef::Id([1; 16]), LeaderEpoch(4)), (part.name(Some([1; 16])), part.last_epoch));
        assert_eq!((TopicRef::Id([2; 16]), LeaderEpoch(-1)), (part.name(Some([2; 16])), part.last_epoch));
        assert!(part.is_meant(&TopicRef::Id([2; 16]), 0) && !part.is_meant(&TopicRef::Id([1; 16]), 0));
    }
}
