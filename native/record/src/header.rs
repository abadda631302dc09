//! The fields of a batch header, and what every format has in common.

/// Bytes of a batch header, base offset to record count.
pub const HEADER_LEN: usize = 61;
/// Bytes before what `batch_length` counts: base offset and the length itself.
pub const LOG_OVERHEAD: usize = 12;
pub(super) const COMPRESSION_MASK: i16 = 0x07;
pub(super) const TIMESTAMP_TYPE_MASK: i16 = 0x08;

/// Whose clock a batch's timestamps are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    CreateTime,
    /// The broker's, at append.
    LogAppendTime,
}

/// The header of a v2 batch, all fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Kafka's field names")]
pub struct BatchHeader {
    pub base_offset: i64,
    pub batch_length: i32,
    pub partition_leader_epoch: i32,
    pub magic: i8,
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}
