use proptest::prelude::*;

use super::batch::{self, BatchError};
use super::*;

fn settings(node_id: i32, voters: &[i32]) -> QuorumSettings {
    QuorumSettings { node_id, voters: voters.to_vec(), election_ticks: 10, heartbeat_ticks: 2 }
}

fn empty() -> Restored {
    Restored { hard_state: None, runs: vec![], last: 0, replayed: 0, tail: vec![] }
}

/// A voter and the disk under it.
struct Voter {
    id: i32,
    quorum: Quorum,
    hard_state: Option<HardState>,
    log: Vec<Entry>,
    committed: Vec<Entry>,
}

impl Voter {
    fn start(id: i32, voters: &[i32]) -> Self {
        let quorum = Quorum::new(&settings(id, voters), empty()).unwrap();
        Self { id, quorum, hard_state: None, log: vec![], committed: vec![] }
    }

    /// Does what a ready asks for, and returns the messages to send.
    fn work(&mut self) -> Vec<(i32, Vec<u8>)> {
        let mut sent = vec![];
        while let Some(ready) = self.quorum.ready().unwrap() {
            sent.extend(ready.messages);
            self.hard_state = ready.hard_state.or(self.hard_state);
            if let Some(first) = ready.entries.first() {
                self.log.truncate(first.index as usize - 1);
            }
            self.log.extend(ready.entries);
            sent.extend(ready.persisted_messages);
            self.committed.extend(ready.committed);
            let advanced = self.quorum.advance().unwrap();
            self.committed.extend(advanced.committed);
            sent.extend(advanced.messages);
        }
        sent
    }

    fn runs(&self) -> Vec<TermRun> {
        let mut runs: Vec<TermRun> = vec![];
        for entry in &self.log {
            if runs.last().is_none_or(|run| run.term != entry.term) {
                runs.push(TermRun { first: entry.index, term: entry.term });
            }
        }
        runs
    }

    fn restart(&mut self, voters: &[i32], replayed: u64) {
        let restored = Restored {
            hard_state: self.hard_state,
            runs: self.runs(),
            last: self.log.len() as u64,
            replayed,
            tail: self.log[replayed as usize..].to_vec(),
        };
        self.quorum = Quorum::new(&settings(self.id, voters), restored).unwrap();
        self.committed.truncate(replayed as usize);
    }
}

fn deliver(voters: &mut [Voter]) {
    loop {
        let mut sent: Vec<(i32, Vec<u8>)> = voters.iter_mut().flat_map(Voter::work).collect();
        if sent.is_empty() {
            return;
        }
        for (to, message) in sent.drain(..) {
            let voter = voters.iter_mut().find(|voter| voter.id == to).unwrap();
            voter.quorum.step(&message).unwrap();
        }
    }
}

#[test]
fn a_single_voter_leads_at_once_when_it_campaigns() {
    let mut voter = Voter::start(0, &[0]);
    voter.quorum.campaign().unwrap();
    assert!(voter.quorum.is_leader());
    voter.work();
    assert_eq!(voter.hard_state, Some(HardState { term: 1, vote: Some(0) }));
    assert_eq!(voter.log, [Entry { index: 1, term: 1, payload: vec![] }]);
    assert_eq!(voter.committed, voter.log);
}

#[test]
fn nothing_is_committed_before_it_is_persisted() {
    let mut voter = Voter::start(1, &[1]);
    voter.quorum.campaign().unwrap();
    voter.work();
    voter.quorum.propose(b"records".to_vec()).unwrap();
    let ready = voter.quorum.ready().unwrap().unwrap();
    assert_eq!(ready.entries.len(), 1);
    assert!(ready.committed.is_empty());
    let advanced = voter.quorum.advance().unwrap();
    assert_eq!(advanced.committed, ready.entries);
}

#[test]
fn a_follower_takes_no_proposals() {
    let mut voter = Voter::start(1, &[1, 2, 3]);
    assert!(matches!(voter.quorum.propose(b"x".to_vec()), Err(QuorumError::NotLeader)));
}

#[test]
fn ready_and_advance_take_turns() {
    let mut voter = Voter::start(1, &[1]);
    assert!(matches!(voter.quorum.advance(), Err(QuorumError::OutOfTurn)));
    voter.quorum.campaign().unwrap();
    assert!(voter.quorum.ready().unwrap().is_some());
    assert!(matches!(voter.quorum.ready(), Err(QuorumError::OutOfTurn)));
}

#[test]
fn a_restarted_voter_leads_in_a_later_term_and_repeats_nothing() {
    let mut voter = Voter::start(1, &[1]);
    voter.quorum.campaign().unwrap();
    voter.work();
    voter.quorum.propose(b"one".to_vec()).unwrap();
    voter.work();
    let before = voter.committed.clone();
    voter.restart(&[1], 2);
    voter.quorum.campaign().unwrap();
    voter.work();
    assert_eq!(voter.quorum.term(), 2);
    assert_eq!(voter.committed[..2], before[..]);
    assert_eq!(voter.committed[2..], [Entry { index: 3, term: 2, payload: vec![] }]);
}

#[test]
fn a_lost_hard_state_does_not_lead_back_to_an_old_term() {
    let mut voter = Voter::start(1, &[1]);
    voter.quorum.campaign().unwrap();
    voter.work();
    voter.hard_state = None;
    voter.restart(&[1], 1);
    voter.quorum.campaign().unwrap();
    voter.work();
    assert_eq!(voter.quorum.term(), 2);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let runs = vec![TermRun { first: 1, term: 1 }];
    let bad = [
        Restored { replayed: 1, ..empty() },
        Restored { last: 1, ..empty() },
        Restored { last: 1, runs: runs.clone(), ..empty() },
        Restored { last: 1, replayed: 1, runs: vec![TermRun { first: 2, term: 1 }], ..empty() },
        Restored { last: 2, replayed: 2, runs: vec![runs[0], TermRun { first: 2, term: 1 }], ..empty() },
    ];
    for restored in bad {
        assert!(matches!(Quorum::new(&settings(1, &[1]), restored), Err(QuorumError::Restore(_))));
    }
    assert!(matches!(Quorum::new(&settings(1, &[2]), empty()), Err(QuorumError::Restore(_))));
}

#[test]
fn three_voters_agree_and_a_restarted_one_catches_up() {
    let ids = [0, 1, 2];
    let mut voters: Vec<Voter> = ids.iter().map(|id| Voter::start(*id, &ids)).collect();
    voters[0].quorum.campaign().unwrap();
    deliver(&mut voters);
    assert!(voters[0].quorum.is_leader());
    for number in 0..5u8 {
        voters[0].quorum.propose(vec![number]).unwrap();
        deliver(&mut voters);
    }
    voters[2].restart(&ids, 0);
    voters[0].quorum.propose(b"last".to_vec()).unwrap();
    for _ in 0..4 {
        voters[0].quorum.tick();
        deliver(&mut voters);
    }
    assert_eq!(voters[0].committed.len(), 7);
    assert_eq!(voters[1].committed, voters[0].committed);
    assert_eq!(voters[2].committed, voters[0].committed);
    assert_eq!(voters[2].quorum.leader(), Some(0));
}

#[test]
fn a_message_that_is_none_is_refused() {
    let mut voter = Voter::start(1, &[1]);
    assert!(matches!(voter.quorum.step(&[0xFF; 9]), Err(QuorumError::Message(_))));
}

#[test]
fn a_batch_gives_its_values_back() {
    let batch = batch::build_records(&[b"a", b"", b"ccc"], 1_700_000_000_000);
    let (batches, size) = batch::parse(&batch).unwrap();
    assert_eq!(size, batch.len());
    assert_eq!(batches[0].values, [&b"a"[..], b"", b"ccc"]);
    assert_eq!(batches[0].timestamp, 1_700_000_000_000);
    assert_eq!((batches[0].base_offset, batches[0].last_offset), (0, 2));
    assert!(!batches[0].is_control);
}

#[test]
fn a_leader_change_is_kafkas_control_batch() {
    let batch = batch::build_leader_change(1, &[1], 0);
    let (batches, _) = batch::parse(&batch).unwrap();
    assert!(batches[0].is_control);
    // Version 0, leader 1, voters [1], granting voters [1], and no tagged fields anywhere.
    let expected = [0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0];
    assert_eq!(batches[0].values, [&expected[..]]);
}

proptest! {
    #[test]
    fn every_cut_of_a_batch_is_seen(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6)) {
        let borrowed: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let whole = batch::build_records(&borrowed, 7);
        let mut twice = whole.clone();
        twice.extend_from_slice(&whole);
        for cut in 0..whole.len() {
            if cut > 0 {
                prop_assert_eq!(batch::parse(&whole[..cut]), Err(BatchError::Short { at: 0 }));
            }
            let (batches, size) = batch::parse(&twice[..whole.len() + cut]).unwrap();
            prop_assert_eq!((batches.len(), size), (1, whole.len()));
        }
    }

    #[test]
    fn no_bytes_make_the_parser_fail_otherwise_than_by_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = batch::parse(&bytes);
        if bytes.len() > 61 {
            // With the frame in order, so that what lies behind the checksum is reached.
            let length = (bytes.len() - 12) as i32;
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            bytes[16] = 2;
            let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes[21..]) as u32;
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
            let _ = batch::parse(&bytes);
        }
    }
}
