//! Record batches: the unit of producing, storing and checksumming.
//!
//! Owns varints, checksums, the batch header, records, compression, validation and building of format v2, the
//! messages of formats v0 and v1, and the conversions between the formats. Knows only bytes: no files, no sockets,
//! and only the settings that are passed in.

mod batch;
mod blame;
mod builder;
mod codec;
mod compression;
mod control;
mod crc;
mod down_convert;
mod error;
mod header;
mod ids;
#[cfg(test)]
mod kafka_tests;
mod lz4;
mod message;
mod message_set;
#[cfg(test)]
mod message_tests;
mod recompress;
mod records;
mod sent;
mod stored;
#[cfg(test)]
mod tests;
mod up_convert;
mod validate;
pub mod varint;
mod walk;
mod xerial;

pub use batch::{
    BatchHeader, Batches, HEADER_LEN, LOG_OVERHEAD, SMALLEST_BATCH, TimestampType, batch_crc, seal, set_base_offset,
    set_control, set_partition_leader_epoch, set_transactional,
};
pub use builder::{BatchBuilder, RecordHeader};
pub use codec::{Codec, Compression};
pub use compression::{compress, decompress};
pub use control::EndMarker;
pub use crc::{Crc32c, crc32, crc32c};
pub use down_convert::{OlderFormat, down_convert};
pub use error::{InvalidBatch, RecordError};
pub use ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex, ProducerId};
pub use message::{Message, Messages};
pub use message_set::{Inner, MessageSetBuilder, NewMessage, decompress_set};
pub use recompress::recompress;
pub use records::{Headers, Progress, Record, Records, records_section};
pub use sent::SentRecords;
pub use stored::{StoredRecord, first_offset, visit_records};
pub use up_convert::up_convert;
pub use validate::{ValidateRules, validate_batch, validate_headed};
