//! Leaders and their endpoints in Produce and Fetch responses, with errors after which the client must use another
//! leader (KIP-951).

use super::primitives::{Malformed, Reader, Writer};
use pybroker_record::{BrokerId, LeaderEpoch};

/// The leader of a partition, and its leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderAndEpoch {
    pub id: BrokerId,
    pub epoch: LeaderEpoch,
}

impl LeaderAndEpoch {
    /// Writes the fields as the only field of a tagged section.
    pub(crate) fn write_tag(self, writer: &mut Writer<'_>, tag: u32) {
        writer.uvarint(1);
        writer.uvarint(tag);
        writer.uvarint(9);
        writer.i32(self.id.0);
        writer.i32(self.epoch.0);
        writer.uvarint(0);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { id: BrokerId(reader.i32()?), epoch: LeaderEpoch(reader.i32()?) })
    }
}

/// The endpoint of a broker for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerEndpoint {
    /// The broker's id.
    pub id: i32,
    /// The advertised host.
    pub host: String,
    /// The advertised port.
    pub port: u16,
    /// The broker's rack, if it has one.
    pub rack: Option<String>,
}

/// Writes the tagged section at the end of a response: the endpoints of the leaders in the response, if the version
/// has them.
pub(crate) fn write_endpoints(writer: &mut Writer<'_>, has_endpoints: bool, endpoints: &[&BrokerEndpoint]) {
    if !has_endpoints || endpoints.is_empty() {
        writer.tags_none();
        return;
    }
    let mut inner = Vec::new();
    let mut fields = Writer::new(&mut inner, true);
    fields.array_len(endpoints.len());
    for endpoint in endpoints {
        fields.i32(endpoint.id);
        fields.string(&endpoint.host);
        fields.i32(i32::from(endpoint.port));
        fields.nullable_string(endpoint.rack.as_deref());
        fields.tags_none();
    }
    writer.uvarint(1);
    writer.uvarint(0);
    writer.uvarint(inner.len() as u32);
    writer.raw(&inner);
}

/// Reads the tagged section at the end of a response.
pub(crate) fn read_endpoints(reader: &mut Reader<'_>) -> Result<Vec<BrokerEndpoint>, Malformed> {
    let mut endpoints = Vec::new();
    reader.each_tag(|tag, field| {
        if tag == 0 {
            for _ in 0..field.array_len()? {
                endpoints.push(read_endpoint(field)?);
            }
        }
        Ok(())
    })?;
    Ok(endpoints)
}

fn read_endpoint(reader: &mut Reader<'_>) -> Result<BrokerEndpoint, Malformed> {
    let (id, host, at) = (reader.i32()?, reader.string()?.to_owned(), reader.position());
    let port = reader.i32()?;
    let port = u16::try_from(port).map_err(|_| Malformed::Port { at, port })?;
    let rack = reader.nullable_string()?.map(str::to_owned);
    reader.tags()?;
    Ok(BrokerEndpoint { id, host, port, rack })
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::{BrokerEndpoint, BrokerId, LeaderAndEpoch, LeaderEpoch};
    use crate::primitives::{Malformed, Reader, Writer};

    /// Generates a leader, or none.
    pub fn leader() -> impl Strategy<Value = Option<LeaderAndEpoch>> {
        let both = (any::<i32>().prop_map(BrokerId), any::<i32>().prop_map(LeaderEpoch));
        prop::option::of(both.prop_map(|(id, epoch)| LeaderAndEpoch { id, epoch }))
    }

    /// Generates some brokers, or none if the version lacks the field.
    pub fn endpoints(has_endpoints: bool) -> impl Strategy<Value = Vec<BrokerEndpoint>> {
        let endpoint = (any::<i32>(), "[a-z.]{0,9}", any::<u16>(), prop::option::of("[a-z]{0,9}"));
        let endpoint = endpoint.prop_map(|(id, host, port, rack)| BrokerEndpoint { id, host, port, rack });
        prop::collection::vec(endpoint, if has_endpoints { 0..4 } else { 0..1 })
    }

    #[test]
    fn a_port_is_a_port() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, true);
        writer.i32(1);
        writer.string("h");
        writer.i32(65_536);
        let refused = super::read_endpoint(&mut Reader::new(&bytes, 0, true));
        assert_eq!(refused, Err(Malformed::Port { at: 6, port: 65_536 }));
    }
}
