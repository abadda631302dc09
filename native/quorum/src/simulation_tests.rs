//! Voters under a random schedule, each from a seed: messages are lost, doubled and reordered, disks are slow, processes
//! end at any moment and come back with what their disk has.
//!
//! Elections begin by events of the schedule and not by timeouts, so that a seed is the same run every time. Checked at
//! every step: one leader in a term, logs that agree, and nothing committed that a later leader lacks.

use std::collections::BTreeMap;

use super::tests::{empty, records, settings};
use super::*;

const STEPS: usize = 1000;

/// A generator of numbers that are the same for a seed (xorshift64*).
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

/// A fault that a test plants, to see it found.
#[derive(Clone, Copy, PartialEq)]
enum Planted {
    Nothing,
    VoteNotPersisted,
    SentBeforePersisted,
}

#[derive(Clone, Default)]
struct Disk {
    hard_state: Option<HardState>,
    snapshot: Option<SnapshotMark>,
    log: Vec<Entry>,
}

impl Disk {
    fn before(&self) -> Position {
        self.snapshot.as_ref().map_or(Position::default(), |mark| mark.last)
    }

    fn restored(&self) -> Restored {
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
            replayed: before.index,
            tail: self.log.clone(),
        }
    }

    fn write(&mut self, ready: &Ready, planted: Planted) {
        if let Some(mark) = &ready.snapshot {
            self.snapshot = Some(mark.clone());
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
}

struct Cluster {
    dice: Dice,
    planted: Planted,
    ids: Vec<i64>,
    nodes: Vec<Node>,
    sent: Vec<(i64, i64, Vec<u8>)>,
    leaders: BTreeMap<u64, i64>,
    committed: Vec<Entry>,
    proposed: usize,
}

impl Cluster {
    fn new(seed: u64, planted: Planted) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let ids: Vec<i64> = (0..[3, 3, 4, 5][dice.below(4)]).collect();
        let nodes = ids
            .iter()
            .map(|id| Node {
                quorum: Some(Quorum::new(&voter_settings(*id, &ids), empty()).unwrap()),
                disk: Disk::default(),
                unwritten: vec![],
                offered: None,
            })
            .collect();
        Self { dice, planted, ids, nodes, sent: vec![], leaders: BTreeMap::new(), committed: vec![], proposed: 0 }
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
            match quorum.step(from, &message, 0) {
                Ok(offered) => node.offered = offered.or(node.offered.take()),
                // A voter that forgot what it answered is seen by the others.
                Err(_) if self.planted != Planted::Nothing => {}
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
            node.disk.write(&ready, self.planted);
            quorum.persisted(ready.number);
            if self.planted != Planted::SentBeforePersisted {
                self.sent.extend(ready.persisted_messages.into_iter().map(|(to, bytes)| (at as i64, to, bytes)));
            }
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
        let (id, ids) = (self.ids[at], self.ids.clone());
        let node = &mut self.nodes[at];
        if node.quorum.is_none() {
            node.quorum = Some(Quorum::new(&voter_settings(id, &ids), node.disk.restored()).unwrap());
        }
    }

    /// A snapshot of what is committed and on the disk.
    fn compact(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(quorum) = &mut node.quorum else { return };
        let before = node.disk.before().index;
        let end = quorum.committed_index().min(before + node.disk.log.len() as u64);
        if end <= before + 3 || node.unwritten.iter().any(|ready| ready.snapshot.is_some()) {
            return;
        }
        let count = (end - before) as usize;
        let last = &node.disk.log[count - 1];
        let mark = SnapshotMark { last: Position { index: end, term: last.term }, id: vec![1; 12] };
        node.disk.log.drain(..count);
        node.disk.snapshot = Some(mark.clone());
        quorum.set_snapshot(mark);
        quorum.forget_before(end);
    }

    fn install(&mut self, at: usize) {
        let ids = self.ids.clone();
        let node = &mut self.nodes[at];
        if let (Some(quorum), Some(mark)) = (&mut node.quorum, node.offered.take()) {
            quorum.install(&mark, &ids).unwrap();
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
            self.sent.extend(messages.into_iter().map(|(to, bytes)| (id, to, bytes)));
            let committed = std::mem::take(&mut ready.committed);
            node.unwritten.push(ready);
            for entry in committed {
                self.check_committed(id, entry)?;
            }
        }
        self.check_leader(at)
    }

    fn check_committed(&mut self, id: i64, entry: Entry) -> Result<(), String> {
        let place = entry.index as usize - 1;
        match self.committed.get(place) {
            Some(known) if *known != entry => Err(format!("voter {id} committed another entry {}", entry.index)),
            Some(_) => Ok(()),
            None if place == self.committed.len() => {
                self.committed.push(entry);
                Ok(())
            }
            None => Err(format!("voter {id} committed entry {} after {}", entry.index, self.committed.len())),
        }
    }

    fn check_leader(&mut self, at: usize) -> Result<(), String> {
        let id = self.ids[at];
        let Some(quorum) = &self.nodes[at].quorum else { return Ok(()) };
        if !quorum.is_leader() {
            return Ok(());
        }
        let term = quorum.term();
        if let Some(known) = self.leaders.get(&term) {
            return if *known == id { Ok(()) } else { Err(format!("voters {known} and {id} lead term {term}")) };
        }
        self.leaders.insert(term, id);
        let newest = self.leaders.keys().next_back() == Some(&term);
        if newest && quorum.last_index() < self.committed.len() as u64 {
            return Err(format!("voter {id} leads term {term} without entry {}", self.committed.len()));
        }
        Ok(())
    }
}

fn voter_settings(id: i64, ids: &[i64]) -> QuorumSettings {
    QuorumSettings { election_ticks: 1_000_000, ..settings(id, ids) }
}

/// The first seed of which a run breaks a rule, and the rule.
fn first_failure(seeds: u64, planted: Planted) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| {
        // The library has assertions of its own, which a planted fault may break first.
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
