//! One request of a client that has a quota: what of it counts, and how long its client is to wait.
//!
//! Source: Kafka's `ClientQuotaManager`, `ClientRequestQuotaManager` and `KafkaApis`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::entity::Entity;
use super::rate::{Rate, Window};

/// What an entity has used of one quota. Shared by all connections that it binds.
#[derive(Debug)]
pub struct Meter {
    /// Whose it is.
    pub(super) entity: Entity,
    window: Window,
    rate: Mutex<Rate>,
    used_ms: AtomicU64,
    /// What was used since the entity is known: bytes, or nanoseconds of a thread. It never falls.
    used: AtomicU64,
    /// How long clients were to wait for this quota, in milliseconds.
    throttled_ms: AtomicU64,
}

/// A quota, and what has been used of it.
#[derive(Clone, Debug)]
pub struct Limited {
    pub(super) per_second: f64,
    pub(super) meter: Arc<Meter>,
}

/// The quotas that bind a client.
#[derive(Debug)]
pub struct ClientQuotas {
    pub(super) produce: Option<Limited>,
    pub(super) fetch: Option<Limited>,
    pub(super) request: Option<Limited>,
}

/// How long a client is to wait, as its answer says it, and until when nothing is read from its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// `throttle_time_ms`; 0: it need not wait.
    pub time_ms: i32,
    /// On the data plane's clock, in milliseconds.
    pub until_ms: u64,
}

/// A request of which something counts.
#[derive(Clone, Debug)]
pub struct Metered {
    quotas: Arc<ClientQuotas>,
    /// Bytes of the request, its size prefix left out.
    bytes: usize,
    /// Since when it is worked on; `None` while it waits, and where its time is not limited.
    began: Option<Instant>,
    /// How long it has been worked on before.
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

    /// Milliseconds that clients were to wait.
    pub(super) fn throttled_ms(&self) -> u64 {
        self.throttled_ms.load(Ordering::Relaxed)
    }

    /// Whether a client's quotas have it.
    pub(super) fn is_held(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    /// When something last counted, in milliseconds of the data plane's clock.
    pub(super) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    pub(super) fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.used_ms())
    }
}

impl Limited {
    /// Counts `value`.
    fn count(&self, value: f64, now_ms: u64) {
        self.meter.used_ms.store(now_ms, Ordering::Relaxed);
        self.meter.rate.lock().record(self.meter.window, value, now_ms);
    }

    /// Counts `value`, and says how many milliseconds are to be waited.
    fn count_and_wait(&self, value: f64, now_ms: u64) -> f64 {
        self.meter.used_ms.store(now_ms, Ordering::Relaxed);
        let mut rate = self.meter.rate.lock();
        rate.record(self.meter.window, value, now_ms);
        rate.throttle_ms(self.meter.window, self.per_second, now_ms)
    }
}

/// Adds to what is shown of a quota; who has none has nothing to show.
fn show(limited: Option<&Limited>, used: u64) {
    if let Some(limited) = limited {
        limited.meter.used.fetch_add(used, Ordering::Relaxed);
    }
}

/// As [`Limited::count_and_wait`]; who is not limited does not wait.
fn wait_ms(limited: Option<&Limited>, value: f64, now_ms: u64) -> f64 {
    limited.map_or(0.0, |limited| limited.count_and_wait(value, now_ms))
}

fn nanoseconds(spent: Duration) -> u64 {
    u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX)
}

/// Percent of a thread's second.
fn percent(spent: Duration) -> f64 {
    spent.as_secs_f64() * 100.0
}

impl ClientQuotas {
    /// Whether there is one.
    pub(super) fn has_any(&self) -> bool {
        self.produce.is_some() || self.fetch.is_some() || self.request.is_some()
    }

    /// Whether the time that requests take counts.
    pub fn counts_time(&self) -> bool {
        self.request.is_some()
    }

    /// Counts the time that a request took, and says how long its client is to wait for that: a quota's window at most.
    pub fn spend(&self, spent: Duration, now_ms: u64) -> Throttle {
        self.wait(None, 0.0, self.spend_ms(spent, now_ms), now_ms)
    }

    /// Counts time for which nobody waits.
    pub fn spend_quietly(&self, spent: Duration, now_ms: u64) {
        if let Some(request) = &self.request {
            request.count(percent(spent), now_ms);
            show(Some(request), nanoseconds(spent));
        }
    }

    /// The longer of two waits, for bytes and for time, which counts as one for that quota alone, as in Kafka.
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
        // Kafka's `maxThrottleTimeMs` of this quota alone.
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
    /// A request of `bytes` that is worked on from now on.
    pub fn begin(quotas: &Arc<ClientQuotas>, bytes: usize) -> Self {
        let began = quotas.counts_time().then(Instant::now);
        Self { quotas: Arc::clone(quotas), bytes, began, spent: Duration::ZERO }
    }

    /// Since when it is worked on, where that counts.
    pub fn began(&self) -> Option<Instant> {
        self.began
    }

    /// The request waits from now on.
    pub fn pause(mut self) -> Self {
        self.spent = self.spent();
        self.began = None;
        self
    }

    /// The request is worked on again.
    pub fn resume(&mut self) {
        self.began = self.quotas.counts_time().then(Instant::now);
    }

    fn spent(&self) -> Duration {
        self.spent + self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Counts a Produce that is done. Without an answer its time does not make the client wait, as in Kafka.
    pub fn produced(&self, is_answered: bool, now_ms: u64) -> Throttle {
        let of_bytes = self.quotas.produce.as_ref();
        let for_bytes = wait_ms(of_bytes, self.bytes as f64, now_ms);
        show(of_bytes, self.bytes as u64);
        let for_time = if is_answered { self.quotas.spend_ms(self.spent(), now_ms) } else { 0.0 };
        self.quotas.wait(of_bytes, for_bytes, for_time, now_ms)
    }

    /// Counts a Fetch whose answer has `bytes`. Where the client is to wait it gets none of them, and they do not count.
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

    /// The most that a Fetch is answered with: what may be received in a window where nothing was before. A larger answer
    /// would never be sent.
    pub fn max_fetched_bytes(&self) -> usize {
        self.quotas.fetch.as_ref().map_or(usize::MAX, |fetch| {
            let Window { samples, sample_ms } = fetch.meter.window;
            let seconds = samples.saturating_sub(1) as f64 * sample_ms as f64 / 1000.0;
            (fetch.per_second * seconds) as usize
        })
    }
}
