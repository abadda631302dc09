//! Cached authorization decisions of the control plane. Every Produce and Fetch consults them if there is an authorizer
//! (docs/adr/0059).
//!
//! A cache entry is 63 bits of a keyed hash over the client, the operation, the topic and the version of the rules, and one
//! bit for allowed. A new version of the rules invalidates all entries. Must not know rules: the control plane decides on a
//! cache miss. A lookup takes no lock.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::connection::identity::Identity;
use pybroker_replica::TopicTable;
use pybroker_wire::{TopicId, TopicRef};

/// Entries that are allocated together: 4 KiB.
const PAGE: usize = 512;
/// Slots of a set (a set-associative cache), 64 bytes together: an entry may be in any slot of its set. With two thirds of
/// the slots filled, one entry in thirty finds its set full.
const WAYS: usize = 8;

/// Topic id that means the cluster.
pub const CLUSTER: TopicId = [0; 16];

/// An operation, numbered as Kafka's `AclOperation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    Read = 3,
    Write = 4,
    ClusterAction = 9,
    /// [`Right::Write`] on a transactional id, which has no number of its own.
    WriteAs = 104,
}

/// A client: the hash of its principal and its address under this process's secret key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Who(u64, u64);

/// The control plane's decision on an unresolved request. Ignored without an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorization {
    /// The topics that the client may use, as the request names them, or [`CLUSTER`]. All others are denied.
    pub allowed: HashSet<TopicRef>,
    /// The version of the rules that the decision used; 0: do not cache the decision.
    pub version: u64,
    /// Whether the client has Write on the transactional id of the request.
    pub transactional_id: bool,
}

/// The topics of a request that its client may not use.
#[derive(Clone, Debug, Default)]
pub enum Refused {
    #[default]
    Nothing,
    These(HashSet<TopicRef>),
    Everything,
}

impl Refused {
    /// Whether a topic is refused.
    pub fn contains(&self, topic: &TopicRef) -> bool {
        match self {
            Self::Nothing => false,
            Self::These(topics) => topics.contains(topic),
            Self::Everything => true,
        }
    }
}

/// The cache of decisions.
#[derive(Debug)]
pub struct Rights {
    pages: Box<[OnceLock<Box<[AtomicU64]>>]>,
    version: AtomicU64,
    keys: [RandomState; 2],
}

impl Rights {
    /// A cache of about `decisions` entries. Memory is allocated as entries arrive, 8 bytes for each.
    pub fn new(decisions: usize, version: u64) -> Self {
        let pages = (0..decisions.div_ceil(PAGE).max(1)).map(|_| OnceLock::new()).collect();
        Self { pages, version: AtomicU64::new(version), keys: [RandomState::new(), RandomState::new()] }
    }

    /// The version of the rules in force.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Sets the version of the rules. Entries of other versions do not match any more.
    pub fn set_version(&self, version: u64) {
        self.version.store(version, Ordering::Release);
    }

    /// The cache key of a client.
    pub fn who(&self, identity: Option<&Identity>, host: std::net::IpAddr) -> Who {
        let client = (identity, host);
        Who(self.keys[0].hash_one(client), self.keys[1].hash_one(client))
    }

    /// Whether a client has a right on a topic; `None` if the decision is not cached.
    pub fn known(&self, who: Who, right: Right, topic: &TopicId, version: u64) -> Option<bool> {
        let (page, at, entry) = self.place(who, right, topic, version);
        let set = page.get()?.get(set_of(at)..set_of(at) + WAYS)?;
        let found = set.iter().map(|slot| slot.load(Ordering::Relaxed)).find(|found| found | 1 == entry);
        found.map(|found| found & 1 == 1)
    }

    /// Caches a decision. If the slots of its hash are full, it replaces one of them.
    pub fn note(&self, who: Who, right: Right, topic: &TopicId, version: u64, allowed: bool) {
        let (page, at, entry) = self.place(who, right, topic, version);
        let page = page.get_or_init(|| (0..PAGE).map(|_| AtomicU64::new(0)).collect());
        let set = &page[set_of(at)..set_of(at) + WAYS];
        let position = |wanted: &dyn Fn(u64) -> bool| set.iter().position(|one| wanted(one.load(Ordering::Relaxed)));
        // An entry with the same hash is replaced first, so that no entry is in two slots.
        let free = position(&|known| known | 1 == entry).or_else(|| position(&|known| known == 0));
        set[free.unwrap_or(at % WAYS)].store(entry - u64::from(!allowed), Ordering::Relaxed);
    }

    /// As [`Rights::known`], for Write on a transactional id.
    pub fn known_id(&self, who: Who, id: &str, version: u64) -> Option<bool> {
        self.known(who, Right::WriteAs, &self.place_of(id), version)
    }

    /// As [`Rights::note`], for Write on a transactional id.
    pub fn note_id(&self, who: Who, id: &str, version: u64, allowed: bool) {
        self.note(who, Right::WriteAs, &self.place_of(id), version, allowed);
    }

    /// The hash that replaces the topic id in the entry of a transactional id.
    fn place_of(&self, id: &str) -> TopicId {
        let [high, low] = [&self.keys[0], &self.keys[1]].map(|key| key.hash_one(id));
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    /// The slot of an entry, and the value of the entry for allowed: odd, and not 0 if its last bit is cleared for denied.
    fn place(
        &self,
        who: Who,
        right: Right,
        topic: &TopicId,
        version: u64,
    ) -> (&OnceLock<Box<[AtomicU64]>>, usize, u64) {
        let entry = self.keys[0].hash_one((who, right as u8, topic, version)) | 3;
        // The slot needs no secret hash: a client that aims at a slot only evicts an entry, which is decided again.
        let (high, low) = topic.split_at(8);
        let word = |half: &[u8]| half.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        let mixed = (who.1 ^ word(high).rotate_left(32) ^ word(low) ^ right as u64 ^ version.rotate_left(17))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let page = ((u128::from(mixed) * self.pages.len() as u128) >> 64) as usize;
        (&self.pages[page], (mixed as usize >> 8) & (PAGE - 1), entry)
    }
}

/// The first slot of the set that contains slot `at`.
fn set_of(at: usize) -> usize {
    at & !(WAYS - 1)
}

/// The decisions on a request's topics, or the topics that the control plane has to decide on.
pub enum Checked {
    Known(Refused),
    Unknown,
}

/// Authorizes a request that names topics, by the cache or by the control plane's decision.
pub fn check<'a>(
    rights: &Rights,
    who: Who,
    right: Right,
    table: &TopicTable,
    topics: impl Iterator<Item = &'a TopicRef>,
    decision: Option<&Authorization>,
) -> Checked {
    if let Some(decision) = decision {
        return Checked::Known(by_decision(rights, who, right, table, topics, decision));
    }
    let version = rights.version();
    if right == Right::ClusterAction {
        return match rights.known(who, right, &CLUSTER, version) {
            Some(true) => Checked::Known(Refused::Nothing),
            Some(false) => Checked::Known(Refused::Everything),
            None => Checked::Unknown,
        };
    }
    let mut refused = HashSet::new();
    let mut last = None;
    for topic in topics {
        // Partitions of a topic are adjacent.
        if last == Some(topic) {
            continue;
        }
        last = Some(topic);
        match table.find(topic).and_then(|found| rights.known(who, right, &found.id, version)) {
            Some(true) => {}
            Some(false) => {
                refused.insert(topic.clone());
            }
            None => return Checked::Unknown,
        }
    }
    Checked::Known(of(refused))
}

fn of(refused: HashSet<TopicRef>) -> Refused {
    if refused.is_empty() { Refused::Nothing } else { Refused::These(refused) }
}

fn by_decision<'a>(
    rights: &Rights,
    who: Who,
    right: Right,
    table: &TopicTable,
    topics: impl Iterator<Item = &'a TopicRef>,
    decision: &Authorization,
) -> Refused {
    if right == Right::ClusterAction {
        let allowed = decision.allowed.contains(&TopicRef::Id(CLUSTER));
        if decision.version != 0 {
            rights.note(who, right, &CLUSTER, decision.version, allowed);
        }
        return if allowed { Refused::Nothing } else { Refused::Everything };
    }
    let mut refused = HashSet::new();
    let mut last = None;
    for topic in topics {
        if last == Some(topic) {
            continue;
        }
        last = Some(topic);
        let allowed = decision.allowed.contains(topic);
        if let Some(found) = table.find(topic).filter(|_| decision.version != 0) {
            rights.note(who, right, &found.id, decision.version, allowed);
        }
        if !allowed {
            refused.insert(topic.clone());
        }
    }
    of(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_holds_for_its_client_right_topic_and_version_alone() {
        let rights = Rights::new(4096, 1);
        let alice = Identity { kind: "User".into(), name: "alice".into() };
        let host = |text: &str| text.parse().unwrap();
        let who = rights.who(Some(&alice), host("10.0.0.1"));
        rights.note(who, Right::Read, &[1; 16], 1, true);
        rights.note(who, Right::Write, &[1; 16], 1, false);
        assert_eq!(rights.known(who, Right::Read, &[1; 16], 1), Some(true));
        assert_eq!(rights.known(who, Right::Write, &[1; 16], 1), Some(false));
        assert_eq!(rights.known(who, Right::Read, &[2; 16], 1), None);
        assert_eq!(rights.known(who, Right::Read, &[1; 16], 2), None);
        for other in [rights.who(Some(&alice), host("10.0.0.2")), rights.who(None, host("10.0.0.1"))] {
            assert_eq!(rights.known(other, Right::Read, &[1; 16], 1), None);
        }
        rights.note(who, Right::Read, &[1; 16], 1, false);
        assert_eq!(rights.known(who, Right::Read, &[1; 16], 1), Some(false));
    }

    #[test]
    fn a_transactional_id_is_no_topic_and_no_other_id() {
        let rights = Rights::new(4096, 1);
        let who = rights.who(None, "10.0.0.1".parse().unwrap());
        rights.note_id(who, "a", 1, true);
        rights.note_id(who, "b", 1, false);
        assert_eq!(["a", "b", "c"].map(|id| rights.known_id(who, id, 1)), [Some(true), Some(false), None]);
        assert_eq!(rights.known_id(who, "a", 2), None);
        assert_eq!(rights.known(who, Right::Write, &rights.place_of("a"), 1), None);
    }

    #[test]
    fn more_decisions_than_there_is_room_for_drive_out_others_and_are_never_mistaken() {
        let rights = Rights::new(1024, 1);
        let who = rights.who(None, "10.0.0.1".parse().unwrap());
        let topic = |number: u32| {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&number.to_be_bytes());
            id
        };
        let mut remembered = 0;
        for number in 0..100_000 {
            rights.note(who, Right::Read, &topic(number), 1, number % 3 == 0);
        }
        for number in 0..100_000 {
            if let Some(allowed) = rights.known(who, Right::Read, &topic(number), 1) {
                assert_eq!(allowed, number % 3 == 0);
                remembered += 1;
            }
        }
        assert!((512..=1024).contains(&remembered), "{remembered}");
    }
}
