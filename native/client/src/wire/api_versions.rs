//! ApiVersions (key 18): what a broker serves. The first request on every connection.

use super::fields::{FieldError, FieldReader, FieldWriter};
use super::header::{API_VERSIONS, Api};
use pybroker_wire::ErrorCode;

/// The version ranges that one broker serves.
#[derive(Debug, Clone, Default)]
pub struct ServedVersions(Vec<(i16, i16, i16)>);

impl ServedVersions {
    /// The highest version of an API that both sides speak, or the broker's range (-1, -1 when it lacks the API).
    pub fn choose(&self, api: Api) -> Result<i16, (i16, i16)> {
        let Some((_, min, max)) = self.0.iter().find(|(key, _, _)| *key == api.key) else { return Err((-1, -1)) };
        let version = api.max.min(*max);
        if version >= api.min && version >= *min { Ok(version) } else { Err((*min, *max)) }
    }
}

/// The request's body; from version 3 on it says what this client is (KIP-511).
pub fn write_request(out: &mut Vec<u8>, version: i16) {
    let mut body = FieldWriter::new(out, API_VERSIONS.flexible(version));
    if version >= 3 {
        body.string("pybroker");
        body.string(env!("CARGO_PKG_VERSION"));
        body.end();
    }
}

/// The answer; `None` when the broker wants version 0 (it answers UNSUPPORTED_VERSION in version 0's encoding).
pub fn read_response(frame: &[u8], version: i16) -> Result<Option<ServedVersions>, FieldError> {
    let (_, mut body) = API_VERSIONS.response_body(version, frame)?;
    if ErrorCode(body.i16()?) == ErrorCode::UNSUPPORTED_VERSION && version > 0 {
        return Ok(None);
    }
    read_keys(&mut body).map(Some)
}

fn read_keys(body: &mut FieldReader<'_>) -> Result<ServedVersions, FieldError> {
    let count = body.array()?;
    let mut served = Vec::with_capacity(count);
    for _ in 0..count {
        served.push((body.i16()?, body.i16()?, body.i16()?));
        body.end()?;
    }
    Ok(ServedVersions(served))
}
