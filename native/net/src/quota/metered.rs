//! One request of a client with a quota: its usage, and its throttle time.
//!
//! Source: Kafka's `ClientQuotaManager`, `ClientRequestQuotaManager` and `KafkaApis`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::entity::Entity;
use super::rate::{Rate, Window};

/// An entity's usage of one quota. Shared by all connections of the entity.
#[derive(Debug)]
pub struct Meter {
    /// The user or client that shares the quota.
    pub(super) entity: Entity,
    window: Window,
    rate: Mutex<Rate>,
    used_ms: AtomicU64,
    /// Usage since the entity is known: bytes, or nanoseconds of a thread. Never decreases.
    used: AtomicU64,
    /// Sum of the throttle times for this quota, in milliseconds.
    throttled_ms: AtomicU64,
}

/// A quota with its entity's usage.
#[derive(Clone, Debug)]
pub struct Limited {
    pub(super) per_second: f64,
    pub(super) meter: Arc<Meter>,
}

/// The quotas that apply to a client.
#[derive(Debug)]
pub struct ClientQuotas {
    pub(super) produce: Option<Limited>,
    pub(super) fetch: Option<Limited>,
    pub(super) request: Option<Limited>,
}

/// The throttle time of a response, and the end of the connection's mute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// `throttle_time_ms`; 0 for none.
    pub time_ms: i32,
    /// The end of the mute, on the data plane's clock in milliseconds.
    pub until_ms: u64,
}

/// A request with usage to record.
#[derive(Clone, Debug)]
pub struct Metered {
    quotas: Arc<ClientQuotas>,
    /// Bytes of the request, without its size prefix.
    bytes: usize,
    /// Since when the request is executed; `None` while it waits, or if its time is not limited.
    began: Option<Instant>,
    /// The execution time before that.
    spent: Duration,
}

impl Meter {
    pub(super) fn new(entity: Entity, window: Window, now_ms: u64) -> Self {
        Self {
            entity,
            window,
            rate: Mutex::new(Rate::default()),
            used_ms: AtomicU64::new(now_ms),
            used: AtomicU64::new(0),
            throttled_ms: AtomicU64::new(0),
        }
    }

    /// Bytes, or nanoseconds of a thread, since the entity is known.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Sum of the throttle times, in milliseconds.
    pub(super) fn throttled_ms(&self) -> u64 {
        self.throttled_ms.load(Ordering::Relaxed)
    }

    /// Whether the quotas of a client refer to it.
    pub(super) fn is_held(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    /// The time of the last usage, in milliseconds of the data plane's clock.
    pub(super) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    pub(super) fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.used_ms())
    }
}

impl Limited {
    /// Records the usage `value`.
    fn count(&self, value: f64, now_ms: u64) {
        self.meter.used_ms.store(now_ms, Ordering::Relaxed);
        self.meter.rate.lock().record(self.meter.window, value, now_ms);
    }

    /// Records the usage `value`, and returns the throttle time in milliseconds.
    fn count_and_wait(&self, value: f64, now_ms: u64) -> f64 {
        self.meter.used_ms.store(now_ms, Ordering::Relaxed);
        let mut rate = self.meter.rate.lock();
        rate.record(self.meter.window, value, now_ms);
        rate.throttle_ms(self.meter.window, self.per_second, now_ms)
    }
}

/// Adds to the usage for metrics; does nothing without a quota.
fn show(limited: Option<&Limited>, used: u64) {
    if let Some(limited) = limited {
        limited.meter.used.fetch_add(used, Ordering::Relaxed);
    }
}

/// As [`Limited::count_and_wait`]; 0 without a quota.
fn wait_ms(limited: Option<&Limited>, value: f64, now_ms: u64) -> f64 {
    limited.map_or(0.0, |limited| limited.count_and_wait(value, now_ms))
}

fn nanoseconds(spent: Duration) -> u64 {
    u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX)
}

/// Percent of one second of a thread.
fn percent(spent: Duration) -> f64 {
    spent.as_secs_f64() * 100.0
}

impl ClientQuotas {
    /// Whether there is a quota.
    pub(super) fn has_any(&self) -> bool {
        self.produce.is_some() || self.fetch.is_some() || self.request.is_some()
    }

    /// Whether there is a quota on request time.
    pub fn counts_time(&self) -> bool {
        self.request.is_some()
    }

    /// Records the time of a request, and returns the throttle time for it: at most one quota window.
    pub fn spend(&self, spent: Duration, now_ms: u64) -> Throttle {
        self.wait(None, 0.0, self.spend_ms(spent, now_ms), now_ms)
    }

    /// Records time without a throttle.
    pub fn spend_quietly(&self, spent: Duration, now_ms: u64) {
        if let Some(request) = &self.request {
            request.count(percent(spent), now_ms);
            show(Some(request), nanoseconds(spent));
        }
    }

    /// The longer of the throttle times for bytes and for time. Only its own quota counts it as throttled, as in Kafka.
    fn wait(&self, of_bytes: Option<&Limited>, for_bytes: f64, for_time: f64, now_ms: u64) -> Throttle {
        let throttle = Throttle::new(for_bytes.max(for_time), now_ms);
        let cause = if for_bytes > for_time { of_bytes } else { self.request.as_ref() };
        if throttle.time_ms > 0
            && let Some(cause) = cause
        {
            cause.meter.throttled_ms.fetch_add(throttle.time_ms.unsigned_abs().into(), Ordering::Relaxed);
        }
        throttle
    }

    fn spend_ms(&self, spent: Duration, now_ms: u64) -> f64 {
        let Some(request) = &self.request else { return 0.0 };
        show(Some(request), nanoseconds(spent));
        // Kafka's `maxThrottleTimeMs`, which applies to this quota alone.
        request.count_and_wait(percent(spent), now_ms).min(request.meter.window.sample_ms as f64)
    }
}

impl Throttle {
    fn new(wait_ms: f64, now_ms: u64) -> Self {
        // A conversion from floating point saturates.
        let time_ms = wait_ms as i32;
        Self { time_ms, until_ms: if time_ms > 0 { now_ms + time_ms as u64 } else { 0 } }
    }
}

impl Metered {
    /// A request of `bytes` whose execution begins.
    pub fn begin(quotas: &Arc<ClientQuotas>, bytes: usize) -> Self {
        let began = quotas.counts_time().then(Instant::now);
        Self { quotas: Arc::clone(quotas), bytes, began, spent: Duration::ZERO }
    }

    /// Since when the request is executed, if its time is limited.
    pub fn began(&self) -> Option<Instant> {
        self.began
    }

    /// Records that the request begins to wait.
    pub fn pause(mut self) -> Self {
        self.spent = self.spent();
        self.began = None;
        self
    }

    /// Records that the execution of the request continues.
    pub fn resume(&mut self) {
        self.began = self.quotas.counts_time().then(Instant::now);
    }

    fn spent(&self) -> Duration {
        self.spent + self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Records the usage of a completed Produce. Without a response its time causes no throttle, as in Kafka.
    pub fn produced(&self, is_completed: bool, now_ms: u64) -> Throttle {
        let of_bytes = self.quotas.produce.as_ref();
        let for_bytes = wait_ms(of_bytes, self.bytes as f64, now_ms);
        show(of_bytes, self.bytes as u64);
        let for_time = if is_completed { self.quotas.spend_ms(self.spent(), now_ms) } else { 0.0 };
        self.quotas.wait(of_bytes, for_bytes, for_time, now_ms)
    }

    /// Records the usage of a Fetch whose response has `bytes`. A throttled client gets none of them, and they are not
    /// counted.
    pub fn fetched(&self, bytes: usize, now_ms: u64) -> Throttle {
        let for_time = self.quotas.spend_ms(self.spent(), now_ms);
        let of_bytes = self.quotas.fetch.as_ref();
        let for_bytes = wait_ms(of_bytes, bytes as f64, now_ms);
        let throttle = self.quotas.wait(of_bytes, for_bytes, for_time, now_ms);
        if throttle.time_ms == 0 {
            show(of_bytes, bytes as u64);
        } else if let Some(fetch) = of_bytes {
            fetch.count(-(bytes as f64), now_ms);
        }
        throttle
    }

    /// The largest response to a Fetch: the bytes allowed in a window without earlier usage. A larger response could never
    /// be sent.
    pub fn max_fetched_bytes(&self) -> usize {
        self.quotas.fetch.as_ref().map_or(usize::MAX, |fetch| {
            let Window { samples, sample_ms } = fetch.meter.window;
            let seconds = samples.saturating_sub(1) as f64 * sample_ms as f64 / 1000.0;
            (fetch.per_second * seconds) as usize
        })
    }
}
