//! Changes of voters: replicas that follow the log without a vote, added and removed voters, a removed leader.

use super::tests::{Voter, deliver, empty, records, settings, tick_all};
use super::*;

/// Returns a batch that changes voters. The caller defines the new voters.
fn change() -> Vec<u8> {
    control::build_control(&[(6, b"who votes")], 0)
}

fn open(key: ReplicaKey, voters: &[ReplicaKey]) -> Voter {
    let settings = QuorumSettings { is_open: true, ..settings(key, voters) };
    Voter::of(key, Quorum::new(&settings, empty()).unwrap())
}

/// Returns the key of the same node id with a directory.
fn replaced(node_id: i64) -> ReplicaKey {
    7 << 32 | node_id
}

fn led_by_0(keys: &[ReplicaKey], others: &[ReplicaKey]) -> Vec<Voter> {
    let mut replicas: Vec<Voter> = keys.iter().map(|key| open(*key, keys)).collect();
    replicas.extend(others.iter().map(|key| open(*key, &[])));
    replicas[0].quorum.campaign(0).unwrap();
    deliver(&mut replicas, &[]);
    assert!(replicas[0].quorum.is_leader());
    replicas
}

#[test]
fn a_replica_that_knows_no_voters_follows_the_log_and_votes_in_the_end() {
    let mut replicas = led_by_0(&[0], &[1]);
    replicas[0].quorum.add_learner(1).unwrap();
    replicas[0].quorum.propose(records("x")).unwrap();
    deliver(&mut replicas, &[]);
    assert_eq!(replicas[1].log, replicas[0].log);
    assert!(!replicas[1].quorum.votes());
    replicas[0].quorum.propose(change()).unwrap();
    deliver(&mut replicas, &[1]);
    replicas[0].quorum.change_voters(&[0, 1]).unwrap();
    replicas[0].quorum.propose(records("y")).unwrap();
    deliver(&mut replicas, &[1]);
    let alone = replicas[0].committed.len();
    tick_all(&mut replicas, &[]);
    replicas[1].quorum.change_voters(&[0, 1]).unwrap();
    tick_all(&mut replicas, &[]);
    assert_eq!(replicas[0].committed.len(), alone + 1, "the second voter's answer is needed now");
    assert!(replicas[1].quorum.votes());
}

#[test]
fn a_learner_counts_for_no_majority_and_can_be_forgotten() {
    let mut replicas = led_by_0(&[0, 1, 2], &[3]);
    replicas[0].quorum.add_learner(3).unwrap();
    replicas[0].quorum.propose(records("x")).unwrap();
    let before = replicas[0].committed.len();
    deliver(&mut replicas, &[1, 2]);
    assert_eq!(replicas[0].committed.len(), before, "one voter of three and a learner");
    replicas[0].quorum.remove_learner(3).unwrap();
    assert_eq!(replicas[0].quorum.progress().len(), 3);
    replicas[0].quorum.remove_learner(2).unwrap();
    assert_eq!(replicas[0].quorum.progress().len(), 3, "a voter is none");
}

#[test]
fn a_leader_that_is_removed_leads_on_until_it_hands_over_or_resigns() {
    let mut replicas = led_by_0(&[0, 1, 2], &[]);
    replicas[0].quorum.propose(change()).unwrap();
    deliver(&mut replicas, &[]);
    for replica in &mut replicas {
        replica.quorum.change_voters(&[1, 2]).unwrap();
    }
    assert!(replicas[0].quorum.is_leader() && !replicas[0].quorum.votes());
    replicas[0].quorum.propose(records("last")).unwrap();
    deliver(&mut replicas, &[]);
    assert_eq!(replicas[1].committed.last().unwrap().payload, records("last"));
    replicas[0].quorum.transfer_leader(2);
    deliver(&mut replicas, &[]);
    assert!(replicas[2].quorum.is_leader());
    tick_all(&mut replicas, &[]);
    assert!(!replicas[0].quorum.is_leader(), "its next heartbeat is answered with the new term");
    replicas[0].quorum.campaign(0).unwrap();
    deliver(&mut replicas, &[]);
    assert!(replicas[2].quorum.is_leader(), "one that does not vote stands for no election");
    replicas[2].quorum.resign();
    assert!(!replicas[2].quorum.is_leader());
}

#[test]
fn a_replica_that_does_not_know_itself_for_a_voter_grants_its_vote() {
    let mut replicas = vec![open(0, &[0, 1]), open(1, &[])];
    replicas[0].quorum.campaign(0).unwrap();
    deliver(&mut replicas, &[]);
    assert!(replicas[0].quorum.is_leader());
}

#[test]
fn another_directory_is_another_replica() {
    let mut replicas = led_by_0(&[0, 1, 2], &[]);
    let fresh = replaced(2);
    let mut other = open(fresh, &[]);
    replicas[0].quorum.propose(records("x")).unwrap();
    let (_, for_2) = replicas[0].work().into_iter().find(|(to, _)| *to == 2).unwrap();
    assert!(matches!(other.takes(0, &for_2), Err(QuorumError::Message(_))), "it is for the one whose disk was lost");
    deliver(&mut replicas, &[2]);
    replicas[0].quorum.propose(change()).unwrap();
    deliver(&mut replicas, &[2]);
    for replica in &mut replicas[..2] {
        replica.quorum.change_voters(&[0, 1]).unwrap();
    }
    replicas[2] = other;
    replicas[0].quorum.add_learner(fresh).unwrap();
    tick_all(&mut replicas, &[]);
    assert_eq!(replicas[2].log, replicas[0].log);
    assert_eq!(node_of(replicas[2].id), 2);
}

#[test]
fn a_removed_voter_disturbs_nobody_and_its_late_answers_are_dropped() {
    let mut replicas = led_by_0(&[0, 1, 2], &[]);
    replicas[0].quorum.propose(records("x")).unwrap();
    let for_2: Vec<_> = replicas[0].work().into_iter().filter(|(to, _)| *to == 2).collect();
    for (_, message) in for_2 {
        replicas[2].takes(0, &message).unwrap();
    }
    let late: Vec<_> = replicas[2].work();
    replicas[0].quorum.propose(change()).unwrap();
    deliver(&mut replicas, &[2]);
    for replica in &mut replicas[..2] {
        replica.quorum.change_voters(&[0, 1]).unwrap();
    }
    for (_, message) in late {
        assert_eq!(replicas[0].takes(2, &message).unwrap(), None);
    }
    let term = replicas[0].quorum.term();
    replicas[2].quorum.forget_leader();
    replicas[2].quorum.campaign(0).unwrap();
    tick_all(&mut replicas, &[]);
    assert!(replicas[0].quorum.is_leader());
    assert_eq!(replicas[0].quorum.term(), term);
}

/// Creates three voters that are known only by node id; the first one is leader.
fn known_by_nodes() -> Vec<Voter> {
    let keys = [0, 1, 2];
    let voter = |key: &ReplicaKey| Voter::of(*key, Quorum::new(&settings(*key, &keys), empty()).unwrap());
    let mut replicas: Vec<Voter> = keys.iter().map(voter).collect();
    replicas[0].quorum.campaign(0).unwrap();
    deliver(&mut replicas, &[]);
    replicas[0].quorum.propose(change()).unwrap();
    deliver(&mut replicas, &[]);
    replicas
}

fn give_directory(replica: &mut Voter) {
    let renamed: Vec<(ReplicaKey, ReplicaKey)> = (0..3).map(|node| (node, replaced(node))).collect();
    replica.quorum.rename(&renamed);
    replica.quorum.change_voters(&renamed.iter().map(|(_, key)| *key).collect::<Vec<_>>()).unwrap();
    replica.id = replaced(replica.id);
}

/// Delivers messages by node, as connections do. A replica that knows directories knows that of every sender.
fn deliver_to_nodes(replicas: &mut [Voter], dead: usize) {
    loop {
        let mut sent = vec![];
        for (from, replica) in replicas.iter_mut().enumerate().filter(|(node, _)| *node != dead) {
            sent.extend(replica.work().into_iter().map(|(to, message)| (from, node_of(to) as usize, message)));
        }
        if sent.is_empty() {
            return;
        }
        for (from, to, message) in sent.into_iter().filter(|(_, to, _)| *to != dead) {
            let knows = replicas[to].id != to as ReplicaKey;
            let sender = if knows { replaced(from as i64) } else { from as ReplicaKey };
            replicas[to].takes(sender, &message).unwrap();
        }
    }
}

const NOBODY: usize = 9;

#[test]
fn voters_get_directories_one_after_the_other_while_the_leader_leads_on() {
    let mut replicas = known_by_nodes();
    for index in 0..3 {
        give_directory(&mut replicas[index]);
        assert!(replicas[index].quorum.votes());
        let before = replicas[2].committed.len();
        replicas[0].quorum.propose(records("while some know")).unwrap();
        deliver_to_nodes(&mut replicas, NOBODY);
        replicas[0].quorum.tick(0);
        replicas[0].quorum.tick(0);
        deliver_to_nodes(&mut replicas, NOBODY);
        assert_eq!(replicas[2].committed.len(), before + 1);
    }
    assert_eq!(replicas[2].quorum.leader(), Some(replaced(0)));
    let mut known: Vec<ReplicaKey> = replicas[0].quorum.progress().iter().map(|one| one.key).collect();
    known.sort_unstable();
    assert_eq!(known, [replaced(0), replaced(1), replaced(2)]);
    replicas[0].quorum.transfer_leader(replaced(1));
    deliver_to_nodes(&mut replicas, NOBODY);
    assert!(replicas[1].quorum.is_leader());
}

#[test]
fn a_voter_with_a_directory_and_one_without_elect_a_leader() {
    for knows in [1, 2] {
        let mut replicas = known_by_nodes();
        give_directory(&mut replicas[knows]);
        replicas[1].quorum.forget_leader();
        replicas[2].quorum.forget_leader();
        replicas[1].quorum.campaign(0).unwrap();
        deliver_to_nodes(&mut replicas, 0);
        assert!(replicas[1].quorum.is_leader(), "{knows} knows");
    }
}

#[test]
fn another_directory_of_a_node_has_no_vote_where_directories_are_known() {
    let mut replicas = known_by_nodes();
    give_directory(&mut replicas[0]);
    let lost = 9 << 32 | 1;
    let heartbeat = {
        replicas[1].quorum.forget_leader();
        replicas[1].quorum.campaign(0).unwrap();
        replicas[1].work().into_iter().find(|(to, _)| *to == 0).unwrap().1
    };
    let term = replicas[0].quorum.term();
    replicas[0].takes(lost, &heartbeat).unwrap();
    assert_eq!(replicas[0].quorum.term(), term);
    assert!(replicas[0].quorum.is_leader());
}

#[test]
fn a_voter_that_is_left_alone_stands_for_election_when_its_log_is_persisted() {
    let mut replicas = led_by_0(&[0, 1], &[]);
    replicas[0].quorum.propose(change()).unwrap();
    deliver(&mut replicas, &[]);
    for replica in &mut replicas {
        replica.quorum.change_voters(&[1]).unwrap();
    }
    replicas[0].quorum.propose(records("unwritten")).unwrap();
    let (_, append) = replicas[0].work().into_iter().find(|(to, _)| *to == 1).unwrap();
    let alone = &mut replicas[1].quorum;
    alone.step(0, &append, 0).unwrap();
    let unwritten = alone.ready().unwrap();
    assert_eq!(unwritten.entries.len(), 1);
    alone.forget_leader();
    alone.campaign(0).unwrap();
    alone.tick(0);
    assert!(!alone.is_leader());
    alone.persisted(unwritten.number);
    alone.campaign(0).unwrap();
    assert!(alone.is_leader());
}
