//! Log lines about connections that were closed for an error of their clients: one a minute for each address and cause.
//!
//! A client with another security protocol than the listener's reconnects for as long as it runs. Must not know why a
//! connection is closed, nor close any.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

const EVERY_MS: u64 = 60_000;
/// The most addresses and causes to remember; further ones share one line a minute.
const MOST: usize = 1000;
const CAUSE_BYTES: usize = 200;

/// The lines logged within the last minute.
#[derive(Debug, Default)]
pub struct Refusals {
    logged: Mutex<FxHashMap<(IpAddr, Vec<u8>), Logged>>,
}

#[derive(Debug, Default)]
struct Logged {
    /// No line before this time, in milliseconds of the data plane's clock.
    until: u64,
    /// Connections closed without a line since the last line.
    left_out: u64,
}

impl Refusals {
    /// Returns the log line for a connection that is closed at `now`. Returns `None` if a line with the same address
    /// and cause was logged less than a minute ago.
    pub fn line(&self, peer: SocketAddr, why: &str, now: u64) -> Option<String> {
        // The sizes in a text differ between the attempts of one client.
        let cause = why.bytes().filter(|byte| !byte.is_ascii_digit()).take(CAUSE_BYTES).collect();
        let mut key = (peer.ip(), cause);
        let mut logged = self.logged.lock();
        if logged.len() >= MOST && !logged.contains_key(&key) {
            logged.retain(|_, one| one.until > now);
            if logged.len() >= MOST {
                key = (Ipv4Addr::UNSPECIFIED.into(), Vec::new());
            }
        }
        let one = logged.entry(key).or_default();
        if now < one.until {
            one.left_out += 1;
            return None;
        }
        one.until = now + EVERY_MS;
        let line = format!("connection from {peer} closed: {why}");
        match std::mem::take(&mut one.left_out) {
            0 => Some(line),
            left_out => Some(format!("{line} ({left_out} similar closures were not logged)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(host: [u8; 4], port: u16) -> SocketAddr {
        (host, port).into()
    }

    #[test]
    fn an_address_has_one_line_a_minute_for_each_cause_with_the_count_of_those_left_out() {
        let refusals = Refusals::default();
        let why = |second: u64| format!("a frame of {} bytes; socket.request.max.bytes allows 0 to 99", 400 + second);
        let port = |second: u64| 1000 + second as u16;
        let lines: Vec<Option<String>> = (0..130)
            .map(|second| refusals.line(peer([10, 0, 0, 1], port(second)), &why(second), second * 1000))
            .collect();
        let reported: Vec<usize> = (0..130).filter(|&second| lines[second].is_some()).collect();
        assert_eq!(reported, [0, 60, 120]);
        assert_eq!(lines[0].as_deref(), Some(&*format!("connection from 10.0.0.1:1000 closed: {}", why(0))));
        assert!(lines[60].as_ref().unwrap().ends_with("(59 similar closures were not logged)"));
        assert!(refusals.line(peer([10, 0, 0, 1], 9), "no such API", 129_000).is_some());
        assert!(refusals.line(peer([10, 0, 0, 2], 9), &why(0), 129_000).is_some());
    }

    #[test]
    fn no_more_than_a_thousand_addresses_are_remembered_and_further_ones_share_a_line() {
        let refusals = Refusals::default();
        let of = |n: u32, now| refusals.line(SocketAddr::new(Ipv4Addr::from(n).into(), 1), "x", now).is_some();
        let lines = (1..=100_000).filter(|&n| of(n, 0)).count();
        assert_eq!(lines, MOST + 1);
        assert_eq!(refusals.logged.lock().len(), MOST + 1);
        assert!(of(100_001, EVERY_MS), "those of a minute ago are forgotten");
        assert_eq!(refusals.logged.lock().len(), 1);
    }
}
