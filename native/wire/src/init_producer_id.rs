//! InitProducerId (API key 22), versions 0 to 4: the producer id and epoch of an idempotent producer (KIP-98).
//!
//! Version notes: 2 is flexible, 3 lets a producer keep its id (KIP-360). Source: Kafka's `InitProducerIdRequest` and
//! `InitProducerIdResponse` schemas.

use super::ErrorCode;
use super::primitives::{Malformed, Reader, Writer};

/// First flexible version.
const FLEXIBLE: i16 = 2;
/// First version that contains the id and epoch to keep.
const WITH_IDENTITY: i16 = 3;

/// The id and epoch of an idempotent producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    pub id: i64,
    pub epoch: i16,
}

impl ProducerIdentity {
    /// No producer id: batches are not deduplicated.
    pub const NONE: Self = Self { id: -1, epoch: -1 };
}

/// Appends a request for a new id, without a transactional id, after its header in `out`.
pub fn write_request(out: &mut Vec<u8>, version: i16) {
    let mut writer = Writer::new(out, version >= FLEXIBLE);
    writer.tags_none();
    writer.nullable_string(None);
    writer.i32(i32::MAX); // transaction_timeout_ms: ignored without a transactional id
    if version >= WITH_IDENTITY {
        writer.i64(ProducerIdentity::NONE.id);
        writer.i16(ProducerIdentity::NONE.epoch);
    }
    writer.tags_none();
}

/// An InitProducerId response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitProducerIdResponse {
    pub error: ErrorCode,
    /// The new id and epoch, if there is no error.
    pub identity: ProducerIdentity,
}

impl InitProducerIdResponse {
    /// Parses the message at `body` of `frame`.
    ///
    /// # Errors
    /// When the frame ends too early.
    pub fn parse(frame: &[u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        reader.header_tags()?;
        reader.i32()?; // throttle_time_ms
        let error = reader.error_code()?;
        let identity = ProducerIdentity { id: reader.i64()?, epoch: reader.i16()? };
        reader.tags()?;
        Ok(Self { error, identity })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in 0_i16..=4) {
            let _ = InitProducerIdResponse::parse(&bytes, body, version);
        }

        #[test]
        fn a_response_is_read_as_it_was_written(
            version in 0_i16..=4, error: i16, id: i64, epoch: i16, cut: prop::sample::Index,
        ) {
            let mut frame = vec![0xee; 4];
            let mut writer = Writer::new(&mut frame, version >= FLEXIBLE);
            writer.tags_none();
            writer.i32(0);
            writer.i16(error);
            writer.i64(id);
            writer.i16(epoch);
            writer.tags_none();
            let sent = InitProducerIdResponse { error: ErrorCode(error), identity: ProducerIdentity { id, epoch } };
            prop_assert_eq!(InitProducerIdResponse::parse(&frame, 4, version), Ok(sent));
            prop_assert!(InitProducerIdResponse::parse(&frame[..4 + cut.index(frame.len() - 4)], 4, version).is_err());
        }

        #[test]
        fn a_request_names_no_transaction_and_no_identity(version in 0_i16..=4) {
            let mut out = Vec::new();
            write_request(&mut out, version);
            let mut reader = Reader::new(&out, 0, version >= FLEXIBLE);
            reader.header_tags().unwrap();
            prop_assert_eq!((reader.nullable_string().unwrap(), reader.i32().unwrap()), (None, i32::MAX));
            if version >= WITH_IDENTITY {
                prop_assert_eq!((reader.i64().unwrap(), reader.i16().unwrap()), (-1, -1));
            }
            reader.tags().unwrap();
            prop_assert_eq!(reader.left(), 0);
        }
    }
}
