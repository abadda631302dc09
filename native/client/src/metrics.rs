//! A client's counters under the names of Kafka's client metrics (producer-metrics, consumer-fetch-manager-metrics).
//!
//! Owns the names and the computation of means. Rates are per second, sizes in bytes, times in milliseconds.

use std::time::Instant;

use crate::counters::{Counters, Peak, Total};
use crate::fetcher::Fetcher;
use crate::producer::Producer;

/// Names and values.
pub type Metrics = Vec<(&'static str, f64)>;

const US: f64 = 1e3;

fn connections(counters: &Counters, now: Instant) -> Metrics {
    let total = |total| counters.total(total) as f64;
    vec![
        ("connection-count", counters.connections() as f64),
        ("connection-creation-total", total(Total::ConnectionsMade)),
        ("connection-close-total", total(Total::ConnectionsEnded)),
        ("request-total", total(Total::Requests)),
        ("request-rate", counters.rate(Total::Requests, now)),
        ("response-total", total(Total::Responses)),
        ("response-rate", counters.rate(Total::Responses, now)),
        ("outgoing-byte-total", total(Total::BytesOut)),
        ("outgoing-byte-rate", counters.rate(Total::BytesOut, now)),
        ("incoming-byte-total", total(Total::BytesIn)),
        ("incoming-byte-rate", counters.rate(Total::BytesIn, now)),
        ("requests-in-flight", counters.in_flight() as f64),
        ("leader-changes-total", counters.leader_changes() as f64),
    ]
}

fn mean(sum: f64, count: f64) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}

impl Producer {
    /// The metrics of the producer.
    pub fn metrics(&self) -> Metrics {
        let accumulator = &self.shared.accumulator;
        let (counters, now) = (&*accumulator.counters, Instant::now());
        let total = |total| counters.total(total) as f64;
        let batches = total(Total::Batches);
        let mut metrics = connections(counters, now);
        metrics.extend([
            ("record-send-total", total(Total::Records)),
            ("record-send-rate", counters.rate(Total::Records, now)),
            ("record-error-total", total(Total::Errors)),
            ("record-error-rate", counters.rate(Total::Errors, now)),
            ("record-retry-total", total(Total::Retries)),
            ("record-retry-rate", counters.rate(Total::Retries, now)),
            ("byte-total", total(Total::RecordBytes)),
            ("byte-rate", counters.rate(Total::RecordBytes, now)),
            ("batch-size-avg", mean(total(Total::RecordBytes), batches)),
            ("batch-size-max", counters.peak(Peak::Batch) as f64),
            ("records-per-request-avg", mean(total(Total::Records), total(Total::HotResponses))),
            ("record-size-avg", mean(total(Total::RecordBytes), total(Total::Records))),
            ("record-queue-time-avg", mean(total(Total::QueuedUs) / US, total(Total::Sent))),
            ("record-queue-time-max", counters.peak(Peak::QueuedUs) as f64 / US),
            ("request-latency-avg", mean(total(Total::ResponseTimeUs) / US, total(Total::HotResponses))),
            ("request-latency-max", counters.peak(Peak::ResponseTimeUs) as f64 / US),
            ("acknowledgement-gap-max", counters.peak(Peak::GapUs) as f64 / US),
            ("buffer-total-bytes", self.shared.config.buffer_memory as f64),
            ("buffer-available-bytes", accumulator.available() as f64),
        ]);
        metrics
    }
}

impl Fetcher {
    /// The metrics of the fetcher, its lag included.
    pub fn metrics(&self) -> Metrics {
        let (counters, now) = (&*self.shared.counters, Instant::now());
        let total = |total| counters.total(total) as f64;
        let mut metrics = connections(counters, now);
        metrics.extend([
            ("records-consumed-total", total(Total::Records)),
            ("records-consumed-rate", counters.rate(Total::Records, now)),
            ("bytes-consumed-total", total(Total::RecordBytes)),
            ("bytes-consumed-rate", counters.rate(Total::RecordBytes, now)),
            ("records-per-request-avg", mean(total(Total::Records), total(Total::HotResponses))),
            ("fetch-total", total(Total::HotResponses)),
            ("fetch-rate", counters.rate(Total::HotResponses, now)),
            ("fetch-size-avg", mean(total(Total::ResponseBytes), total(Total::HotResponses))),
            ("fetch-size-max", counters.peak(Peak::ResponseBytes) as f64),
            ("fetch-latency-avg", mean(total(Total::ResponseTimeUs) / US, total(Total::HotResponses))),
            ("fetch-latency-max", counters.peak(Peak::ResponseTimeUs) as f64 / US),
            ("records-lag-max", self.shared.inbox.lock().most_behind() as f64),
        ]);
        metrics
    }
}
