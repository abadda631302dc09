//! A voter whose log is lost comes back to the leader that it had.

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
        voters[2].lose_log_after(kept.min(before), &[0, 1, 2]);
        propose(&mut voters, meanwhile, &[2]);
        tick_all(&mut voters, &[]);
        propose(&mut voters, after, &[]);
        tick_all(&mut voters, &[]);
        prop_assert_eq!((voters[0].quorum.is_leader(), voters[0].quorum.term()), (true, 1));
        prop_assert_eq!(texts(&voters[2]), texts(&voters[0]));
        let matched: Vec<u64> = voters[0].quorum.progress().iter().map(|one| one.matched).collect();
        prop_assert_eq!(matched, vec![voters[0].quorum.last_index(); 3]);
        // And it counts again.
        propose(&mut voters, 1, &[1]);
        prop_assert_eq!(voters[0].quorum.committed_index(), voters[0].quorum.last_index());
    }
}
