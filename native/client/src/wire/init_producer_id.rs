//! InitProducerId (key 22): an identity for an idempotent producer (KIP-98).

use super::fields::{FieldError, FieldWriter};
use super::header::INIT_PRODUCER_ID;
use pybroker_wire::ErrorCode;

/// An idempotent producer's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdentity {
    pub id: i64,
    pub epoch: i16,
}

/// No identity: batches are not de-duplicated.
pub const ANONYMOUS: ProducerIdentity = ProducerIdentity { id: -1, epoch: -1 };

/// Ask for a new identity, without a transactional id.
pub fn write_request(out: &mut Vec<u8>, version: i16) {
    let mut body = FieldWriter::new(out, INIT_PRODUCER_ID.flexible(version));
    body.null_string();
    body.i32(i32::MAX);
    if version >= 3 {
        body.i64(-1);
        body.i16(-1);
    }
    body.end();
}

/// The identity, or the broker's error code.
pub fn read_response(frame: &[u8], version: i16) -> Result<Result<ProducerIdentity, ErrorCode>, FieldError> {
    let (_, mut body) = INIT_PRODUCER_ID.response_body(version, frame)?;
    body.i32()?;
    let error_code = ErrorCode(body.i16()?);
    let identity = ProducerIdentity { id: body.i64()?, epoch: body.i16()? };
    Ok(if error_code == ErrorCode::NONE { Ok(identity) } else { Err(error_code) })
}
