use super::metered::Throttle;
use super::*;
use std::time::Duration;

const SETTINGS: QuotaSettings =
    QuotaSettings { window: Window { samples: 11, sample_ms: 1000 }, remembered: 100, forgotten_after_ms: 3_600_000 };

fn identity(name: &str) -> Identity {
    Identity { kind: "User".into(), name: name.into() }
}

fn limit(per_second: f64, user: Option<&str>, client_id: Option<&str>) -> Option<QuotaLimit> {
    Some(QuotaLimit { per_second, user: user.map(str::to_owned), client_id: client_id.map(str::to_owned) })
}

/// A connection's next request from a client; the control plane returns `limits` if requested.
fn query(quotas: &Quotas, metering: &mut Metering, user: &str, client_id: &str, limits: &ClientLimits) {
    if !metering.knows(quotas, &identity(user), client_id, 0) {
        assert!(metering.is_stopped());
        assert!(metering.reported(quotas, quotas.version(), limits, 0));
    }
    assert!(metering.is_client(quotas.version(), client_id));
}

fn produced(metering: &Metering, bytes: usize, now_ms: u64) -> i32 {
    metering.begin(bytes).map_or(0, |metered| metered.produced(true, now_ms).time_ms)
}

#[test]
fn a_quota_is_one_for_all_connections_of_its_entity_and_outlives_them() {
    let quotas = Quotas::new(SETTINGS);
    quotas.set_version(1);
    let of_user = ClientLimits { produce: limit(1000.0, Some("alice"), None), ..ClientLimits::default() };
    let of_client = ClientLimits { produce: limit(1000.0, None, Some("b")), ..ClientLimits::default() };
    let mut first = Metering::default();
    query(&quotas, &mut first, "alice", "a", &of_user);
    assert_eq!(produced(&first, 10_000, 0), 0);
    drop(first);
    let mut second = Metering::default();
    query(&quotas, &mut second, "alice", "z", &of_user);
    assert_eq!(produced(&second, 1_000, 0), 1_000, "reconnecting under another client id is the same user");
    let mut other = Metering::default();
    query(&quotas, &mut other, "bob", "b", &of_client);
    assert_eq!(produced(&other, 10_000, 0), 0, "another entity has a count of its own");
    query(&quotas, &mut other, "bob", "none", &ClientLimits::default());
    assert_eq!(produced(&other, 1 << 40, 0), 0, "the client id has changed, and has no quota");
    query(&quotas, &mut other, "bob", "b", &ClientLimits::default());
    assert_eq!(produced(&other, 1_000, 0), 1_000, "what is remembered of it holds until quotas change");
}

#[test]
fn changed_quotas_are_asked_for_again_and_what_was_used_counts_on() {
    let quotas = Quotas::new(SETTINGS);
    let mut metering = Metering::default();
    assert!(metering.is_client(quotas.version(), "a"), "nobody has a quota");
    quotas.set_version(1);
    let mut limits = ClientLimits { produce: limit(1000.0, Some("alice"), None), ..ClientLimits::default() };
    query(&quotas, &mut metering, "alice", "a", &limits);
    assert_eq!(produced(&metering, 10_000, 0), 0);
    quotas.set_version(2);
    limits.produce = limit(500.0, Some("alice"), None);
    assert!(!metering.is_client(quotas.version(), "a"));
    query(&quotas, &mut metering, "alice", "a", &limits);
    assert_eq!(produced(&metering, 0, 0), 10_000, "10,000 are 20 s at 500 a second");
    quotas.set_version(3);
    assert!(!metering.knows(&quotas, &identity("alice"), "a", 0));
    quotas.set_version(4);
    assert!(metering.reported(&quotas, 3, &limits, 0), "an answer by older quotas lets the connection go on");
    assert!(!metering.is_client(quotas.version(), "a"), "and is asked for again");
    quotas.set_version(0);
    assert!(metering.knows(&quotas, &identity("alice"), "a", 0));
    assert_eq!(produced(&metering, 1 << 40, 0), 0);
}

#[test]
fn a_fetch_beyond_its_quota_is_not_sent_and_does_not_count() {
    let quotas = Quotas::new(SETTINGS);
    quotas.set_version(1);
    let mut metering = Metering::default();
    let limits = ClientLimits { fetch: limit(1000.0, None, Some("a")), ..ClientLimits::default() };
    query(&quotas, &mut metering, "alice", "a", &limits);
    let fetched = |bytes, now_ms| metering.begin(0).map(|metered| metered.fetched(bytes, now_ms));
    assert_eq!(metering.begin(0).map(|metered| metered.max_fetched_bytes()), Some(10_000));
    assert_eq!(fetched(10_000, 0), Some(Throttle::default()));
    assert_eq!(fetched(500, 0), Some(Throttle { time_ms: 500, until_ms: 500 }));
    assert_eq!(fetched(500, 500), Some(Throttle::default()), "nothing was sent in that time");
    assert_eq!(fetched(1_000, 1_000).map(|throttle| throttle.time_ms), Some(1_500), "a window is whole samples");
}

#[test]
fn time_counts_in_percent_of_a_thread_and_is_waited_for_a_sample_at_most() {
    let quotas = Quotas::new(SETTINGS);
    quotas.set_version(1);
    let mut metering = Metering::default();
    let limits = ClientLimits { request: limit(10.0, None, Some("a")), ..ClientLimits::default() };
    query(&quotas, &mut metering, "alice", "a", &limits);
    assert_eq!(metering.spend(Duration::from_secs(1), 0), Throttle::default(), "100 % of 10 s are 10 %");
    assert!(!metering.is_stopped());
    assert_eq!(metering.spend(Duration::from_millis(50), 0).time_ms, 500);
    assert!(metering.is_stopped());
    assert_eq!(metering.take_timer(), Some(500));
    assert_eq!(metering.spend(Duration::from_secs(60), 0).time_ms, 1_000);
    assert_eq!((metering.take_timer(), metering.take_timer()), (Some(1_000), None), "the later end has a timer");
    assert!(!metering.unmute(500), "that of the earlier changes nothing");
    assert!(metering.unmute(1_000) && !metering.is_stopped());
}

#[test]
fn more_clients_than_are_remembered_drive_out_the_idle_and_no_entity_that_is_in_use() {
    let quotas = Quotas::new(SETTINGS);
    quotas.set_version(1);
    let mut held = Metering::default();
    let limits = |client: &str| ClientLimits { produce: limit(1.0, None, Some(client)), ..ClientLimits::default() };
    query(&quotas, &mut held, "alice", "held", &limits("held"));
    assert!(produced(&held, 1_000, 0) > 0);
    for at in 0..10_000 {
        let (mut metering, client_id) = (Metering::default(), format!("client-{at}"));
        assert!(!metering.knows(&quotas, &identity("alice"), &client_id, at));
        assert!(metering.reported(&quotas, 1, &limits(&client_id), at));
        let (clients, entities) = quotas.clients.lock().len();
        assert!(clients <= SETTINGS.remembered && entities <= 2 * SETTINGS.remembered + 1, "{clients} {entities}");
    }
    let mut again = Metering::default();
    query(&quotas, &mut again, "alice", "held", &limits("held"));
    assert!(produced(&again, 0, 0) > 0, "its use is the one that the first connection counts");
}

#[test]
fn who_has_not_come_for_an_hour_is_forgotten() {
    let quotas = Quotas::new(SETTINGS);
    quotas.set_version(1);
    let limits = ClientLimits { produce: limit(1.0, None, Some("a")), ..ClientLimits::default() };
    query(&quotas, &mut Metering::default(), "alice", "a", &limits);
    assert_eq!(quotas.clients.lock().len(), (1, 1));
    let mut other = Metering::default();
    assert!(!other.knows(&quotas, &identity("alice"), "b", 3_600_000));
    assert!(other.reported(&quotas, 1, &ClientLimits::default(), 3_600_000));
    assert_eq!(quotas.clients.lock().len(), (1, 0));
}

#[test]
fn a_client_id_of_any_length_takes_no_memory_of_a_connection_and_keeps_its_quota() {
    let quotas = Quotas::new(SETTINGS);
    quotas.set_version(1);
    let (mut metering, long) = (Metering::default(), "x".repeat(32_767));
    let limits = ClientLimits { produce: limit(1.0, None, Some(&long)), ..ClientLimits::default() };
    assert!(!metering.knows(&quotas, &identity("alice"), &long, 0));
    assert!(metering.reported(&quotas, 1, &limits, 0));
    assert!(!metering.is_client(1, &long) && metering.knows(&quotas, &identity("alice"), &long, 0));
    assert!(produced(&metering, 1_000, 0) > 0);
}

#[test]
fn what_is_shown_of_a_quota_grows_by_what_was_used_and_waited_for() {
    let quotas = Quotas::new(SETTINGS);
    quotas.set_version(1);
    let (mut alice, mut bob) = (Metering::default(), Metering::default());
    let limits = |user: &str| ClientLimits {
        produce: limit(1000.0, Some(user), None),
        fetch: limit(1000.0, None, Some("c")),
        request: limit(10.0, Some(user), Some("c")),
    };
    query(&quotas, &mut alice, "alice", "c", &limits("alice"));
    query(&quotas, &mut bob, "bob", "c", &limits("bob"));
    assert_eq!(produced(&alice, 15_000, 0), 5_000);
    assert_eq!(produced(&bob, 1, 0), 0);
    let fetched = |bytes, now_ms| alice.begin(0).map(|metered| metered.fetched(bytes, now_ms).time_ms);
    assert_eq!((fetched(9_000, 0), fetched(2_000, 0), fetched(500, 2_000)), (Some(0), Some(1_000), Some(0)));
    assert_eq!(bob.spend(Duration::from_millis(1_050), 0).time_ms, 500);
    let rows = |kind| {
        let (uses, left_out) = quotas.uses(kind, 10, 0);
        assert_eq!(left_out, 0);
        let row = |it: QuotaUse| (it.user, it.client_id, it.used, it.throttled_ms);
        uses.into_iter().map(row).collect::<Vec<_>>()
    };
    let row = |user: &str, client_id: &str, used, waited| (user.to_owned(), client_id.to_owned(), used, waited);
    assert_eq!(rows(QuotaKind::Produce), [row("alice", "", 15_000, 5_000), row("bob", "", 1, 0)]);
    assert_eq!(rows(QuotaKind::Fetch), [row("", "c", 9_500, 1_000)], "what was not sent was not used");
    let (of_alice, of_bob) = (rows(QuotaKind::Request)[0].clone(), rows(QuotaKind::Request)[1].clone());
    assert_eq!((of_alice.0.as_str(), of_alice.3), ("alice", 0), "its waits were for bytes");
    assert!((1_050_000_000..1_150_000_000).contains(&of_bob.2) && of_bob.3 == 500, "{of_bob:?}");
}

#[test]
fn those_that_used_the_most_are_shown_under_names_of_their_own() {
    let quotas = Quotas::new(SETTINGS);
    quotas.set_version(1);
    let long = |last: &str| format!("x{}{last}", "\u{fc}".repeat(100));
    for (at, client_id) in [long("a"), long("b"), "short".to_owned(), "idle".to_owned()].iter().enumerate() {
        let mut metering = Metering::default();
        let limits = ClientLimits { produce: limit(1.0, None, Some(client_id)), ..ClientLimits::default() };
        query(&quotas, &mut metering, "alice", client_id, &limits);
        let used = if client_id == "idle" { 0 } else { 100 - at };
        assert!(used == 0 || produced(&metering, used, 0) > 0);
    }
    let (uses, left_out) = quotas.uses(QuotaKind::Produce, 3, 0);
    assert_eq!((uses.len(), left_out), (3, 1));
    assert!(uses.iter().all(|it| it.client_id != "idle" && it.client_id.len() < 160), "{uses:?}");
    assert_ne!(uses[1].client_id, uses[2].client_id, "what is cut differs");
    assert_eq!(quotas.uses(QuotaKind::Produce, 0, 0), (vec![], 4));
    assert_eq!(quotas.uses(QuotaKind::Produce, 3, 3_600_000), (vec![], 0), "nobody came for an hour");
}
