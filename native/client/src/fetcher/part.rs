//! One assigned partition, as the fetcher's I/O thread has it: where reading stands, whom it is read from, what it waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::inbox::{Mark, Start, Wanted};
use crate::network::cluster::{Cluster, Leader, NodeId};
use pybroker_record::LeaderEpoch;
use pybroker_wire::fetch::DivergingEpoch;
use pybroker_wire::{TopicId, TopicRef};

/// An epoch that none follows: what waits because of it waits for its whole time.
const NO_LATER: LeaderEpoch = LeaderEpoch(i32::MAX);

/// Where another replica than the leader's is read, as the leader said (KIP-392).
#[derive(Debug, Clone, Copy)]
struct Preferred {
    node: NodeId,
    until: Instant,
}

/// What is known of a partition whatever is read of it.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    leader_epoch: LeaderEpoch,
    preferred: Option<Preferred>,
}

impl Kept {
    /// Of a partition that was not read before.
    pub const NOTHING: Self = Self { leader_epoch: LeaderEpoch(-1), preferred: None };
}

/// See the module.
#[derive(Debug)]
pub struct Part {
    pub topic: Arc<str>,
    pub index: i32,
    pub start: Start,
    pub mark: Mark,
    pub paused: bool,
    /// A request that concerns it is under way.
    pub busy: bool,
    hold_until: Option<Instant>,
    /// Epoch of the leader whose answer it waits after; one of a later epoch is asked at once.
    held_for: LeaderEpoch,
    /// Epoch of the leader that was known at the last request.
    pub asked_epoch: LeaderEpoch,
    /// Requests in a row that failed.
    pub failures: u32,
    /// Epoch of the leader that it was read from last; -1 before that.
    pub leader_epoch: LeaderEpoch,
    /// Leader epoch of the record before the position; -1 where it is not known.
    pub last_epoch: LeaderEpoch,
    /// As the last Fetch named its topic.
    named: TopicRef,
    preferred: Option<Preferred>,
}

impl Part {
    /// Nothing was asked of it yet. `kept` is from the partition where it was read under another mark.
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
            asked_epoch: LeaderEpoch(-1),
            failures: 0,
            leader_epoch: kept.leader_epoch,
            last_epoch: epoch,
            preferred: kept.preferred,
        }
    }

    /// What a change of the position, or a pause, does not change. A seek leaves the preferred replica in its place, as
    /// Kafka's consumer does: where that lacks the offset, it says so, and the leader is asked.
    pub const fn kept(&self) -> Kept {
        Kept { leader_epoch: self.leader_epoch, preferred: self.preferred }
    }

    /// Whether a leader of this epoch has come since the last Fetch; from now on it is known.
    pub fn leads_anew(&mut self, epoch: LeaderEpoch) -> bool {
        let known = self.leader_epoch;
        self.leader_epoch = known.max(epoch);
        known.0 >= 0 && epoch > known
    }

    /// Ask nothing before that moment, also where another leader comes.
    pub fn rest_until(&mut self, until: Instant) {
        (self.hold_until, self.held_for) = (Some(until), NO_LATER);
    }

    /// Ask nothing of the leader that was asked last before that moment.
    pub fn hold(&mut self, until: Instant) {
        (self.hold_until, self.held_for) = (Some(until), self.asked_epoch);
    }

    /// Until when nothing is asked, where that is to come.
    pub fn held(&self, leader: Option<Leader>, now: Instant) -> Option<Instant> {
        let is_another = leader.is_some_and(|leader| leader.epoch > self.held_for);
        self.hold_until.filter(|hold| *hold > now && !is_another)
    }

    /// The node to read from: the preferred replica for its time and as long as it is known, else the leader.
    pub fn source(&mut self, leader: Leader, cluster: &Cluster, now: Instant) -> NodeId {
        self.preferred = self.preferred.filter(|it| it.until > now && cluster.servers.contains_key(&it.node));
        self.preferred.map_or(leader.node, |preferred| preferred.node)
    }

    /// Read from this node for so long.
    pub fn prefer(&mut self, node: NodeId, until: Instant) {
        self.preferred = Some(Preferred { node, until });
    }

    /// Read from the leader again; whether another replica was read from.
    pub fn leave_preferred(&mut self) -> bool {
        self.preferred.take().is_some()
    }

    /// Name the topic for the next Fetch. What was read of another topic of this name says nothing of this one.
    pub fn name(&mut self, id: Option<TopicId>) -> TopicRef {
        let named = id.map_or_else(|| TopicRef::Name(Arc::clone(&self.topic)), TopicRef::Id);
        if matches!((&self.named, &named), (TopicRef::Id(before), TopicRef::Id(now)) if before != now) {
            self.last_epoch = LeaderEpoch(-1);
        }
        self.named = named.clone();
        named
    }

    /// Whether a response means this partition.
    pub fn is_meant(&self, topic: &TopicRef, index: i32) -> bool {
        self.index == index && (self.named == *topic || topic.is_named(&self.topic))
    }

    /// Read on where the logs part. The position does not change where it lies before that.
    pub fn take_divergence(&mut self, parts: DivergingEpoch) {
        if let Start::Offset(position) = self.start {
            self.start = Start::Offset(position.min(parts.end_offset));
            self.last_epoch = LeaderEpoch(parts.epoch);
        }
    }
}

/// The rest of those that met an error which asking again does not end.
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
        part.asked_epoch = LeaderEpoch(4);
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
