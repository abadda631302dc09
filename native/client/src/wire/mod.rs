//! The requests of the client's hot and near-hot paths, encoded and decoded natively in every version that Kafka 4 serves
//! by topic name. Everything else a client asks goes through `pybroker.protocol`.

pub mod api_versions;
pub mod fetch;
pub mod fields;
pub mod header;
pub mod init_producer_id;
pub mod list_offsets;
pub mod metadata;
pub mod produce;
