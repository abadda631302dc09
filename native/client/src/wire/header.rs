//! The APIs this client speaks, their version ranges, and the headers around their bodies.

use super::fields::{FieldError, FieldReader, FieldWriter};

/// One API as this client speaks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    pub key: i16,
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
    /// The first version with compact fields and tagged headers (KIP-482).
    pub flexible_from: i16,
}

/// Version 13 names topics by id (KIP-516), which a producer that was given a name gains nothing from.
pub const PRODUCE: Api = Api { key: 0, name: "Produce", min: 3, max: 12, flexible_from: 9 };
/// Version 13 names topics by id, as above.
pub const FETCH: Api = Api { key: 1, name: "Fetch", min: 4, max: 12, flexible_from: 12 };
pub const LIST_OFFSETS: Api = Api { key: 2, name: "ListOffsets", min: 1, max: 7, flexible_from: 6 };
pub const METADATA: Api = Api { key: 3, name: "Metadata", min: 1, max: 12, flexible_from: 9 };
pub const API_VERSIONS: Api = Api { key: 18, name: "ApiVersions", min: 0, max: 3, flexible_from: 3 };
pub const INIT_PRODUCER_ID: Api = Api { key: 22, name: "InitProducerId", min: 0, max: 4, flexible_from: 2 };

impl Api {
    /// Whether a version uses compact fields.
    pub fn flexible(&self, version: i16) -> bool {
        version >= self.flexible_from
    }

    /// Start a request: four bytes for the size, then the header. `finish_frame` fills in the size.
    pub fn start_request(&self, out: &mut Vec<u8>, version: i16, correlation_id: i32, client_id: &str) {
        out.extend_from_slice(&[0; 4]);
        // The client id stays a length-prefixed string in every header version.
        let mut header = FieldWriter::new(out, false);
        header.i16(self.key);
        header.i16(version);
        header.i32(correlation_id);
        header.string(client_id);
        FieldWriter::new(out, self.flexible(version)).end();
    }

    /// A reader of the response's body, after the header. ApiVersions keeps the old response header (KIP-511).
    pub fn response_body<'a>(&self, version: i16, frame: &'a [u8]) -> Result<(i32, FieldReader<'a>), FieldError> {
        let correlation_id = FieldReader::new(frame, false).i32()?;
        let mut body = FieldReader::new(frame, self.flexible(version));
        body.raw(4)?;
        if self.key != API_VERSIONS.key {
            body.end()?;
        }
        Ok((correlation_id, body))
    }
}

/// Write the size of a frame that has `beside` more bytes outside `out`.
pub fn finish_frame(out: &mut [u8], beside: usize) {
    let size = (out.len() - 4 + beside) as u32;
    out[..4].copy_from_slice(&size.to_be_bytes());
}
