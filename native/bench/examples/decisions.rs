//! The decisions of an authorizer that the data plane remembers: `decisions PRINCIPALS TOPICS ROOM` prints one line of JSON.
//!
//! Each principal has read each topic once. Then are timed: one client that asks for its own topics again and again, as a
//! connection does, and clients and topics drawn at random, whose entries lie in no cache of the processor.

use std::env::args;
use std::hint::black_box;
use std::net::IpAddr;
use std::time::Instant;

use pybroker_net::{Identity, Right, Rights};

const REQUESTED: u64 = 5_000_000;
const VERSION: u64 = 1;

/// Resident bytes of this process.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

fn topic(number: u64) -> [u8; 16] {
    // Topic ids are random: a permutation of the number stands for one.
    let (high, low) = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15), number.wrapping_mul(0xD1B5_4A32_D192_ED03));
    let mut id = [0; 16];
    id[..8].copy_from_slice(&high.to_be_bytes());
    id[8..].copy_from_slice(&low.to_be_bytes());
    id
}

fn main() {
    let numbers: Vec<u64> = args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [principals, topics, room] = numbers[..] else {
        eprintln!("usage: decisions PRINCIPALS TOPICS ROOM");
        std::process::exit(2);
    };
    let before = resident();
    let rights = Rights::new(room as usize, VERSION);
    let host: IpAddr = [127, 0, 0, 1].into();
    let whos: Vec<_> = (0..principals)
        .map(|number| rights.who(Some(&Identity { kind: "User".into(), name: format!("user-{number}").into() }), host))
        .collect();
    let ids: Vec<_> = (0..topics).map(topic).collect();
    for who in &whos {
        for id in &ids {
            rights.note(*who, Right::Read, id, VERSION, true);
        }
    }
    let taken = resident() - before;
    let known = |at: u64| {
        let (who, id) = (whos[(at / topics % principals) as usize], &ids[(at % topics) as usize]);
        black_box(rights.known(who, Right::Read, id, VERSION))
    };
    let remembered = (0..principals * topics).filter(|&at| known(at).is_some()).count();
    let begun = Instant::now();
    for at in 0..REQUESTED {
        known(at % topics.min(10));
    }
    let own = begun.elapsed();
    let (begun, mut state) = (Instant::now(), 0x2545_F491_4F6C_DD1D_u64);
    for _ in 0..REQUESTED {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        known(state % (principals * topics));
    }
    let drawn = begun.elapsed();
    let each = |took: std::time::Duration| took.as_nanos() as f64 / REQUESTED as f64;
    println!(
        "{{\"load\": \"decisions\", \"records\": {}, \"seconds\": {}, \"resident_mib\": {}, \"remembered_percent\": {}, \
         \"own_ns\": {}, \"drawn_ns\": {}}}",
        principals * topics,
        own.as_secs_f64() + drawn.as_secs_f64(),
        taken as f64 / f64::from(1 << 20),
        remembered as f64 * 100.0 / (principals * topics) as f64,
        each(own),
        each(drawn),
    );
}
