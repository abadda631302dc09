use super::*;
use crate::accepting::connection_limits::{ListenerLimits, Windows};

const WINDOWS: Windows = Windows { length_ms: 1000, count: 11 };

fn limits() -> ConnectionLimits {
    ConnectionLimits { windows: WINDOWS, ..ConnectionLimits::only(3, "a test".to_owned()) }
}

fn names() -> (Arc<str>, Arc<str>) {
    ("CLIENTS".into(), "BROKERS".into())
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

#[test]
fn the_listener_between_brokers_is_not_bound_by_the_limit_of_all() {
    let (clients, brokers) = names();
    let mut limits = limits();
    let own = ListenerLimits { max_connections: 2, creation_rate: None, is_protected: true };
    limits.listeners.insert("BROKERS".to_owned(), own);
    let capacity = ConnectionSlots::new(limits).unwrap();
    for last in 0..3 {
        assert_eq!(capacity.admission(&clients, 0), Admission::Now);
        assert_eq!(capacity.enter(&clients, address(last), 0), Entry::Taken);
    }
    assert_eq!(capacity.admission(&clients, 0), Admission::Full("3 connections are open (a test)".to_owned()));
    for last in 0..2 {
        assert_eq!(capacity.admission(&brokers, 0), Admission::Now);
        assert_eq!(capacity.enter(&brokers, address(last), 0), Entry::Taken);
    }
    let Admission::Full(why) = capacity.admission(&brokers, 0) else { panic!("it has a limit of its own") };
    assert_eq!(why, "2 connections are open at listener BROKERS (listener.name.brokers.max.connections)");
    capacity.give_back(&brokers, address(0));
    assert_eq!((capacity.admission(&brokers, 0), capacity.taken()), (Admission::Now, 4));
}

#[test]
fn an_address_has_no_more_than_its_own_limit_or_that_of_all() {
    let (clients, _) = names();
    let mut limits = ConnectionLimits { max_per_address: 1, ..limits() };
    limits.max_of_address.insert(address(2), 2);
    let capacity = ConnectionSlots::new(limits).unwrap();
    assert_eq!(capacity.enter(&clients, address(1), 0), Entry::Taken);
    assert_eq!(capacity.enter(&clients, address(1), 0), Entry::TooMany(1));
    assert_eq!(capacity.enter(&clients, address(2), 0), Entry::Taken);
    // An IPv4 address and its IPv4-mapped IPv6 address are the same.
    assert_eq!(capacity.enter(&clients, "::ffff:10.0.0.2".parse().unwrap(), 0), Entry::Taken);
    assert_eq!(capacity.enter(&clients, address(2), 0), Entry::TooMany(2));
    capacity.give_back(&clients, address(1));
    assert_eq!(capacity.enter(&clients, address(1), 0), Entry::Taken);
}

#[test]
fn a_listener_waits_for_the_longer_of_its_rate_and_that_of_all() {
    let (clients, brokers) = names();
    let mut limits = ConnectionLimits { max_connections: usize::MAX, creation_rate: Some(1.0), ..limits() };
    let own = ListenerLimits { max_connections: usize::MAX, creation_rate: Some(0.5), is_protected: true };
    limits.listeners.insert("BROKERS".to_owned(), own);
    let capacity = ConnectionSlots::new(limits).unwrap();
    let count = |listener: &Arc<str>| {
        let mut count = 0;
        while capacity.admission(listener, 0) == Admission::Now {
            assert_eq!(capacity.enter(listener, address(1), 0), Entry::Taken);
            count += 1;
        }
        count
    };
    assert_eq!((count(&clients), count(&brokers)), (10, 5));
    assert_eq!(capacity.admission(&clients, 0), Admission::Later(1000));
    assert_eq!(
        capacity.admission(&clients, 400),
        Admission::Later(600),
        "a connection that closes has it looked at again"
    );
    assert_eq!(capacity.admission(&clients, 11_000), Admission::Now);
    assert_eq!(capacity.admission(&brokers, 12_000), Admission::Now);
    assert_eq!(capacity.admission(&clients, 19_000), Admission::Now, "nobody waits any more");
    let waited: Vec<_> =
        capacity.of_listeners().into_iter().map(|it| (it.name, it.open, it.accepted, it.waited_ms)).collect();
    assert_eq!(waited, [(brokers, 5, 5, 12_000), (clients, 10, 10, 11_000)]);
}

#[test]
fn an_address_that_is_too_fast_is_counted_nowhere_and_another_is_not_touched() {
    let (clients, _) = names();
    let mut limits = ConnectionLimits { max_connections: usize::MAX, address_rate: Some(1.0), ..limits() };
    limits.rate_of_address.insert(address(2), 2.0);
    let capacity = ConnectionSlots::new(limits).unwrap();
    let count = |last: u8| (0..50).filter(|_| capacity.enter(&clients, address(last), 0) == Entry::Taken).count();
    assert_eq!((count(1), count(2)), (10, 20));
    assert_eq!(capacity.enter(&clients, address(1), 0), Entry::TooFast(1000));
    assert_eq!(capacity.taken(), 30);
    assert_eq!(capacity.enter(&clients, address(1), 11_000), Entry::Taken);
    assert_eq!(capacity.of_addresses(5), (vec![(address(2), 20), (address(1), 11)], 0));
    assert_eq!(capacity.of_addresses(1), (vec![(address(2), 20)], 1));
    assert_eq!(capacity.of_listeners()[0].addresses_waited_ms, 41 * 1000 + 30 * 500, "each that was refused");
}

#[test]
fn rates_of_addresses_that_come_once_are_forgotten() {
    let (clients, _) = names();
    let capacity =
        ConnectionSlots::new(ConnectionLimits { max_connections: usize::MAX, address_rate: Some(1.0), ..limits() })
            .unwrap();
    for number in 0..20_000_u32 {
        let address = IpAddr::from(number.to_be_bytes());
        assert_eq!(capacity.enter(&clients, address, u64::from(number) * 100), Entry::Taken);
        capacity.give_back(&clients, address);
    }
    assert!(capacity.counts.lock().rate_of_address.len() <= FEW_RATES);
    assert!(capacity.counts.lock().of_address.is_empty());
}
