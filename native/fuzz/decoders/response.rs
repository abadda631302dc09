//! Responses: what a client or a follower reads from a broker, in every version.

use pybroker_wire::api_versions::ApiVersionsResponse;
use pybroker_wire::fetch::FetchResponse;
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::init_producer_id::InitProducerIdResponse;
use pybroker_wire::list_offsets;
use pybroker_wire::metadata::MetadataResponse;
use pybroker_wire::produce::ProduceResponse;

/// Decodes `bytes` as a response of each message that native code reads.
pub fn decode(bytes: &[u8]) {
    for version in 0..=18 {
        if let Ok(response) = FetchResponse::parse(bytes, RESPONSE_BODY, version) {
            for received in &response.partitions {
                assert_eq!(bytes[received.records.clone()].len(), received.partition.records);
            }
        }
        let _ = ProduceResponse::parse(bytes, RESPONSE_BODY, version);
        let _ = MetadataResponse::parse(bytes, RESPONSE_BODY, version);
        let _ = list_offsets::parse_response(bytes, RESPONSE_BODY, version);
        let _ = InitProducerIdResponse::parse(bytes, RESPONSE_BODY, version);
        let _ = ApiVersionsResponse::parse(bytes, RESPONSE_BODY, version);
    }
}
