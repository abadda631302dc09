//! Voters under random schedules, each from a seed: messages are lost, duplicated and reordered, disks are slow,
//! processes crash at any moment and restart with the content of their disk.
//!
//! Voters may change too: they get directories (kraft.version 0 to 1), and are added or removed one at a time.
//!
//! Elections begin by events of the schedule and not by timeouts, so that each seed always gives the same run. Every
//! step checks that there is one leader per term, that logs match, and that no committed entry is missing on a later
//! leader.

use std::collections::BTreeMap;

use super::tests::{empty, records, settings};
use super::*;

#[path = "simulation_checks.rs"]
mod checks;
#[path = "lost_tail_tests.rs"]
mod lost_tail;

const STEPS: usize = 1000;

/// A random number generator with a seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    fn hits(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A fault that a test injects, to check that it is detected.
#[derive(Clone, Copy, PartialEq)]
enum Planted {
    Nothing,
    VoteNotPersisted,
    SentBeforePersisted,
    LossForgotten,
}

#[derive(Clone, Default)]
struct Disk {
    hard_state: Option<HardState>,
    snapshot: Option<SnapshotMark>,
    /// The voters as of the snapshot.
    base: Voters,
    /// The last change of voters known to be committed.
    completed: u64,
    log: Vec<Entry>,
    /// The last acknowledged entry; `metadata-log-position` in Python.
    acknowledged: Position,
}

/// Node ids of the voters; `named` if the log names them by node and directory.
#[derive(Clone, Default, Debug, PartialEq)]
struct Voters {
    nodes: Vec<i64>,
    named: bool,
}

impl Voters {
    fn key(&self, node: i64) -> ReplicaKey {
        if self.named { (node + 1) << 32 | node } else { node }
    }

    fn keys(&self) -> Vec<ReplicaKey> {
        self.nodes.iter().map(|node| self.key(*node)).collect()
    }

    /// Returns the voters in an entry.
    fn of(payload: &[u8]) -> Option<Self> {
        let records = batch::changes_voters(payload).then(|| control::parse_control(payload).unwrap())?;
        Some(Self { nodes: records[0].1.iter().map(|node| i64::from(*node)).collect(), named: true })
    }

    fn entry(&self) -> Vec<u8> {
        let nodes: Vec<u8> = self.nodes.iter().map(|node| *node as u8).collect();
        control::build_control(&[(6, &nodes)], 0)
    }
}

impl Disk {
    fn before(&self) -> Position {
        self.snapshot.as_ref().map_or(Position::default(), |mark| mark.last)
    }

    fn last(&self) -> Position {
        self.log.last().map_or(self.before(), |entry| Position { index: entry.index, term: entry.term })
    }

    /// Returns the voters at a restart, and the index up to which the log is known to be committed, as `Voter` does
    /// in Python.
    fn voters(&self, own: i64) -> (Voters, u64) {
        let changes = self.log.iter().filter_map(|entry| Some((entry.index, Voters::of(&entry.payload)?)));
        let changes: Vec<(u64, Voters)> = changes.collect();
        let known = changes.iter().filter(|(index, _)| *index <= self.completed).count();
        let mut completed = known.max(changes.len().saturating_sub(1));
        let after = |count: usize| if count == 0 { self.base.clone() } else { changes[count - 1].1.clone() };
        if completed < changes.len() && after(completed).nodes == [own] {
            completed += 1;
        }
        let index = if completed == 0 { self.before().index } else { changes[completed - 1].0 };
        (after(completed), index)
    }

    fn restored(&self, own: i64) -> Restored {
        let before = self.before();
        let mut runs: Vec<TermRun> = vec![];
        for entry in &self.log {
            if runs.last().is_none_or(|run| run.term != entry.term) {
                runs.push(TermRun { first: entry.index, term: entry.term });
            }
        }
        Restored {
            hard_state: self.hard_state,
            before,
            snapshot: self.snapshot.clone(),
            runs,
            last: before.index + self.log.len() as u64,
            replayed: self.voters(own).1,
            tail: self.log.iter().filter(|entry| entry.index > self.voters(own).1).cloned().collect(),
            awaited: self.acknowledged,
        }
    }

    fn write(&mut self, ready: &Ready, planted: Planted, named: &BTreeMap<u64, Voters>) {
        if let Some(mark) = &ready.snapshot {
            self.snapshot = Some(mark.clone());
            self.base = named[&mark.last.index].clone();
            self.log.clear();
        }
        if planted != Planted::VoteNotPersisted {
            self.hard_state = ready.hard_state.or(self.hard_state);
        }
        if let Some(first) = ready.entries.first() {
            self.log.truncate((first.index - self.before().index) as usize - 1);
        }
        self.log.extend(ready.entries.iter().cloned());
    }
}

struct Node {
    quorum: Option<Quorum>,
    disk: Disk,
    unwritten: Vec<Ready>,
    offered: Option<SnapshotMark>,
    /// The current voters.
    voters: Voters,
    /// The last applied change of voters, until it is on the disk.
    completed: u64,
}

struct Cluster {
    dice: Dice,
    planted: Planted,
    /// Whether voters change.
    changes: bool,
    /// The number of logs that have lost entries; `None` if no log does.
    losses: Option<usize>,
    /// The voters as of the snapshots, by their last entries.
    named: BTreeMap<u64, Voters>,
    /// Number of committed changes.
    changed: usize,
    ids: Vec<i64>,
    nodes: Vec<Node>,
    sent: Vec<(i64, i64, Vec<u8>)>,
    leaders: BTreeMap<u64, i64>,
    committed: Vec<Entry>,
    proposed: usize,
}

impl Cluster {
    fn new(seed: u64, planted: Planted) -> Self {
        Self::begin(seed, planted, false)
    }

    fn begin(seed: u64, planted: Planted, changes: bool) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let ids: Vec<i64> = (0..[3, 3, 4, 5][dice.below(4)]).collect();
        let voters = Voters { nodes: ids.clone(), named: false };
        let nodes = ids
            .iter()
            .map(|id| Node {
                quorum: Some(Quorum::new(&voter_settings(*id, &ids), empty()).unwrap()),
                disk: Disk { base: voters.clone(), ..Disk::default() },
                unwritten: vec![],
                offered: None,
                voters: voters.clone(),
                completed: 0,
            })
            .collect();
        let (named, leaders) = (BTreeMap::new(), BTreeMap::new());
        let (sent, committed) = (vec![], vec![]);
        Self {
            dice,
            planted,
            changes,
            losses: None,
            named,
            changed: 0,
            ids,
            nodes,
            sent,
            leaders,
            committed,
            proposed: 0,
        }
    }

    fn run(mut self) -> Result<usize, String> {
        for _ in 0..STEPS {
            self.step()?;
        }
        Ok(self.committed.len())
    }

    fn step(&mut self) -> Result<(), String> {
        let at = self.dice.below(self.nodes.len());
        match self.dice.below(100) {
            0..50 => self.deliver()?,
            50..72 => self.write(at),
            72..80 => self.propose(at),
            80..86 => drop(self.running(at).map(|quorum| quorum.tick(0))),
            86..91 => self.campaign(at),
            91..92 => self.crash(at),
            92..95 => self.start(at),
            95..97 => self.compact(at),
            97..98 if self.changes => self.change(at),
            98..99 if self.changes => self.look_round(at),
            99 if self.losses.is_some() => self.lose_tail(at),
            _ => self.install(at),
        }
        for at in 0..self.nodes.len() {
            self.work(at)?;
        }
        Ok(())
    }

    fn running(&mut self, at: usize) -> Option<&mut Quorum> {
        self.nodes[at].quorum.as_mut()
    }

    fn deliver(&mut self) -> Result<(), String> {
        if self.sent.is_empty() {
            return Ok(());
        }
        let chosen = self.dice.below(self.sent.len());
        let (from, to, message) = self.sent.swap_remove(chosen);
        if self.dice.hits(10) {
            return Ok(());
        }
        if self.dice.hits(5) {
            self.sent.push((from, to, message.clone()));
        }
        let node = &mut self.nodes[to as usize];
        if let Some(quorum) = &mut node.quorum {
            match quorum.step(node.voters.key(from), &message, 0) {
                Ok(offered) => node.offered = offered.or(node.offered.take()),
                // The other voters may detect a voter that forgot its responses.
                Err(_) if self.planted != Planted::Nothing => {}
                // A replica that does not vote rejects messages that name only its node.
                Err(QuorumError::Message(_)) if self.changes && !quorum.votes() => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn write(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(quorum) = &mut node.quorum else { return };
        let count = if self.dice.hits(50) { node.unwritten.len() } else { node.unwritten.len().min(1) };
        for ready in node.unwritten.drain(..count) {
            node.disk.write(&ready, self.planted, &self.named);
            quorum.persisted(ready.number);
            if quorum.awaited().is_none() && self.planted != Planted::LossForgotten {
                node.disk.acknowledged = node.disk.last();
            }
            if self.planted != Planted::SentBeforePersisted {
                let messages = ready.persisted_messages.into_iter();
                self.sent.extend(messages.map(|(to, bytes)| (at as i64, i64::from(node_of(to)), bytes)));
            }
        }
        if node.unwritten.is_empty() {
            node.disk.completed = node.completed;
        }
    }

    fn propose(&mut self, at: usize) {
        let payload = records(&self.proposed.to_string());
        if self.running(at).is_some_and(|quorum| quorum.propose(payload).is_ok()) {
            self.proposed += 1;
        }
    }

    fn campaign(&mut self, at: usize) {
        let alarmed = self.dice.hits(10);
        if let Some(quorum) = self.running(at).filter(|quorum| alarmed || quorum.leader().is_none()) {
            quorum.forget_leader();
            quorum.campaign(0).unwrap();
        }
    }

    fn crash(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.quorum = None;
        node.unwritten.clear();
        node.offered = None;
    }

    fn start(&mut self, at: usize) {
        let id = self.ids[at];
        let node = &mut self.nodes[at];
        if node.quorum.is_none() {
            let (voters, _) = node.disk.voters(id);
            let own = voter_settings(voters.key(id), &voters.keys());
            let settings = QuorumSettings { is_open: voters.named, ..own };
            node.quorum = Some(Quorum::new(&settings, node.disk.restored(id)).unwrap());
            (node.voters, node.completed) = (voters, node.disk.completed);
        }
    }

    /// The first change gives directories to all voters. Later ones remove or add one voter.
    fn change(&mut self, at: usize) {
        let which = self.ids[self.dice.below(self.ids.len())];
        let node = &mut self.nodes[at];
        let Some(quorum) = node.quorum.as_mut().filter(|quorum| quorum.is_leader()) else { return };
        let mut nodes = node.voters.nodes.clone();
        if node.voters.named {
            if let Some(place) = nodes.iter().position(|one| *one == which) {
                nodes.remove(place);
            } else {
                nodes.push(which);
            }
        }
        if !nodes.is_empty() {
            drop(quorum.propose(Voters { nodes, named: true }.entry()));
        }
    }

    /// A leader replicates the log to replicas that do not vote. A leader that does not vote itself resigns.
    fn look_round(&mut self, at: usize) {
        let (ids, resigns) = (self.ids.clone(), self.dice.hits(50));
        let node = &mut self.nodes[at];
        let Some(quorum) = node.quorum.as_mut().filter(|quorum| quorum.is_leader()) else { return };
        if !quorum.votes() && resigns {
            return quorum.resign();
        }
        for id in ids.iter().filter(|id| node.voters.named && !node.voters.nodes.contains(id) && **id != at as i64) {
            quorum.add_learner(node.voters.key(*id)).unwrap();
        }
    }

    /// Applies a committed change as `Voter` does in Python.
    fn apply(&mut self, at: usize, entry: &Entry) {
        let Some(after) = Voters::of(&entry.payload) else { return };
        let node = &mut self.nodes[at];
        let Some(quorum) = &mut node.quorum else { return };
        if !node.voters.named {
            let renamed: Vec<(i64, i64)> = node.voters.nodes.iter().map(|one| (*one, after.key(*one))).collect();
            quorum.rename(&renamed);
        }
        quorum.change_voters(&after.keys()).unwrap();
        (node.voters, node.completed) = (after, entry.index);
        self.changed += usize::from(entry.index as usize > self.committed.len());
    }

    /// Makes a snapshot of the committed entries on the disk.
    fn compact(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(quorum) = &mut node.quorum else { return };
        let before = node.disk.before().index;
        let end = quorum.committed_index().min(before + node.disk.log.len() as u64);
        let replaces = |ready: &Ready| ready.entries.first().is_some_and(|first| first.index <= end);
        if end <= before + 3 || node.unwritten.iter().any(|ready| ready.snapshot.is_some() || replaces(ready)) {
            return;
        }
        let count = (end - before) as usize;
        let last = &node.disk.log[count - 1];
        let mark = SnapshotMark { last: Position { index: end, term: last.term }, id: vec![1; 12] };
        node.disk.log.drain(..count);
        node.disk.snapshot = Some(mark.clone());
        node.disk.base = node.voters.clone();
        self.named.insert(end, node.voters.clone());
        quorum.set_snapshot(mark);
        quorum.forget_before(end);
    }

    fn install(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if let (Some(quorum), Some(mark)) = (&mut node.quorum, node.offered.take()) {
            let named = &self.named[&mark.last.index];
            if named.named && !node.voters.named {
                node.voters.named = true;
                let (id, before) = (at as i64, node.voters.nodes.clone());
                quorum.rename(&[(id, named.key(id))]);
                let keys: Vec<i64> = before.iter().map(|one| if *one == id { named.key(id) } else { *one }).collect();
                quorum.change_voters(&keys).unwrap();
            }
            quorum.install(&mark, &named.keys()).unwrap();
        }
    }

    fn work(&mut self, at: usize) -> Result<(), String> {
        let id = self.ids[at];
        loop {
            let node = &mut self.nodes[at];
            let Some(quorum) = &mut node.quorum else { return Ok(()) };
            if let Some(low) = quorum.wanted() {
                let first = node.disk.before().index + 1;
                let from = low.checked_sub(first).map(|from| from as usize);
                let entries = from.and_then(|from| node.disk.log.get(from..)).unwrap_or_default();
                quorum.provide(low, entries.iter().take(4).cloned().collect());
            }
            let Some(mut ready) = quorum.ready() else { break };
            let mut messages = std::mem::take(&mut ready.messages);
            if self.planted == Planted::SentBeforePersisted {
                messages.extend(ready.persisted_messages.iter().cloned());
            }
            self.sent.extend(messages.into_iter().map(|(to, bytes)| (id, i64::from(node_of(to)), bytes)));
            let committed = std::mem::take(&mut ready.committed);
            if let Some(mark) = &ready.snapshot {
                node.voters = self.named[&mark.last.index].clone();
            }
            node.unwritten.push(ready);
            for entry in committed {
                self.apply(at, &entry);
                self.check_committed(id, entry)?;
            }
        }
        self.check_leader(at)
    }
}

fn voter_settings(id: i64, ids: &[i64]) -> QuorumSettings {
    QuorumSettings { election_ticks: 1_000_000, ..settings(id, ids) }
}

/// Returns the first seed whose run breaks a rule, and the rule.
fn first_failure(seeds: u64, planted: Planted) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| {
        // The library has its own assertions, which an injected fault may violate first.
        let run = std::panic::catch_unwind(|| Cluster::new(seed, planted).run());
        let run = run.unwrap_or_else(|_| Err("the library gave up".to_owned()));
        run.err().map(|error| (seed, error))
    })
}

#[test]
fn voters_agree_whatever_is_lost_and_whoever_ends() {
    assert_eq!(first_failure(300, Planted::Nothing), None);
}

#[test]
fn many_schedules_commit_something() {
    let committed: Vec<usize> = (0..50).map(|seed| Cluster::new(seed, Planted::Nothing).run().unwrap()).collect();
    assert!(committed.iter().filter(|count| **count > 5).count() >= 12, "{committed:?}");
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    let trace = |seed| {
        let mut cluster = Cluster::new(seed, Planted::Nothing);
        (0..STEPS).for_each(|_| cluster.step().unwrap());
        (cluster.committed, cluster.leaders, cluster.sent)
    };
    assert_eq!(trace(5), trace(5));
}

#[test]
fn a_vote_that_is_not_persisted_is_found() {
    assert!(first_failure(1000, Planted::VoteNotPersisted).is_some());
}

#[test]
fn an_answer_that_is_sent_before_its_entries_are_persisted_is_found() {
    assert!(first_failure(1000, Planted::SentBeforePersisted).is_some());
}

#[test]
fn voters_agree_while_they_get_directories_and_come_and_go() {
    let mut changed = vec![];
    for seed in 0..600 {
        let mut cluster = Cluster::begin(seed, Planted::Nothing, true);
        for _ in 0..STEPS {
            cluster.step().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        changed.push(cluster.changed);
    }
    assert!(changed.iter().filter(|count| **count > 1).count() >= 60, "{changed:?}");
}
