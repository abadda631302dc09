use proptest::prelude::*;

use super::batch::{self, BatchError};
use super::*;

pub(super) fn settings(key: i64, voters: &[i64]) -> QuorumSettings {
    QuorumSettings {
        key,
        voters: voters.to_vec(),
        is_open: false,
        election_ticks: 10,
        heartbeat_ticks: 2,
        message_bytes: 1 << 10,
        messages_in_flight: 8,
        kept_bytes: 300,
    }
}

pub(super) fn empty() -> Restored {
    Restored {
        hard_state: None,
        before: Position::default(),
        snapshot: None,
        runs: vec![],
        last: 0,
        replayed: 0,
        tail: vec![],
        awaited: Position::default(),
    }
}

pub(super) fn records(text: &str) -> Vec<u8> {
    batch::build_records(&[text.as_bytes()], 0)
}

/// A voter and its disk, which is written at once.
pub(super) struct Voter {
    pub(super) id: i64,
    pub(super) quorum: Quorum,
    hard_state: Option<HardState>,
    before: Position,
    pub(super) log: Vec<Entry>,
    pub(super) committed: Vec<Entry>,
    awaited: Position,
}

impl Voter {
    fn start(id: i64, voters: &[i64]) -> Self {
        Self::of(id, Quorum::new(&settings(id, voters), empty()).unwrap())
    }

    pub(super) fn of(id: i64, quorum: Quorum) -> Self {
        Self {
            id,
            quorum,
            hard_state: None,
            before: Position::default(),
            log: vec![],
            committed: vec![],
            awaited: Position::default(),
        }
    }

    /// Performs the tasks of a ready, and returns the messages to send.
    pub(super) fn work(&mut self) -> Vec<(i64, Vec<u8>)> {
        let mut sent = vec![];
        loop {
            while let Some(ready) = self.quorum.ready() {
                sent.extend(ready.messages);
                self.hard_state = ready.hard_state.or(self.hard_state);
                if let Some(mark) = ready.snapshot {
                    self.before = mark.last;
                    self.log.clear();
                }
                if let Some(first) = ready.entries.first() {
                    self.log.truncate((first.index - self.before.index) as usize - 1);
                }
                self.log.extend(ready.entries);
                self.quorum.persisted(ready.number);
                sent.extend(ready.persisted_messages);
                self.committed.extend(ready.committed);
            }
            let Some(low) = self.quorum.wanted() else { return sent };
            let from = (low - self.before.index) as usize - 1;
            self.quorum.provide(low, self.log[from..].iter().take(3).cloned().collect());
        }
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

    /// Restarts with the first entries of its log and without its votes. With `knows_loss` it knows its last
    /// acknowledged entry.
    pub(super) fn lose_log_after(&mut self, kept: usize, voters: &[i64], knows_loss: bool) {
        let last = self.log.last().map(|entry| Position { index: entry.index, term: entry.term });
        self.awaited = last.filter(|_| knows_loss).unwrap_or_default();
        self.log.truncate(kept);
        self.hard_state = None;
        self.restart(voters, 0);
    }

    fn restart(&mut self, voters: &[i64], replayed: u64) {
        let restored = Restored {
            hard_state: self.hard_state,
            runs: self.runs(),
            last: self.log.len() as u64,
            replayed,
            tail: self.log[replayed as usize..].to_vec(),
            awaited: self.awaited,
            ..empty()
        };
        self.quorum = Quorum::new(&settings(self.id, voters), restored).unwrap();
        self.committed.truncate(replayed as usize);
    }

    pub(super) fn takes(&mut self, from: i64, message: &[u8]) -> Result<Option<SnapshotMark>, QuorumError> {
        self.quorum.step(from, message, 0)
    }
}

/// Creates three voters; the first one is leader.
pub(super) fn three() -> Vec<Voter> {
    let ids = [0, 1, 2];
    let mut voters: Vec<Voter> = ids.iter().map(|id| Voter::start(*id, &ids)).collect();
    voters[0].quorum.campaign(0).unwrap();
    deliver(&mut voters, &[]);
    assert!(voters[0].quorum.is_leader());
    voters
}

/// Delivers messages until no more are sent. Messages to `dead` are lost. Returns the offered snapshots.
pub(super) fn deliver(voters: &mut [Voter], dead: &[i64]) -> Vec<(i64, SnapshotMark)> {
    let mut offered = vec![];
    loop {
        let mut sent: Vec<(i64, i64, Vec<u8>)> = vec![];
        for voter in voters.iter_mut().filter(|voter| !dead.contains(&voter.id)) {
            let from = voter.id;
            sent.extend(voter.work().into_iter().map(|(to, message)| (from, to, message)));
        }
        if sent.is_empty() {
            return offered;
        }
        for (from, to, message) in sent.drain(..).filter(|(_, to, _)| !dead.contains(to)) {
            let voter = voters.iter_mut().find(|voter| voter.id == to).unwrap();
            offered.extend(voter.takes(from, &message).unwrap().map(|mark| (to, mark)));
        }
    }
}

pub(super) fn tick_all(voters: &mut [Voter], dead: &[i64]) -> Vec<(i64, SnapshotMark)> {
    let mut offered = vec![];
    for _ in 0..4 {
        for voter in voters.iter_mut().filter(|voter| !dead.contains(&voter.id)) {
            voter.quorum.tick(0);
        }
        offered.extend(deliver(voters, dead));
    }
    offered
}

#[test]
fn a_single_voter_leads_at_once_when_it_campaigns() {
    let mut voter = Voter::start(0, &[0]);
    voter.quorum.campaign(7).unwrap();
    assert!(voter.quorum.is_leader());
    voter.work();
    assert_eq!(voter.hard_state, Some(HardState { term: 1, vote: Some(0) }));
    let payload = batch::build_leader_change(0, &[0], &[0], 7);
    assert_eq!(voter.log, [Entry { index: 1, term: 1, payload }]);
    assert_eq!(voter.committed, voter.log);
}

#[test]
fn nothing_is_committed_before_it_is_persisted() {
    let mut voter = Voter::start(1, &[1]);
    voter.quorum.campaign(0).unwrap();
    voter.work();
    assert_eq!(voter.quorum.propose(records("a")).unwrap(), 2);
    let first = voter.quorum.ready().unwrap();
    assert_eq!(first.entries.len(), 1);
    voter.quorum.propose(records("b")).unwrap();
    let second = voter.quorum.ready().unwrap();
    assert!(first.committed.is_empty() && second.committed.is_empty());
    assert!(voter.quorum.ready().is_none());
    voter.quorum.persisted(first.number);
    assert_eq!(voter.quorum.ready().unwrap().committed, first.entries);
    voter.quorum.persisted(second.number);
    assert_eq!(voter.quorum.ready().unwrap().committed, second.entries);
}

#[test]
fn a_follower_takes_no_proposals() {
    let mut voter = Voter::start(1, &[1, 2, 3]);
    assert!(matches!(voter.quorum.propose(records("x")), Err(QuorumError::NotLeader)));
}

#[test]
fn a_vote_is_persisted_before_it_is_sent() {
    let ids = [0, 1, 2];
    let mut voters: Vec<Voter> = ids.iter().map(|id| Voter::start(*id, &ids)).collect();
    voters[0].quorum.campaign(0).unwrap();
    for _ in 0..2 {
        for (to, message) in voters[0].work() {
            let voter = &mut voters[to as usize];
            voter.takes(0, &message).unwrap();
            let ready = voter.quorum.ready().unwrap();
            assert!(ready.messages.is_empty() && !ready.persisted_messages.is_empty());
            voter.quorum.persisted(ready.number);
            for (_, response) in ready.persisted_messages {
                voters[0].takes(to, &response).unwrap();
            }
        }
    }
    assert!(voters[0].quorum.is_leader());
}

#[test]
fn a_restarted_voter_leads_in_a_later_term_and_repeats_nothing() {
    let mut voter = Voter::start(1, &[1]);
    voter.quorum.campaign(0).unwrap();
    voter.work();
    voter.quorum.propose(records("one")).unwrap();
    voter.work();
    let before = voter.committed.clone();
    voter.restart(&[1], 2);
    voter.quorum.campaign(0).unwrap();
    voter.work();
    assert_eq!(voter.quorum.term(), 2);
    assert_eq!(voter.committed[..2], before[..]);
    assert_eq!((voter.committed[2].index, voter.committed[2].term, voter.committed.len()), (3, 2, 3));
}

#[test]
fn a_lost_hard_state_does_not_lead_back_to_an_old_term() {
    let mut voter = Voter::start(1, &[1]);
    voter.quorum.campaign(0).unwrap();
    voter.work();
    voter.hard_state = None;
    voter.restart(&[1], 1);
    voter.quorum.campaign(0).unwrap();
    voter.work();
    assert_eq!(voter.quorum.term(), 2);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let runs = vec![TermRun { first: 1, term: 1 }];
    let after = Position { index: 5, term: 3 };
    let bad = [
        Restored { replayed: 1, ..empty() },
        Restored { last: 1, ..empty() },
        Restored { last: 1, runs: runs.clone(), ..empty() },
        Restored { last: 1, replayed: 1, runs: vec![TermRun { first: 2, term: 1 }], ..empty() },
        Restored { last: 2, replayed: 2, runs: vec![runs[0], TermRun { first: 2, term: 1 }], ..empty() },
        Restored { before: after, last: 5, ..empty() },
        Restored { before: after, last: 6, replayed: 6, runs: vec![TermRun { first: 6, term: 2 }], ..empty() },
    ];
    for restored in bad {
        assert!(matches!(Quorum::new(&settings(1, &[1]), restored), Err(QuorumError::Restore(_))));
    }
}

#[test]
fn three_voters_agree_and_a_restarted_one_catches_up() {
    let mut voters = three();
    for number in 0..5u8 {
        voters[0].quorum.propose(records(&number.to_string())).unwrap();
        deliver(&mut voters, &[]);
    }
    voters[2].restart(&[0, 1, 2], 0);
    voters[0].quorum.propose(records("last")).unwrap();
    tick_all(&mut voters, &[]);
    assert_eq!(voters[0].committed.len(), 7);
    assert_eq!(voters[1].committed, voters[0].committed);
    assert_eq!(voters[2].committed, voters[0].committed);
    assert_eq!(voters[2].quorum.leader(), Some(0));
    let matched: Vec<u64> = voters[0].quorum.progress().iter().map(|voter| voter.matched).collect();
    assert_eq!(matched, [7, 7, 7]);
}

#[test]
fn the_batch_by_which_a_term_begins_is_the_same_everywhere_and_names_who_voted() {
    let voters = three();
    let [first, ..] = &voters[0].log[..] else { panic!("no entry") };
    assert!(voters.iter().all(|voter| voter.log[0] == *first));
    let granting = [[0, 1], [0, 2]].map(|granting| batch::build_leader_change(0, &[0, 1, 2], &granting, 0));
    assert!(
        granting.contains(&first.payload) || first.payload == batch::build_leader_change(0, &[0, 1, 2], &[0, 1, 2], 0)
    );
}

#[test]
fn a_voter_that_lags_far_behind_gets_entries_from_the_disk() {
    let mut voters = three();
    for number in 0..50u8 {
        voters[0].quorum.propose(records(&number.to_string().repeat(10))).unwrap();
        deliver(&mut voters, &[2]);
    }
    assert_eq!(voters[2].log.len(), 1);
    tick_all(&mut voters, &[]);
    assert_eq!(voters[2].committed, voters[0].committed);
    assert_eq!(voters[2].committed.len(), 51);
}

#[test]
fn a_voter_that_needs_what_the_log_has_no_more_is_offered_the_snapshot() {
    let mut voters = three();
    for number in 0..20u8 {
        voters[0].quorum.propose(records(&number.to_string())).unwrap();
        deliver(&mut voters, &[2]);
    }
    let mark = SnapshotMark { last: Position { index: 15, term: 1 }, id: vec![7; 12] };
    voters[0].quorum.set_snapshot(mark.clone());
    voters[0].quorum.forget_before(15);
    let mut offered = tick_all(&mut voters, &[]);
    offered.dedup();
    assert_eq!(offered, [(2, mark.clone())]);
    assert_eq!(voters[2].log.len(), 1);
    voters[2].quorum.install(&mark, &[0, 1, 2]).unwrap();
    tick_all(&mut voters, &[]);
    assert_eq!(voters[2].before, mark.last);
    let last: Vec<u64> = voters[2].log.iter().map(|entry| entry.index).collect();
    assert_eq!(last, [16, 17, 18, 19, 20, 21]);
    assert_eq!(voters[2].log, voters[0].log[15..]);
    voters[0].quorum.propose(records("more")).unwrap();
    tick_all(&mut voters, &[]);
    assert_eq!(voters[2].committed.last(), voters[0].committed.last());
}

#[test]
fn a_voter_that_forgets_its_leader_may_vote_at_once_and_others_do_not() {
    let mut voters = three();
    voters[1].quorum.forget_leader();
    voters[1].quorum.campaign(0).unwrap();
    deliver(&mut voters, &[0]);
    assert!(!voters[1].quorum.is_leader(), "voter 2 has a leader still");
    voters[2].quorum.forget_leader();
    voters[1].quorum.campaign(0).unwrap();
    deliver(&mut voters, &[0]);
    assert!(voters[1].quorum.is_leader());
}

#[test]
fn a_false_suspicion_has_no_effect() {
    let mut voters = three();
    voters[1].quorum.forget_leader();
    voters[1].quorum.campaign(0).unwrap();
    tick_all(&mut voters, &[]);
    assert!(voters[0].quorum.is_leader());
    assert_eq!((voters[0].quorum.term(), voters[1].quorum.leader()), (1, Some(0)));
}

#[test]
fn a_leader_hands_over_without_a_timeout() {
    let mut voters = three();
    voters[0].quorum.transfer_leader(2);
    deliver(&mut voters, &[]);
    assert!(voters[2].quorum.is_leader());
    assert_eq!(voters[0].quorum.leader(), Some(2));
}

#[test]
fn a_voter_is_added_and_another_removed() {
    let mut voters = three();
    let change = [0u8, 0, 0, 6];
    let payload = control::build_control(&[(6, b"who votes")], 0);
    assert!(batch::changes_voters(&payload), "{change:?}");
    voters[0].quorum.propose(payload.clone()).unwrap();
    assert!(matches!(voters[0].quorum.propose(payload.clone()), Err(QuorumError::ChangePending)));
    deliver(&mut voters, &[]);
    assert_eq!(voters[2].committed.last().unwrap().payload, payload);
    for voter in &mut voters {
        voter.quorum.change_voters(&[0, 1, 2, 3]).unwrap();
    }
    voters.push(Voter::start(3, &[0, 1, 2, 3]));
    tick_all(&mut voters, &[]);
    assert_eq!(voters[3].committed, voters[0].committed);
    voters[0].quorum.propose(payload).unwrap();
    deliver(&mut voters, &[]);
    for voter in &mut voters {
        voter.quorum.change_voters(&[0, 1, 3]).unwrap();
    }
    voters[0].quorum.propose(records("x")).unwrap();
    deliver(&mut voters, &[1, 2]);
    assert_eq!(voters[3].committed.len(), 4, "two of three is a majority");
}

#[test]
fn a_message_that_is_none_or_says_what_cannot_be_is_refused() {
    let mut voters = three();
    let refused =
        |voter: &mut Voter, from: i64, bytes: &[u8]| matches!(voter.takes(from, bytes), Err(QuorumError::Message(_)));
    assert!(refused(&mut voters[1], 0, &[0xFF; 9]));
    voters[0].quorum.propose(records("x")).unwrap();
    let (to, good) = voters[0].work().into_iter().find(|(to, _)| *to == 1).unwrap();
    for cut in 0..good.len() {
        // A message without its entries is valid too.
        let is_shorter_message = message::probe(&good[..cut]).is_some();
        assert_eq!(refused(&mut voters[to as usize], 0, &good[..cut]), !is_shorter_message, "{cut}");
    }
    assert!(refused(&mut voters[1], 2, &good), "it is not of voter 2");
    assert!(refused(&mut voters[2], 0, &good), "it is not for voter 2");
    assert!(refused(&mut voters[1], 7, &good), "there is no voter 7");
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(refused(&mut voters[1], 0, &flipped), "the batch is damaged");
    voters[1].takes(0, &good).unwrap();
    // Kind 6 is a heartbeat. The library would panic on a commit index that this log does not have.
    let mut heartbeat = good[..3 + 8 * 8 + 1].to_vec();
    heartbeat[1] = 6;
    heartbeat[3 + 8 * 5..3 + 8 * 6].copy_from_slice(&99u64.to_be_bytes());
    voters[1].takes(0, &heartbeat).unwrap();
    let last = voters[1].quorum.last_index();
    assert!(voters[1].quorum.committed_index() <= last, "it is taken for what is here");
    // Kind 1 is a response to a leader, about entries that it does not have.
    let mut response = heartbeat;
    response[1] = 1;
    response[3..11].copy_from_slice(&1u64.to_be_bytes());
    response[11..19].copy_from_slice(&2u64.to_be_bytes());
    response[3 + 8 * 4..3 + 8 * 5].copy_from_slice(&99u64.to_be_bytes());
    assert!(refused(&mut voters[0], 1, &response));
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
    let batch = batch::build_leader_change(1, &[1], &[1], 0);
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
            // Keep the framing valid, so that the bytes after the checksum are reached.
            let length = (bytes.len() - 12) as i32;
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            bytes[16] = 2;
            let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes[21..]) as u32;
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
            let _ = batch::parse(&bytes);
        }
    }

    #[test]
    fn what_is_decoded_of_arbitrary_bytes_is_encoded_as_it_was(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..11) {
        if bytes.len() > 67 {
            bytes[..3].copy_from_slice(&[0, kind, 0]);
            bytes[67] %= 34;
            for at in [3usize, 11, 19, 27, 35, 43, 51, 59] {
                bytes[at..at + 6].fill(0);
            }
        }
        if let Some(again) = message::probe(&bytes) {
            prop_assert_eq!(again, bytes);
        }
    }
}
