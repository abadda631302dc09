//! A voter that has lost its log, or the end of it, and the leader that still counts on it.
//!
//! Raft knows no such voter: what one has acknowledged stays acknowledged, and the library ends the process of a voter that
//! receives a commit index that its log does not have. Here the voter says what it lacks, and the leader sends it again.
//! What such a voter has forgotten of its votes is forgotten: the others have to be a majority (docs/guides/cluster.md).

use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

use super::Quorum;

impl Quorum {
    /// Bounds a heartbeat to the log that is here. The answer for its sender, where that log lacks what is committed.
    pub(super) fn clamp_commit(&self, message: &mut Message) -> Option<Message> {
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
        progress.recent_active = true;
        progress.become_probe();
        progress.matched = 0;
        progress.next_idx = message.reject_hint.min(message.index - 1) + 1;
        raft.send_append(message.from);
        true
    }
}

#[cfg(test)]
#[path = "lost_log_tests.rs"]
mod tests;
