//! The settings of a producer and of a fetcher, complete: the defaults are in `pybroker.client.settings`.

#![allow(missing_docs, reason = "the fields are Kafka's configuration keys, described there")]

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::error::ClientError;
use crate::producer::partitioner::Partitioner;
use crate::sasl::Credentials;
use crate::tls::Tls;
use pybroker_record::Compression;

/// The connection settings of a cluster. Field names are Kafka's keys.
#[derive(Debug, Clone)]
pub struct ConnectionConfig {
    /// `host:port`, at least one.
    pub bootstrap_servers: Vec<String>,
    pub client_id: String,
    pub request_timeout: Duration,
    pub connection_setup_timeout: Duration,
    pub connection_setup_timeout_max: Duration,
    pub metadata_max_age: Duration,
    /// `metadata.recovery.strategy=rebootstrap`: if no known broker responds, connect to the bootstrap servers again.
    pub rebootstraps: bool,
    /// `metadata.recovery.rebootstrap.trigger.ms`.
    pub rebootstrap_trigger: Duration,
    pub allow_auto_create_topics: bool,
    pub reconnect_backoff: Duration,
    pub reconnect_backoff_max: Duration,
    pub retry_backoff: Duration,
    pub retry_backoff_max: Duration,
    /// `SO_SNDBUF`; `None` keeps the system's default.
    pub send_buffer_bytes: Option<usize>,
    /// `SO_RCVBUF`; `None` keeps the system's default.
    pub receive_buffer_bytes: Option<usize>,
    pub metrics_sample_window: Duration,
    pub metrics_num_samples: usize,
    /// `security.protocol` SSL or SASL_SSL.
    pub tls: Option<Tls>,
    /// `security.protocol` SASL_PLAINTEXT or SASL_SSL.
    pub credentials: Option<Credentials>,
}

impl ConnectionConfig {
    /// The back-off before the `failures`-th retry: doubles each time, up to the maximum.
    pub fn backoff(&self, failures: u32) -> Duration {
        doubled(self.retry_backoff, failures.saturating_sub(1), self.retry_backoff_max)
    }
}

/// A time that doubles with each failure, up to `longest`.
pub fn doubled(first: Duration, failures: u32, longest: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(failures.min(16))).min(longest)
}

/// A producer's settings.
#[derive(Debug, Clone)]
pub struct ProducerConfig {
    pub connection: ConnectionConfig,
    /// 0, 1 or -1 (all).
    pub acks: i16,
    pub batch_size: usize,
    pub linger: Duration,
    pub buffer_memory: usize,
    pub max_block: Duration,
    pub delivery_timeout: Duration,
    pub max_request_size: usize,
    pub max_in_flight: usize,
    /// The most retries of a batch.
    pub retries: u32,
    pub enable_idempotence: bool,
    pub compression: Compression,
    pub compression_level: Option<i32>,
    /// The partitioner of records without a partition.
    pub partitioner: Partitioner,
    /// Another producer's identity and sequence numbers to continue; `None` requests a new identity.
    pub continues: Option<Continuation>,
    /// Records are sent in transactions, which the control plane begins and ends.
    pub transactional_id: Option<String>,
}

/// A producer id and epoch and, by topic and partition, the sequence number of the next record (0 for others).
///
/// A producer that continues it keeps this identity. The broker accepts each sequence number once: of all producers that
/// continue the same one, at most one appends records. The first batch that fails ends the producer.
#[derive(Debug, Clone)]
pub struct Continuation {
    pub producer_id: i64,
    pub epoch: i16,
    pub sequences: FxHashMap<(String, i32), i32>,
}

impl ProducerConfig {
    /// Reject combinations that Kafka's producer rejects; the error names the setting.
    pub fn check(&self) -> Result<(), ClientError> {
        if !matches!(self.acks, -1..=1) {
            return Err(ClientError::BadSetting {
                setting: "acks",
                value: self.acks.to_string(),
                detail: "must be 0, 1 or all (-1)",
            });
        }
        if self.enable_idempotence && self.acks != -1 {
            let value = self.acks.to_string();
            return Err(ClientError::BadSetting {
                setting: "acks",
                value,
                detail: "must be all with enable.idempotence=true",
            });
        }
        if self.max_in_flight == 0 || (self.enable_idempotence && self.max_in_flight > 5) {
            return Err(ClientError::BadSetting {
                setting: "max.in.flight.requests.per.connection",
                value: self.max_in_flight.to_string(),
                detail: "must be 1 to 5 with enable.idempotence=true, at least 1 without",
            });
        }
        if let Some(id) = &self.transactional_id
            && (!self.enable_idempotence || self.continues.is_some())
        {
            return Err(ClientError::BadSetting {
                setting: "transactional.id",
                value: id.clone(),
                detail: "takes enable.idempotence=true, and no producer that goes on from another's identity",
            });
        }
        if self.continues.is_some() && !self.enable_idempotence {
            return Err(ClientError::BadSetting {
                setting: "enable.idempotence",
                value: "false".to_owned(),
                detail: "must be true for a producer that goes on from another's identity",
            });
        }
        if self.delivery_timeout < self.linger + self.connection.request_timeout {
            return Err(ClientError::BadSetting {
                setting: "delivery.timeout.ms",
                value: self.delivery_timeout.as_millis().to_string(),
                detail: "must be at least linger.ms + request.timeout.ms",
            });
        }
        self.connection.check()
    }
}

impl ConnectionConfig {
    /// Reject an empty server list.
    pub fn check(&self) -> Result<(), ClientError> {
        if self.bootstrap_servers.is_empty() {
            let value = String::new();
            return Err(ClientError::BadSetting {
                setting: "bootstrap.servers",
                value,
                detail: "must name at least one host:port",
            });
        }
        Ok(())
    }
}

/// Where reading starts without an offset, or after an offset out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    Earliest,
    Latest,
    /// At the first record that is newer than this age.
    Before(Duration),
    /// Out of range is an error.
    None,
}

/// A fetcher's settings.
#[derive(Debug, Clone)]
pub struct FetcherConfig {
    pub connection: ConnectionConfig,
    pub fetch_min_bytes: i32,
    pub fetch_max_bytes: i32,
    pub max_partition_fetch_bytes: i32,
    pub fetch_max_wait: Duration,
    pub check_crcs: bool,
    /// `client.rack` (KIP-392); empty for none.
    pub client_rack: String,
    /// `read_committed`: hide records of aborted transactions (the broker ends the records at the last stable offset).
    pub read_committed: bool,
    pub auto_offset_reset: OffsetReset,
    /// Stop reading a partition whose leader epoch has increased, and report it ([`ClientError::NewLeader`]): the records
    /// read may have been truncated, and the caller checks that (KIP-320). If false, each Fetch contains the epoch of the
    /// last record, and the broker returns where the logs diverge (KIP-595).
    pub stops_at_new_leader: bool,
    /// The most responses that may wait for the caller while the next Fetch is in flight.
    pub queued_responses: usize,
    /// Limit on the size of one decompressed batch.
    pub max_decompressed_bytes: usize,
}
