//! The mapping between the keys of replicas and the ids in the Raft library.
//!
//! Keys may be 0 and Raft ids may not: an id is the key plus one. When voters known only by node id get directories
//! (kraft.version 0 to 1, KIP-853), the library keeps their ids until the process ends. Messages contain the new
//! keys. Must not know the other fields of messages.
//!
//! Replicas learn of that change one after the other. Until all have, those that have not put only node ids in their
//! messages, which stand for the replica of that node. They also accept every directory of a node for that node.

use raft::eraftpb::Message;

use super::state::{ReplicaKey, node_of};

/// The mapping; see the module.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Keys whose id is not their own, with that id.
    renamed: Vec<(ReplicaKey, u64)>,
}

impl Names {
    /// Returns the id of a replica.
    pub(super) fn id(&self, key: ReplicaKey) -> u64 {
        self.renamed.iter().find(|(other, _)| *other == key).map_or_else(|| raft_id(key), |(_, id)| *id)
    }

    /// Returns the replica with an id; `None` for id 0.
    pub(super) fn key(&self, id: u64) -> Option<ReplicaKey> {
        self.renamed.iter().find(|(_, other)| *other == id).map_or_else(|| replica(id), |(key, _)| Some(*key))
    }

    /// Returns the ids of replicas, ascending.
    pub(super) fn ids(&self, replicas: &[ReplicaKey]) -> Vec<u64> {
        let mut ids: Vec<u64> = replicas.iter().map(|key| self.id(*key)).collect();
        ids.sort_unstable();
        ids
    }

    /// Makes `to` the new key of the replica `from`.
    pub(super) fn rename(&mut self, from: ReplicaKey, to: ReplicaKey) {
        let id = self.id(from);
        self.renamed.retain(|(_, other)| *other != id);
        if to != from {
            self.renamed.push((to, id));
        }
    }

    /// Replaces the ids in a message to send with keys.
    pub(super) fn write_keys(&self, message: &mut Message) {
        for id in [&mut message.to, &mut message.from] {
            *id = self.key(*id).map_or(*id, raft_id);
        }
    }

    /// Replaces the keys of sender and receiver in a message with ids. Keys of other replicas stay.
    ///
    /// A replica that does not vote may have lost its disk. A message that names only its node is then for the
    /// replica that it was, and is not accepted.
    pub(super) fn read_keys(&self, message: &mut Message, from: ReplicaKey, own: ReplicaKey, votes: bool) {
        if replica(message.from).is_some_and(|key| is_same(key, from)) {
            message.from = self.id(from);
        }
        if replica(message.to).is_some_and(|key| key == own || ((votes || is_node(own)) && is_same(key, own))) {
            message.to = self.id(own);
        }
    }
}

/// Returns whether two keys are of the same replica; a key without a directory matches every directory of its node.
fn is_same(one: ReplicaKey, other: ReplicaKey) -> bool {
    one == other || (node_of(one) == node_of(other) && (is_node(one) || is_node(other)))
}

fn is_node(key: ReplicaKey) -> bool {
    key == ReplicaKey::from(node_of(key))
}

fn raft_id(key: ReplicaKey) -> u64 {
    key.unsigned_abs() + 1
}

fn replica(id: u64) -> Option<ReplicaKey> {
    id.checked_sub(1).and_then(|key| ReplicaKey::try_from(key).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTORY: ReplicaKey = 7 << 32;

    fn message(from: u64, to: u64) -> Message {
        Message { from, to, ..Message::default() }
    }

    #[test]
    fn an_id_is_its_key_plus_one_until_it_is_renamed() {
        let mut names = Names::default();
        assert_eq!((3, Some(2), None), (names.id(2), names.key(3), names.key(0)));
        names.rename(2, DIRECTORY | 2);
        assert_eq!((3, Some(DIRECTORY | 2)), (names.id(DIRECTORY | 2), names.key(3)));
        assert_eq!(vec![2, 3], names.ids(&[DIRECTORY | 2, 1]));
        names.rename(DIRECTORY | 2, 2);
        assert_eq!((3, Some(2)), (names.id(2), names.key(3)));
    }

    #[test]
    fn messages_speak_of_keys_and_the_library_of_ids() {
        let mut names = Names::default();
        names.rename(1, DIRECTORY | 1);
        names.rename(2, DIRECTORY | 2);
        let mut sent = message(2, 3);
        names.write_keys(&mut sent);
        assert_eq!(((DIRECTORY as u64 | 1) + 1, (DIRECTORY as u64 | 2) + 1), (sent.from, sent.to));
        names.read_keys(&mut sent, DIRECTORY | 1, DIRECTORY | 2, true);
        assert_eq!((2, 3), (sent.from, sent.to));
    }

    #[test]
    fn a_node_without_a_directory_is_the_replica_of_that_node() {
        let mut names = Names::default();
        names.rename(2, DIRECTORY | 2);
        let mut old = message(2, 3);
        let mut lost = old.clone();
        names.read_keys(&mut lost, DIRECTORY | 1, (8 << 32) | 2, false);
        assert_eq!(3, lost.to, "it is for the replica whose disk this one lost");
        names.read_keys(&mut old, DIRECTORY | 1, DIRECTORY | 2, true);
        assert_eq!(((DIRECTORY as u64 | 1) + 1, 3), (old.from, old.to));
        let mut new = message((DIRECTORY as u64 | 1) + 1, (DIRECTORY as u64 | 2) + 1);
        Names::default().read_keys(&mut new, 1, 2, true);
        assert_eq!((2, 3), (new.from, new.to));
    }

    #[test]
    fn another_directory_of_a_node_is_another_replica() {
        let names = Names::default();
        let (own, other) = (DIRECTORY | 2, (8 << 32) | 2);
        let mut strange = message(2, raft_id(other));
        names.read_keys(&mut strange, 1, own, true);
        assert_eq!((2, raft_id(other)), (strange.from, strange.to));
    }
}
