//! A voter that has lost its log returns to its leader.

use proptest::prelude::*;

use crate::tests::{Voter, deliver, records, three, tick_all};

fn texts(voter: &Voter) -> Vec<(u64, Vec<u8>)> {
    voter.committed.iter().map(|entry| (entry.term, entry.payload.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_a_voter_has_lost_is_sent_again_by_the_same_leader(
        before in 1usize..12, meanwhile in 0usize..4, after in 0usize..4, kept in 0usize..14
    ) {
        let mut voters = three();
        let propose = |voters: &mut Vec<Voter>, count: usize, dead: &[i64]| {
            for number in 0..count {
                voters[0].quorum.propose(records(&number.to_string())).unwrap();
                deliver(voters, dead);
            }
        };
        propose(&mut voters, before, &[]);
        tick_all(&mut voters, &[]);
        voters[2].lose_log_after(kept.min(before), &[0, 1, 2], false);
        propose(&mut voters, meanwhile, &[2]);
        tick_all(&mut voters, &[]);
        propose(&mut voters, after, &[]);
        tick_all(&mut voters, &[]);
        prop_assert_eq!((voters[0].quorum.is_leader(), voters[0].quorum.term()), (true, 1));
        prop_assert_eq!(texts(&voters[2]), texts(&voters[0]));
        let matched: Vec<u64> = voters[0].quorum.progress().iter().map(|one| one.matched).collect();
        prop_assert_eq!(matched, vec![voters[0].quorum.last_index(); 3]);
        // The voter counts for commits again.
        propose(&mut voters, 1, &[1]);
        prop_assert_eq!(voters[0].quorum.committed_index(), voters[0].quorum.last_index());
    }
}

/// Creates three voters with an entry that the first two have committed and the third lacks.
fn committed_by_two() -> Vec<Voter> {
    let mut voters = three();
    voters[0].quorum.propose(records("known to two")).unwrap();
    deliver(&mut voters, &[2]);
    assert_eq!(voters[0].quorum.committed_index(), 2);
    voters
}

fn campaign(voters: &mut [Voter], candidate: usize, dead: &[i64]) -> bool {
    voters.iter_mut().for_each(|voter| voter.quorum.forget_leader());
    voters[candidate].quorum.campaign(0).unwrap();
    deliver(voters, dead);
    voters[candidate].quorum.is_leader()
}

#[test]
fn a_voter_that_knows_its_loss_elects_nobody_without_the_lost_entry() {
    let mut voters = committed_by_two();
    voters[0].lose_log_after(1, &[0, 1, 2], true);
    assert_eq!(voters[0].quorum.awaited(), Some(2));
    assert!(!campaign(&mut voters, 2, &[1]), "the voter without the entry, by the vote of the one that lost it");
    assert!(!campaign(&mut voters, 0, &[1]), "the one that lost it does not stand for election");
    assert!(campaign(&mut voters, 1, &[2]), "it votes for one that has the entry");
    tick_all(&mut voters, &[]);
    assert_eq!(texts(&voters[0]), texts(&voters[1]));
    assert_eq!(voters[0].quorum.awaited(), None);
    assert!(campaign(&mut voters, 0, &[1]), "with the entry it takes part again");
}

#[test]
fn a_voter_that_does_not_know_its_loss_elects_a_leader_without_the_entry() {
    let mut voters = committed_by_two();
    voters[0].lose_log_after(1, &[0, 1, 2], false);
    assert!(campaign(&mut voters, 2, &[1]), "what docs/adr/0102 does not promise");
}

#[test]
fn a_leader_shows_a_voter_its_loss_and_reports_it() {
    let mut voters = three();
    for text in ["one", "two", "three"] {
        voters[0].quorum.propose(records(text)).unwrap();
        deliver(&mut voters, &[]);
    }
    tick_all(&mut voters, &[]);
    voters[2].lose_log_after(2, &[0, 1, 2], false);
    assert_eq!(voters[2].quorum.awaited(), None);
    // The heartbeat arrives, and the leader has not sent the lost entries yet.
    let heartbeats: Vec<Vec<u8>> = (0..2)
        .flat_map(|_| {
            voters[0].quorum.tick(0);
            voters[0].work()
        })
        .filter_map(|(to, message)| (to == 2).then_some(message))
        .collect();
    for message in &heartbeats {
        voters[2].takes(0, message).unwrap();
    }
    assert_eq!(voters[2].quorum.awaited(), Some(4));
    assert_eq!(voters[0].quorum.take_lost(), vec![]);
    tick_all(&mut voters, &[]);
    assert_eq!(voters[2].quorum.awaited(), None);
    assert_eq!(voters[0].quorum.take_lost(), vec![(2, 4, 2)]);
}
