//! A producer's batch: open while records are added, sealed when the sender encodes it, kept until it is acknowledged.

use std::sync::Arc;
use std::time::Instant;

use super::delivery::{Decided, Delivery};
use super::observer::Stride;
use super::transaction::Mark;
use crate::error::ClientError;
use pybroker_record::{BatchBuilder, seal};
use pybroker_wire::init_producer_id::ProducerIdentity;

/// Records sent within this time share one latency sample.
const STRIDE_US: u128 = 50;

/// Positions in a v2 batch header.
const ATTRIBUTES: std::ops::Range<usize> = 21..23;
const PRODUCER_ID: std::ops::Range<usize> = 43..51;
const PRODUCER_EPOCH: std::ops::Range<usize> = 51..53;
const BASE_SEQUENCE: std::ops::Range<usize> = 53..57;

/// The attribute of a batch that belongs to a transaction.
const TRANSACTIONAL: u8 = 0x10;

/// One partition's batch.
#[derive(Debug)]
pub struct Batch {
    /// Ascending in the order of opening, over all partitions of a producer.
    pub id: u64,
    pub opened: Instant,
    pub records: u32,
    /// Bytes taken from `buffer.memory`, released when the batch completes.
    pub reserved: usize,
    pub strides: Vec<Stride>,
    pub delivery: Arc<Delivery>,
    /// The counts of the batch's partition.
    pub decided: Arc<Decided>,
    /// The batch's transaction; `None` without a transactional id.
    pub mark: Option<Mark>,
    /// No further record fits.
    pub full: bool,
    content: Content,
    /// Set when the batch is first sent, and kept over retries so that the broker recognizes a duplicate, even if later
    /// batches have another identity.
    pub sequence: Option<i32>,
    /// The identity that the sequence number belongs to.
    pub identity: ProducerIdentity,
    pub attempts: u32,
    pub last_error: Option<ClientError>,
}

#[derive(Debug)]
enum Content {
    Open(BatchBuilder),
    Sealed(Arc<Vec<u8>>),
}

/// The result of sealing.
#[derive(Debug)]
pub struct Sealed {
    pub bytes: Arc<Vec<u8>>,
    /// The empty builder with its buffer, at the first call.
    pub emptied: Option<BatchBuilder>,
}

impl Batch {
    /// An empty batch with `reserved` bytes of memory.
    pub fn open(id: u64, builder: BatchBuilder, reserved: usize, decided: Arc<Decided>, mark: Option<Mark>) -> Self {
        Self {
            id,
            opened: Instant::now(),
            records: 0,
            reserved,
            strides: Vec::new(),
            delivery: Arc::default(),
            decided,
            mark,
            full: false,
            content: Content::Open(builder),
            sequence: None,
            identity: ProducerIdentity::NONE,
            attempts: 0,
            last_error: None,
        }
    }

    /// The builder; `None` after sealing.
    pub fn builder(&mut self) -> Option<&mut BatchBuilder> {
        match &mut self.content {
            Content::Open(builder) if !self.full => Some(builder),
            _ => None,
        }
    }

    /// Count records that were added.
    pub fn count(&mut self, records: u32, bytes: u64, phase: u8, now: Instant) {
        self.records += records;
        match self.strides.last_mut() {
            Some(last) if last.phase == phase && now.duration_since(last.sent).as_micros() < STRIDE_US => {
                last.records += records;
                last.bytes += bytes;
            }
            _ => self.strides.push(Stride { sent: now, records, bytes, phase }),
        }
    }

    /// Return the encoded bytes, with this producer's identity and sequence number in the header. The first call encodes
    /// into `out` and returns the empty builder. A later call updates the header if the identity has changed. Errors are the
    /// codec's.
    pub fn seal(&mut self, identity: ProducerIdentity, out: impl FnOnce() -> Vec<u8>) -> Result<Sealed, String> {
        let sequence = self.sequence.unwrap_or(-1);
        let mut emptied = None;
        if let Content::Open(builder) = &mut self.content {
            let finished = builder.finish_with(identity.id, identity.epoch, sequence, out());
            let mut out = finished.map_err(|error| error.to_string())?;
            if self.mark.is_some() {
                set_transactional(&mut out);
            }
            if let Content::Open(builder) = std::mem::replace(&mut self.content, Content::Sealed(Arc::new(out))) {
                emptied = Some(builder);
            }
        }
        match &mut self.content {
            Content::Sealed(bytes) => {
                patch_identity(bytes, identity, sequence);
                Ok(Sealed { bytes: Arc::clone(bytes), emptied })
            }
            Content::Open(_) => Err("the batch is still open".to_owned()),
        }
    }

    /// Wire size in bytes, exact after sealing.
    pub fn size(&self) -> usize {
        match &self.content {
            Content::Open(builder) => builder.size(),
            Content::Sealed(bytes) => bytes.len(),
        }
    }

    /// The buffer of a completed batch, unless it is still in use.
    pub fn into_buffer(self) -> Option<Vec<u8>> {
        match self.content {
            Content::Sealed(bytes) => Arc::try_unwrap(bytes).ok(),
            Content::Open(_) => None,
        }
    }
}

fn set_transactional(batch: &mut [u8]) {
    batch[ATTRIBUTES.end - 1] |= TRANSACTIONAL;
    seal(batch);
}

fn patch_identity(bytes: &mut Arc<Vec<u8>>, identity: ProducerIdentity, sequence: i32) {
    let same = bytes[PRODUCER_ID] == identity.id.to_be_bytes()
        && bytes[PRODUCER_EPOCH] == identity.epoch.to_be_bytes()
        && bytes[BASE_SEQUENCE] == sequence.to_be_bytes();
    if same {
        return;
    }
    let batch = Arc::make_mut(bytes);
    batch[PRODUCER_ID].copy_from_slice(&identity.id.to_be_bytes());
    batch[PRODUCER_EPOCH].copy_from_slice(&identity.epoch.to_be_bytes());
    batch[BASE_SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
    seal(batch);
}
