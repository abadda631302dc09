//! An encoded request: fields, with records between them that are not copied.

use std::sync::Arc;

use pybroker_wire::frame::{NewRequest, finish_request};
use pybroker_wire::produce::{PartitionBatch, ProduceHead, write_request};

/// Bytes of a request on the wire: fields, records, fields.
#[derive(Debug, Clone)]
pub enum Segment {
    Fields(Vec<u8>),
    Records(Arc<Vec<u8>>),
}

impl Segment {
    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Fields(bytes) => bytes,
            Self::Records(bytes) => bytes,
        }
    }

    /// The number of bytes to send.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether there are no bytes to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A whole request, size prefix included.
#[derive(Debug)]
pub struct Encoded {
    pub correlation_id: i32,
    pub segments: Vec<Segment>,
}

/// Encode a request whose body `write` appends.
pub fn encode(head: NewRequest<'_>, write: impl FnOnce(&mut Vec<u8>)) -> Encoded {
    let mut fields = Vec::with_capacity(256);
    head.begin(&mut fields);
    write(&mut fields);
    finish_request(&mut fields, 0);
    Encoded { correlation_id: head.correlation_id, segments: vec![Segment::Fields(fields)] }
}

/// Encode a Produce request. Batches of one topic have to be adjacent.
pub fn encode_produce(head: NewRequest<'_>, produce: ProduceHead<'_>, batches: &[PartitionBatch]) -> Encoded {
    let mut segments: Vec<Segment> = Vec::with_capacity(batches.len() * 2 + 1);
    let mut fields = Vec::with_capacity(128);
    head.begin(&mut fields);
    write_request(&mut fields, head.api_version, produce, batches, |fields, batch| {
        segments.push(Segment::Fields(std::mem::take(fields)));
        segments.push(Segment::Records(Arc::clone(&batch.records)));
    });
    segments.push(Segment::Fields(fields));
    let beside = segments.iter().skip(1).map(Segment::len).sum();
    if let Some(Segment::Fields(first)) = segments.first_mut() {
        finish_request(first, beside);
    }
    Encoded { correlation_id: head.correlation_id, segments }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pybroker_wire::frame::RequestHead;
    use pybroker_wire::produce::ProduceRequest;
    use pybroker_wire::{ApiKey, TopicRef};

    #[test]
    fn records_travel_between_the_fields() {
        let batch = |topic: &str, index, records: &[u8]| PartitionBatch {
            topic: TopicRef::Name(topic.into()),
            index,
            records: Arc::new(records.to_vec()),
        };
        let batches = [batch("a", 0, b"one"), batch("a", 1, b"two"), batch("b", 7, b"three")];
        let head = NewRequest { api_key: ApiKey::PRODUCE, api_version: 9, correlation_id: 5, client_id: "me" };
        let produce = ProduceHead { transactional_id: None, acks: -1, timeout_ms: 30 };
        let Encoded { correlation_id, segments } = encode_produce(head, produce, &batches);
        assert_eq!(correlation_id, 5);
        let records: Vec<_> = segments.iter().filter(|it| matches!(it, Segment::Records(_))).collect();
        assert_eq!(records.iter().map(|it| it.bytes()).collect::<Vec<_>>(), [&b"one"[..], b"two", b"three"]);
        let bytes: Vec<u8> = segments.iter().flat_map(|it| it.bytes().to_vec()).collect();
        let (size, frame) = bytes.split_first_chunk().expect("a size");
        assert_eq!(u32::from_be_bytes(*size) as usize, frame.len());
        let head = RequestHead::parse(frame).expect("a head");
        let request = ProduceRequest::parse(frame, head.body, head.api_version).expect("a message");
        let found = request.topics.iter().flat_map(|topic| &topic.partitions);
        let found: Vec<_> = found.map(|(index, at)| (*index, at.clone().map(|at| &frame[at]))).collect();
        assert_eq!(found, [(0, Some(&b"one"[..])), (1, Some(b"two")), (7, Some(b"three"))]);
    }
}
