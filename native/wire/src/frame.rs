//! The common start of all frames: the header of a request, and the correlation id of a response.
//!
//! `api_key: i16, api_version: i16, correlation_id: i32, client_id: nullable string`, the same in header versions 1
//! and 2. In version 2 tagged fields follow, which the message's parser reads. Source: Kafka's `RequestHeader`
//! schema.

use super::ApiKey;
use super::primitives::Writer;

/// Size of the fixed part: key, version, correlation id, length of the client id.
const FIXED: usize = 10;

/// Position after the correlation id of a response.
pub const RESPONSE_BODY: usize = 4;
/// Size of the length prefix of a frame.
const SIZE: usize = 4;

/// The header of a request to send.
#[derive(Clone, Copy, Debug)]
pub struct NewRequest<'a> {
    pub api_key: ApiKey,
    pub api_version: i16,
    /// The number that the response repeats.
    pub correlation_id: i32,
    pub client_id: &'a str,
}

impl NewRequest<'_> {
    /// Starts a request in the empty buffer `out`: space for the length prefix, then the header. The caller appends
    /// the message, and calls [`finish_request`].
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; SIZE]);
        // The client id has a 16-bit length in every version of the header.
        let mut writer = Writer::new(out, false);
        writer.i16(self.api_key.0);
        writer.i16(self.api_version);
        writer.i32(self.correlation_id);
        writer.string(self.client_id);
    }
}

/// Writes the length prefix of a request that [`NewRequest::begin`] started. `beside` is the number of message bytes
/// that are not in `out`.
pub fn finish_request(out: &mut [u8], beside: usize) {
    let size = (out.len() - SIZE + beside) as u32;
    out[..SIZE].copy_from_slice(&size.to_be_bytes());
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The key of the requested API.
    pub api_key: ApiKey,
    /// The requested version of the API.
    pub api_version: i16,
    /// The number that the response repeats.
    pub correlation_id: i32,
    /// Length of the client id, which ends at `body`; `None` for null.
    client_id: Option<usize>,
    /// Position after the client id: tagged fields for flexible versions, else the message.
    pub body: usize,
}

/// Why a frame is not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHead {
    /// Too short for a header.
    #[error("a frame of {0} bytes is too short for a request header")]
    Short(usize),
    /// The length of the client id is negative or exceeds the frame.
    #[error("a request header with a client id of {length} bytes in a frame of {frame}")]
    ClientId {
        /// The length in the frame.
        length: i16,
        /// The frame's size.
        frame: usize,
    },
    /// The client id is not UTF-8.
    #[error("a request header with a client id that is not UTF-8")]
    NotUtf8,
}

impl RequestHead {
    /// Parses the header of `frame`, which has no length prefix.
    pub fn parse(frame: &[u8]) -> Result<Self, BadHead> {
        let fixed: &[u8; FIXED] = frame.first_chunk().ok_or(BadHead::Short(frame.len()))?;
        let &[k0, k1, v0, v1, c0, c1, c2, c3, l0, l1] = fixed;
        let length = i16::from_be_bytes([l0, l1]);
        let (client_id, body) = match usize::try_from(length) {
            Ok(bytes) => {
                let text = frame.get(FIXED..FIXED + bytes).ok_or(BadHead::ClientId { length, frame: frame.len() })?;
                std::str::from_utf8(text).map_err(|_| BadHead::NotUtf8)?;
                (Some(bytes), FIXED + bytes)
            }
            Err(_) if length == -1 => (None, FIXED),
            Err(_) => return Err(BadHead::ClientId { length, frame: frame.len() }),
        };
        Ok(Self {
            api_key: ApiKey(i16::from_be_bytes([k0, k1])),
            api_version: i16::from_be_bytes([v0, v1]),
            correlation_id: i32::from_be_bytes([c0, c1, c2, c3]),
            client_id,
            body,
        })
    }

    /// Returns the header of a request that has no header of its own: the frame contains only the message.
    pub const fn without_client(api_key: ApiKey, api_version: i16) -> Self {
        Self { api_key, api_version, correlation_id: 0, client_id: None, body: 0 }
    }

    /// Returns the client id in the frame of this header.
    pub fn client_id<'a>(&self, frame: &'a [u8]) -> Option<&'a str> {
        let text = frame.get(self.body - self.client_id?..self.body)?;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_names_api_version_correlation_and_client() {
        let frame = [0, 18, 0, 3, 0, 0, 0, 7, 0, 2, b'm', b'e', 0xff];
        let head = RequestHead::parse(&frame).unwrap();
        assert_eq!((head.api_key.0, head.api_version, head.correlation_id, head.body), (18, 3, 7, 12));
        assert_eq!(head.client_id(&frame), Some("me"));
    }

    #[test]
    fn the_head_of_a_request_is_read_as_it_was_written() {
        let mut out = Vec::new();
        let (api_key, client_id) = (ApiKey::FETCH, "me");
        NewRequest { api_key, api_version: 12, correlation_id: -7, client_id }.begin(&mut out);
        finish_request(&mut out, 5);
        assert_eq!(out[..SIZE], [0, 0, 0, 17]);
        let head = RequestHead::parse(&out[SIZE..]).unwrap();
        assert_eq!((head.api_key, head.api_version, head.correlation_id), (api_key, 12, -7));
        assert_eq!((head.client_id(&out[SIZE..]), head.body), (Some(client_id), out.len() - SIZE));
    }

    #[test]
    fn a_client_id_may_be_absent_but_not_longer_than_the_frame() {
        let frame = [0, 3, 0, 1, 0, 0, 0, 7, 0xff, 0xff];
        let head = RequestHead::parse(&frame).unwrap();
        assert_eq!((head.client_id(&frame), head.body), (None, 10));
        let long = RequestHead::parse(&[0, 3, 0, 1, 0, 0, 0, 7, 0, 5, b'x']);
        assert_eq!(long, Err(BadHead::ClientId { length: 5, frame: 11 }));
        assert_eq!(RequestHead::parse(&[0; 9]), Err(BadHead::Short(9)));
    }
}
