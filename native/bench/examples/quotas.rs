//! What a request pays for client quotas: `quotas THREADS` prints one line of JSON, in nanoseconds a request.
//!
//! Timed are the look at who the client is, where nobody has a quota and where others have one, a Produce and a Fetch that
//! count for one, and Produces that threads count for one at the same time.

use std::env::args;
use std::hint::black_box;
use std::time::Instant;

use pybroker_net::{ClientLimits, Identity, Metering, QuotaLimit, QuotaSettings, Quotas, Window};

const REQUESTS: u64 = 5_000_000;
const CLIENT_ID: &str = "producer-of-many-records";

/// A connection of a client that is bound by `limits`.
fn connection(quotas: &Quotas, limits: &ClientLimits) -> Metering {
    let (mut metering, identity) =
        (Metering::default(), Identity { kind: "User".into(), name: "alice".to_owned().into() });
    if !metering.knows(quotas, &identity, CLIENT_ID, 0) {
        metering.reported(quotas, quotas.version(), limits, 0);
    }
    metering
}

/// Nanoseconds of a request, of so many that `work` does; it gets the time in milliseconds, of 100 requests each.
fn timed(mut work: impl FnMut(u64)) -> f64 {
    let begun = Instant::now();
    for at in 0..REQUESTS {
        work(at / 100);
    }
    begun.elapsed().as_nanos() as f64 / REQUESTS as f64
}

fn main() {
    let threads: u64 = args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(3);
    let settings = QuotaSettings {
        window: Window { samples: 11, sample_ms: 1000 },
        remembered: 1000,
        forgotten_after_ms: 3_600_000,
    };
    let new = |version| {
        let quotas = Quotas::new(settings);
        quotas.set_version(version);
        quotas
    };
    let looked = |quotas: &Quotas, metering: &Metering| {
        black_box(metering.is_client(black_box(quotas).version(), black_box(CLIENT_ID)));
        black_box(metering.begin(1024).is_some());
    };
    let nobody = new(0);
    let unlimited = connection(&nobody, &ClientLimits::default());
    let nobodys = timed(|_| looked(&nobody, &unlimited));

    let of_others = new(1);
    let unlimited = connection(&of_others, &ClientLimits::default());
    let others = timed(|_| looked(&of_others, &unlimited));

    let limit = Some(QuotaLimit { per_second: 1e12, user: Some("alice".into()), client_id: None });
    let limits = ClientLimits { produce: limit.clone(), fetch: limit.clone(), request: None };
    let quotas = new(1);
    let own = connection(&quotas, &limits);
    let produce = timed(|now| {
        looked(&quotas, &own);
        black_box(own.begin(1024).map(|metered| metered.produced(true, now)));
    });
    let fetch = timed(|now| {
        looked(&quotas, &own);
        black_box(own.begin(64).map(|metered| metered.fetched(1024, now)));
    });
    let shared = std::thread::scope(|scope| {
        let counting = || {
            let own = connection(&quotas, &limits);
            timed(|now| {
                black_box(own.begin(1024).map(|metered| metered.produced(true, now)));
            })
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(counting)).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).sum::<f64>() / threads as f64
    });
    println!(
        "{{\"load\": \"quotas\", \"threads\": {threads}, \"nobody_ns\": {nobodys}, \"others_ns\": {others}, \
         \"produce_ns\": {produce}, \"fetch_ns\": {fetch}, \"shared_produce_ns\": {shared}}}"
    );
}
