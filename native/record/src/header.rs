//! The fields of a batch header, and the definitions shared by all formats.

/// Size of a batch header in bytes, from base offset to record count.
pub const HEADER_LEN: usize = 61;
/// Number of bytes that `batch_length` does not count: base offset and the length itself.
pub const LOG_OVERHEAD: usize = 12;
pub(super) const COMPRESSION_MASK: i16 = 0x07;
pub(super) const TIMESTAMP_TYPE_MASK: i16 = 0x08;

/// The clock of a batch's timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's clock.
    CreateTime,
    /// The broker's clock, at append.
    LogAppendTime,
}

/// All fields of a v2 batch header.
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
