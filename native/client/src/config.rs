//! The settings of a producer and of a fetcher, complete: defaults live in `pybroker.client.settings`.

#![allow(missing_docs, reason = "the fields are Kafka's configuration keys, described there")]

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::error::ClientError;
use crate::producer::partitioner::Partitioner;
use crate::sasl::Credentials;
use crate::tls::Tls;
use pybroker_record::Compression;

/// What every connection to a cluster needs. Field names are Kafka's keys.
#[derive(Debug, Clone)]
pub struct ConnectionConfig {
    /// `host:port`, at least one.
    pub bootstrap_servers: Vec<String>,
    pub client_id: String,
    pub request_timeout: Duration,
    pub connection_setup_timeout: Duration,
    pub connection_setup_timeout_max: Duration,
    pub metadata_max_age: Duration,
    /// `metadata.recovery.strategy=rebootstrap`: where no known broker answers, the bootstrap servers are asked again.
    pub rebootstraps: bool,
    /// `metadata.recovery.rebootstrap.trigger.ms`.
    pub rebootstrap_trigger: Duration,
    pub allow_auto_create_topics: bool,
    pub reconnect_backoff: Duration,
    pub reconnect_backoff_max: Duration,
    pub retry_backoff: Duration,
    pub retry_backoff_max: Duration,
    /// `SO_SNDBUF`; `None` leaves the system's.
    pub send_buffer_bytes: Option<usize>,
    /// `SO_RCVBUF`; `None` leaves the system's.
    pub receive_buffer_bytes: Option<usize>,
    pub metrics_sample_window: Duration,
    pub metrics_num_samples: usize,
    /// `security.protocol` SSL or SASL_SSL.
    pub tls: Option<Tls>,
    /// `security.protocol` SASL_PLAINTEXT or SASL_SSL.
    pub credentials: Option<Credentials>,
}

impl ConnectionConfig {
    /// The rest before the `failures`-th repetition: twice as long each time, up to the longest.
    pub fn backoff(&self, failures: u32) -> Duration {
        doubled(self.retry_backoff, failures.saturating_sub(1), self.retry_backoff_max)
    }
}

/// A time that doubles with each failure, up to the longest.
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
    /// How often a batch is sent again.
    pub retries: u32,
    pub enable_idempotence: bool,
    pub compression: Compression,
    pub compression_level: Option<i32>,
    /// Where records go that name no partition.
    pub partitioner: Partitioner,
    /// Another producer's place to go on from; `None` asks the broker for a new identity.
    pub continues: Option<Continuation>,
    /// Records are sent in transactions, which the control plane begins and ends.
    pub transactional_id: Option<String>,
}

/// A producer's identity and, by topic and partition, the sequence number of its next record (0 where none is named).
///
/// A producer that goes on from it keeps the identity: the broker takes each sequence number once, so that of all that
/// go on from the same place, records of one at most follow there. The first batch that fails ends the producer.
#[derive(Debug, Clone)]
pub struct Continuation {
    pub producer_id: i64,
    pub epoch: i16,
    pub sequences: FxHashMap<(String, i32), i32>,
}

impl ProducerConfig {
    /// Refuse combinations that Kafka's producer refuses, naming the setting.
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
    /// Refuse an empty server list.
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

/// Where reading starts when there is no offset, or when the offset is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    Earliest,
    Latest,
    /// At the first record that is younger than this.
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
    /// `read_committed` hides records of aborted transactions (the broker ends at the last stable offset).
    pub read_committed: bool,
    pub auto_offset_reset: OffsetReset,
    /// A partition whose leader epoch has risen is not read on, but reported ([`ClientError::NewLeader`]): what was
    /// read may have been cut, and the caller looks that up (KIP-320). Else each Fetch names the epoch of the last record,
    /// and the broker answers where the logs part (KIP-595).
    pub stops_at_new_leader: bool,
    /// Received responses that may wait for the caller while the next Fetch is under way.
    pub queued_responses: usize,
    /// Bound of one decompressed batch.
    pub max_decompressed_bytes: usize,
}
