//! The responses to ApiVersions, as the control plane last published them.
//!
//! Every connection begins with this request, and the response is the same for all clients. A response from this table does
//! not wait for the control plane's event loop. The control plane decides the response of each version. An unusual request
//! is sent to the control plane. Must not know the content of the responses.

use std::collections::HashMap;

/// First version whose requests carry tagged fields and the client's software.
const FLEXIBLE_VERSION: i16 = 3;
/// Lengths of a compact string up to this take one byte of the varint. Requests with longer names are sent to the control
/// plane.
const SHORT: u8 = 0x7f;

/// Responses by version: the bytes after the correlation id.
#[derive(Debug, Default)]
pub struct ApiVersionsTable {
    responses: HashMap<i16, Vec<u8>>,
}

impl ApiVersionsTable {
    /// A table of these responses, by version.
    pub fn new(responses: HashMap<i16, Vec<u8>>) -> Self {
        Self { responses }
    }

    /// The response to a request of `version` with `body` after the client id; `None` if the control plane has to respond.
    pub fn respond(&self, version: i16, body: &[u8]) -> Option<&[u8]> {
        let response = self.responses.get(&version)?;
        let plain = if version < FLEXIBLE_VERSION { body.is_empty() } else { is_plain(body) };
        plain.then_some(response.as_slice())
    }
}

/// The client's software name and version (KIP-511).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Software {
    pub name: Box<str>,
    pub version: Box<str>,
}

impl Software {
    /// The software in a request of `version` with `body` after the client id; `None` if the request has none, or is
    /// unusual. At most 126 bytes each.
    pub fn of_request(version: i16, body: &[u8]) -> Option<Self> {
        let (name, version) = (version >= FLEXIBLE_VERSION).then(|| plain(body))??;
        let text = |bytes| std::str::from_utf8(bytes).ok().map(Box::from);
        Some(Self { name: text(name)?, version: text(version)? })
    }
}

/// Whether a flexible request has no tagged fields, and software names in KIP-511's form.
fn is_plain(body: &[u8]) -> bool {
    plain(body).is_some()
}

/// The software name and version of a request without tagged fields; `None` if one is not in KIP-511's form.
fn plain(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (0, rest) = body.split_first().map(|(tags, rest)| (*tags, rest))? else { return None };
    let (name, rest) = short_string(rest)?;
    let (version, rest) = short_string(rest)?;
    (rest == [0] && is_software(name) && is_software(version)).then_some((name, version))
}

fn short_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first().filter(|(length, _)| (1..=SHORT).contains(length))?;
    rest.split_at_checked(usize::from(*length) - 1)
}

/// KIP-511: `[a-zA-Z0-9](?:[a-zA-Z0-9\\-.]*[a-zA-Z0-9])?`.
fn is_software(text: &[u8]) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    ends(text.first()) && ends(text.last()) && text.iter().all(|it| it.is_ascii_alphanumeric() || b"-.".contains(it))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The client is not authenticated: whatever the body, the table or the control plane responds.
        #[test]
        fn a_body_of_any_bytes_is_usual_or_not(version in 0_i16..5, body in prop::collection::vec(any::<u8>(), 0..40)) {
            let expected = table().respond(version, &body).map(<[u8]>::to_vec);
            prop_assert!(expected.is_none() || (version == 0 && body.is_empty()) || (version == 3 && body.last() == Some(&0)));
        }
    }

    fn table() -> ApiVersionsTable {
        ApiVersionsTable::new(HashMap::from([(0, vec![1]), (3, vec![2])]))
    }

    fn flexible(name: &[u8], version: &[u8]) -> Vec<u8> {
        let mut body = vec![0, name.len() as u8 + 1];
        body.extend_from_slice(name);
        body.push(version.len() as u8 + 1);
        body.extend_from_slice(version);
        body.push(0);
        body
    }

    #[test]
    fn usual_requests_are_answered_by_version() {
        assert_eq!(table().respond(0, b""), Some(&[1_u8][..]));
        assert_eq!(table().respond(3, &flexible(b"librdkafka", b"2.16.0-1")), Some(&[2_u8][..]));
        assert_eq!(table().respond(1, b""), None);
        assert_eq!(ApiVersionsTable::default().respond(0, b""), None);
    }

    #[test]
    fn what_a_client_says_that_it_is_is_read_from_usual_requests() {
        let reported = Software { name: "librdkafka".into(), version: "2.16.0-1".into() };
        assert_eq!(Software::of_request(3, &flexible(b"librdkafka", b"2.16.0-1")), Some(reported));
        assert_eq!(Software::of_request(0, b""), None);
        assert_eq!(Software::of_request(3, &flexible(b"-a", b"1")), None);
    }

    #[test]
    fn unusual_ones_are_not() {
        let wrong = [&b""[..], b"-a", b"a-", b"a b", "\u{e9}".as_bytes()];
        for text in wrong {
            assert_eq!(table().respond(3, &flexible(text, b"1")), None, "{text:?}");
            assert_eq!(table().respond(3, &flexible(b"a", text)), None, "{text:?}");
        }
        let whole = flexible(b"a", b"1");
        for end in 0..whole.len() {
            assert_eq!(table().respond(3, &whole[..end]), None);
        }
        let mut tagged = whole.clone();
        *tagged.last_mut().unwrap() = 1;
        tagged.extend([9, 0]);
        assert_eq!(table().respond(3, &tagged), None);
        assert_eq!(table().respond(0, b"x"), None);
    }
}
