//! A voter that has lost its log or the end of it, and the leader that still counts on it.
//!
//! Raft has no such voter: an acknowledged entry stays acknowledged, and the library ends the process of a voter that
//! receives a commit index beyond its log. Here the voter reports the missing entries, and the leader sends them
//! again.
//!
//! Until the voter has those entries again, or entries of a later leader, it does not become candidate, and it votes
//! only for candidates with those entries. Another vote could elect a leader without them
//! (docs/adr/0102-a-voter-that-lost-records-votes-as-if-it-had-them.md).

use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

use super::{Position, Quorum, ReplicaKey};

impl Quorum {
    /// Returns the index that the log must reach before this voter may become candidate; `None` if it has lost
    /// nothing.
    pub fn awaited(&self) -> Option<u64> {
        (self.awaited != Position::default()).then_some(self.awaited.index)
    }

    /// Returns the voters that lost acknowledged entries since the last call: the key, the last entry it had, and the
    /// last it has.
    pub fn take_lost(&mut self) -> Vec<(ReplicaKey, u64, u64)> {
        std::mem::take(&mut self.lost)
    }

    /// Ends the restriction of votes when the persisted log is, in Raft's order, at least as far as the lost one.
    pub(super) fn maybe_recover(&mut self) {
        let log = &self.raft.raft.raft_log;
        let index = log.persisted;
        if (log.term(index).unwrap_or_default(), index) >= (self.awaited.term, self.awaited.index) {
            self.awaited = Position::default();
        }
    }

    /// Returns whether a message would elect a leader that may lack the lost entries. Such a message gets no reply:
    /// the sender does not get this vote.
    pub(super) fn abstains(&self, message: &Message) -> bool {
        match message.get_msg_type() {
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => {
                (message.log_term, message.index) < (self.awaited.term, self.awaited.index)
            }
            MessageType::MsgTimeoutNow => self.awaited().is_some(),
            _ => false,
        }
    }

    /// Called before a tick. If the tick would start an election that this voter may not start, it forgets the silent
    /// leader instead.
    pub(super) fn pass_election(&mut self) {
        let raft = &self.raft.raft;
        if self.awaited().is_some() && raft.election_elapsed + 1 >= raft.randomized_election_timeout() {
            self.forget_leader();
        }
    }

    /// Limits the commit index of a heartbeat to the end of this log. If the log lacks committed entries, returns the
    /// rejection for the sender: a heartbeat never has a commit index that its receiver has not acknowledged.
    pub(super) fn clamp_commit(&mut self, message: &mut Message) -> Option<Message> {
        let last = self.last_index();
        if message.get_msg_type() != MessageType::MsgHeartbeat || message.commit <= last {
            return None;
        }
        let mut response = Message {
            from: message.to,
            to: message.from,
            term: message.term,
            index: message.commit,
            reject: true,
            reject_hint: last,
            ..Message::default()
        };
        response.set_msg_type(MessageType::MsgAppendResponse);
        if message.term >= self.raft.raft.term
            && (message.term, message.commit) > (self.awaited.term, self.awaited.index)
        {
            // The committed entry is of the leader's term, or an entry of that term follows it.
            self.awaited = Position { index: message.commit, term: message.term };
        }
        message.commit = last;
        Some(response)
    }

    /// Sends the rejection from [`Quorum::clamp_commit`], if its receiver is the leader.
    pub(super) fn reject_commit(&mut self, response: Message) {
        let raft = &mut self.raft.raft;
        if raft.state == StateRole::Follower && raft.term == response.term && raft.leader_id == response.to {
            raft.msgs.push(response);
        }
    }

    /// Revokes the acknowledgement of a voter that rejects an entry that it had, and sends the log from the voter's
    /// end on. Returns whether the message was such a rejection. The commit index does not change.
    pub(super) fn resets_progress(&mut self, message: &Message) -> bool {
        let raft = &mut self.raft.raft;
        let is_rejection = message.get_msg_type() == MessageType::MsgAppendResponse && message.reject;
        if !is_rejection || raft.state != StateRole::Leader || message.term != raft.term {
            return false;
        }
        let Some(progress) = raft.mut_prs().get_mut(message.from) else { return false };
        if message.index == 0 || message.index > progress.matched {
            return false;
        }
        let had = progress.matched;
        progress.recent_active = true;
        progress.become_probe();
        progress.matched = 0;
        progress.next_idx = message.reject_hint.min(message.index - 1) + 1;
        raft.send_append(message.from);
        if message.reject_hint < had {
            self.lost.extend(self.names.key(message.from).map(|key| (key, had, message.reject_hint)));
        }
        true
    }
}

#[cfg(test)]
#[path = "lost_log_tests.rs"]
mod tests;
