//! A voter that has lost its log, or the end of it, and the leader that still counts on it.
//!
//! Raft knows no such voter: what one has acknowledged stays acknowledged, and the library ends the process of a voter that
//! receives a commit index that its log does not have. Here the voter reports what it lacks, and the leader sends it again.
//!
//! Until the voter has those entries again, or those of a later leader, it does not stand for election, and votes for those
//! who have them: another vote could elect a leader without them
//! (docs/adr/0102-a-voter-that-lost-records-votes-as-if-it-had-them.md).

use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

use super::{Position, Quorum, ReplicaKey};

impl Quorum {
    /// Index of the entry that the log has to reach before this voter may lead; `None` if it has lost nothing.
    pub fn awaited(&self) -> Option<u64> {
        (self.awaited != Position::default()).then_some(self.awaited.index)
    }

    /// Voters whose acknowledgements were taken back since the last call: who, the last entry it had, and the last it has.
    pub fn take_lost(&mut self) -> Vec<(ReplicaKey, u64, u64)> {
        std::mem::take(&mut self.lost)
    }

    /// Votes by its log again, if what is on the disk is as far as what was lost, in Raft's order.
    pub(super) fn maybe_recover(&mut self) {
        let log = &self.raft.raft.raft_log;
        let index = log.persisted;
        if (log.term(index).unwrap_or_default(), index) >= (self.awaited.term, self.awaited.index) {
            self.awaited = Position::default();
        }
    }

    /// Whether a message would elect a leader that may lack what this voter lost. No reply is sent: the sender has no vote.
    pub(super) fn abstains(&self, message: &Message) -> bool {
        match message.get_msg_type() {
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => {
                (message.log_term, message.index) < (self.awaited.term, self.awaited.index)
            }
            MessageType::MsgTimeoutNow => self.awaited().is_some(),
            _ => false,
        }
    }

    /// Before a tick: forgets a silent leader, where this voter would stand for election with the tick and may not.
    pub(super) fn pass_election(&mut self) {
        let raft = &self.raft.raft;
        if self.awaited().is_some() && raft.election_elapsed + 1 >= raft.randomized_election_timeout() {
            self.forget_leader();
        }
    }

    /// Bounds a heartbeat to the log that is here. The answer for its sender, where that log lacks what is committed: a
    /// heartbeat has no commit index that its receiver has not acknowledged.
    pub(super) fn clamp_commit(&mut self, message: &mut Message) -> Option<Message> {
        let last = self.last_index();
        if message.get_msg_type() != MessageType::MsgHeartbeat || message.commit <= last {
            return None;
        }
        let mut answer = Message {
            from: message.to,
            to: message.from,
            term: message.term,
            index: message.commit,
            reject: true,
            reject_hint: last,
            ..Message::default()
        };
        answer.set_msg_type(MessageType::MsgAppendResponse);
        if message.term >= self.raft.raft.term
            && (message.term, message.commit) > (self.awaited.term, self.awaited.index)
        {
            // The committed entry is of the leader's term, or an entry of that term follows it.
            self.awaited = Position { index: message.commit, term: message.term };
        }
        message.commit = last;
        Some(answer)
    }

    /// Sends what [`Quorum::clamp_commit`] has made, if its receiver leads.
    pub(super) fn reject_commit(&mut self, answer: Message) {
        let raft = &mut self.raft.raft;
        if raft.state == StateRole::Follower && raft.term == answer.term && raft.leader_id == answer.to {
            raft.msgs.push(answer);
        }
    }

    /// Takes an acknowledgement back, where a voter rejects an entry that it had: its log is sent from its end on. Whether
    /// the message was such a one. The commit index stays as it is.
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
