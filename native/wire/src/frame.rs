//! The head of a request: what every frame begins with, whatever API it is of.
//!
//! `api_key: i16, api_version: i16, correlation_id: i32, client_id: nullable string`, the same in header versions 1 and
//! 2; version 2 follows it with tagged fields, which are left to the code that reads the message. Source:
//! Kafka's `RequestHeader` schema.

use super::ApiKey;

/// The fixed part: key, version, correlation id, length of the client id.
const FIXED: usize = 10;

/// A request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Which API.
    pub api_key: ApiKey,
    /// Which version of it.
    pub api_version: i16,
    /// The number that the answer carries again.
    pub correlation_id: i32,
    /// Bytes of what the client calls itself, in front of `body`.
    client_id: Option<usize>,
    /// Where the rest begins: tagged fields for flexible versions, else the message.
    pub body: usize,
}

/// Why a frame is not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHead {
    /// Too short for a head.
    #[error("a frame of {0} bytes is too short for a request header")]
    Short(usize),
    /// The client id runs over the frame's end, or is negative.
    #[error("a request header with a client id of {length} bytes in a frame of {frame}")]
    ClientId {
        /// The length that the frame names.
        length: i16,
        /// The frame's size.
        frame: usize,
    },
    /// The client id is not UTF-8.
    #[error("a request header with a client id that is not UTF-8")]
    NotUtf8,
}

impl RequestHead {
    /// Reads the head of `frame`, which has no size prefix.
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

    /// What the client calls itself in the frame that this is the head of.
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
    fn a_client_id_may_be_absent_but_not_longer_than_the_frame() {
        let frame = [0, 3, 0, 1, 0, 0, 0, 7, 0xff, 0xff];
        let head = RequestHead::parse(&frame).unwrap();
        assert_eq!((head.client_id(&frame), head.body), (None, 10));
        let long = RequestHead::parse(&[0, 3, 0, 1, 0, 0, 0, 7, 0, 5, b'x']);
        assert_eq!(long, Err(BadHead::ClientId { length: 5, frame: 11 }));
        assert_eq!(RequestHead::parse(&[0; 9]), Err(BadHead::Short(9)));
    }
}
