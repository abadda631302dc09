//! The encoding of messages between voters.
//!
//! Owns a format of its own, with fixed fields in big-endian order, so that the protobuf parser never reads bytes of
//! a peer (`docs/adr/0038`). Owns the checks too: a decoded message is one that a voter sends to another, its entries
//! are consecutive, and every payload is one complete record batch. Must not know the state of the receiver.

use raft::eraftpb::{Entry as RaftEntry, Message, MessageType};

use super::batch;
use super::entries::{build_entry, payload_of};

const VERSION: u8 = 0;
/// Terms are the leader epochs of record batches.
const LAST_TERM: u64 = i32::MAX as u64;
/// The longest context that the library sends marks a campaign after a leadership transfer.
const LONGEST_CONTEXT: usize = 32;
/// A snapshot's id: end offset and epoch.
const SNAPSHOT_ID: usize = 12;
/// Term, index and length of an entry.
const ENTRY_HEAD: usize = 20;

/// The messages between voters, ordered by their numbers on the wire. The library's other messages are internal, or
/// request features that this quorum does not use.
const KINDS: [MessageType; 10] = [
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgSnapshot,
    MessageType::MsgTimeoutNow,
];

/// Encodes a message; `None` for one that is not sent to another voter.
pub(super) fn encode(message: &Message) -> Option<Vec<u8>> {
    let kind = KINDS.iter().position(|kind| *kind == message.get_msg_type())?;
    let payloads: usize = message.entries.iter().map(|entry| payload_of(entry).len() + ENTRY_HEAD).sum();
    let mut bytes = Vec::with_capacity(128 + payloads);
    bytes.extend([VERSION, kind as u8, u8::from(message.reject)]);
    for number in [
        message.to,
        message.from,
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.reject_hint,
    ] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.push(message.context.len() as u8);
    bytes.extend_from_slice(&message.context);
    if message.get_msg_type() == MessageType::MsgSnapshot {
        let metadata = message.get_snapshot().get_metadata();
        bytes.extend(metadata.index.to_be_bytes());
        bytes.extend(metadata.term.to_be_bytes());
        bytes.extend_from_slice(&message.get_snapshot().data);
    }
    for entry in message.entries.iter() {
        let payload = payload_of(entry);
        bytes.extend(entry.term.to_be_bytes());
        bytes.extend(entry.index.to_be_bytes());
        bytes.extend((payload.len() as u32).to_be_bytes());
        bytes.extend_from_slice(payload);
    }
    Some(bytes)
}

/// Decodes a message, or returns the reason why it is invalid.
pub(super) fn decode(bytes: &[u8]) -> Result<Message, String> {
    let mut rest = Reader(bytes);
    let [version, kind, reject] = rest.array()?;
    if version != VERSION || reject > 1 {
        return Err(format!("version {version} or flag {reject} is not known"));
    }
    let kind = *KINDS.get(usize::from(kind)).ok_or_else(|| format!("no message has the number {kind}"))?;
    let mut message = Message::default();
    message.set_msg_type(kind);
    message.reject = reject == 1;
    message.to = rest.number()?;
    message.from = rest.number()?;
    message.term = rest.number()?;
    message.log_term = rest.number()?;
    message.index = rest.number()?;
    message.commit = rest.number()?;
    message.commit_term = rest.number()?;
    message.reject_hint = rest.number()?;
    if message.term == 0 || [message.term, message.log_term, message.commit_term].iter().any(|it| *it > LAST_TERM) {
        return Err(format!("term {} is none, or another is beyond {LAST_TERM}", message.term));
    }
    if message.index >= u64::MAX / 2 {
        return Err(format!("index {} is beyond every log", message.index));
    }
    let [context] = rest.array()?;
    if usize::from(context) > LONGEST_CONTEXT {
        return Err(format!("a context of {context} bytes"));
    }
    message.context = rest.take(usize::from(context))?.to_vec().into();
    if kind == MessageType::MsgSnapshot {
        read_snapshot(&mut rest, &mut message)?;
    }
    if kind == MessageType::MsgAppend {
        read_entries(&mut rest, &mut message)?;
    }
    if rest.0.is_empty() { Ok(message) } else { Err(format!("{} bytes follow the message", rest.0.len())) }
}

fn read_snapshot(rest: &mut Reader<'_>, message: &mut Message) -> Result<(), String> {
    let (index, term) = (rest.number()?, rest.number()?);
    if index == 0 || index >= u64::MAX / 2 || term == 0 || term > message.term {
        return Err(format!("a snapshot at index {index} of term {term}"));
    }
    let snapshot = message.mut_snapshot();
    snapshot.mut_metadata().index = index;
    snapshot.mut_metadata().term = term;
    snapshot.data = rest.take(SNAPSHOT_ID)?.to_vec().into();
    Ok(())
}

fn read_entries(rest: &mut Reader<'_>, message: &mut Message) -> Result<(), String> {
    let (mut index, mut term) = (message.index, message.log_term);
    let mut entries: Vec<RaftEntry> = Vec::new();
    while !rest.0.is_empty() {
        let entry = (rest.number()?, rest.number()?);
        if entry.1 != index + 1 || entry.0 < term || entry.0 == 0 || entry.0 > message.term {
            return Err(format!("entry {} of term {} after {index} of term {term}", entry.1, entry.0));
        }
        (term, index) = entry;
        let length = u32::from_be_bytes(rest.array()?) as usize;
        let payload = rest.take(length)?;
        batch::check_one(payload).map_err(|error| format!("entry {index}: {error}"))?;
        entries.push(build_entry(index, term, payload.to_vec()));
    }
    message.entries = entries.into();
    Ok(())
}

/// The unread bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or_else(|| format!("{length} bytes where {} are left", self.0.len()))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn number(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Decodes bytes and encodes the result again; `None` for invalid bytes. For tests of the codec.
pub fn probe(bytes: &[u8]) -> Option<Vec<u8>> {
    encode(&decode(bytes).ok()?)
}
