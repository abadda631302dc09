//! Record batches: the unit of producing, storing and checksumming.
//!
//! Owns varints, the checksum, the batch header, records, compression, validation and building of format v2. Knows
//! bytes only: neither files nor sockets, and no setting that is not handed to it.

mod batch;
mod blame;
mod builder;
mod compression;
mod control;
mod crc;
mod error;
mod records;
#[cfg(test)]
mod tests;
mod validate;
pub mod varint;
mod walk;
mod xerial;

pub use batch::{
    BatchHeader, Batches, HEADER_LEN, LOG_OVERHEAD, TimestampType, batch_crc, seal, set_base_offset, set_control,
    set_log_append_time, set_max_timestamp, set_partition_leader_epoch, set_transactional,
};
pub use builder::{BatchBuilder, RecordHeader};
pub use compression::{Compression, compress, decompress};
pub use control::EndMarker;
pub use crc::{Crc32c, crc32c};
pub use error::{InvalidBatch, RecordError};
pub use records::{Headers, Record, Records, records_section};
pub use validate::{ValidateRules, validate_batch};
