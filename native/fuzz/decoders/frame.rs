//! Frames: the head of any request, and the two messages that the data plane reads itself.

use pybroker_wire::fetch::FetchRequest;
use pybroker_wire::frame::RequestHead;
use pybroker_wire::produce::ProduceRequest;

/// Decodes `bytes` as a frame of the API and version that its head names, and as Produce and Fetch of any version.
pub fn decode(bytes: &[u8]) {
    let Ok(head) = RequestHead::parse(bytes) else { return };
    assert!(head.body <= bytes.len());
    for version in 0..=13 {
        if let Ok(request) = ProduceRequest::parse(bytes, head.body, version) {
            for (_, records) in request.topics.iter().flat_map(|topic| &topic.partitions) {
                assert!(records.clone().is_none_or(|range| bytes.get(range).is_some()));
            }
        }
    }
    for version in 0..=18 {
        let _ = FetchRequest::parse(bytes, head.body, version);
    }
}
