//! The start of a leader's term: the votes, and Kafka's batch in the first entry.

use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

use super::Quorum;
use crate::batch;
use crate::state::{ReplicaKey, node_of};

impl Quorum {
    pub(super) fn note_vote(&mut self, from: ReplicaKey, message: &Message) {
        let raft = &self.raft.raft;
        if message.get_msg_type() == MessageType::MsgRequestVoteResponse
            && !message.reject
            && message.term == raft.term
            && raft.state == StateRole::Candidate
        {
            if self.granting.0 != raft.term {
                self.granting = (raft.term, Vec::new());
            }
            self.granting.1.push(from);
        }
    }

    /// Puts Kafka's batch into the first entry of a new term, which the library leaves empty, and into the messages
    /// that contain the entry already.
    pub(super) fn begin_term(&mut self, now_ms: i64) {
        if !self.is_leader() || self.began == self.raft.raft.term {
            return;
        }
        let raft = &mut self.raft.raft;
        self.began = raft.term;
        let own = self.names.key(raft.id).unwrap_or_default();
        let ids = raft.prs().conf().voters().ids();
        let mut voters: Vec<ReplicaKey> = ids.iter().filter_map(|id| self.names.key(id)).collect();
        voters.sort_unstable_by_key(|key| node_of(*key));
        let granted = if self.granting.0 == raft.term { self.granting.1.as_slice() } else { &[] };
        let granting: Vec<i32> =
            voters.iter().filter(|key| **key == own || granted.contains(key)).map(|key| node_of(*key)).collect();
        let voters: Vec<i32> = voters.into_iter().map(node_of).collect();
        let payload = batch::build_leader_change(node_of(own), &voters, &granting, now_ms);
        let index = raft.raft_log.last_index();
        let unstable = &mut raft.r.raft_log.unstable;
        unstable.entries_size += payload.len();
        let sent = raft.msgs.iter_mut().flat_map(|message| message.entries.iter_mut());
        for entry in unstable.entries.iter_mut().chain(sent).filter(|entry| entry.index == index) {
            entry.data = payload.clone().into();
        }
    }
}
