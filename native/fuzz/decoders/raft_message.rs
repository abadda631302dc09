//! Messages between voters of the metadata quorum.

use pybroker_quorum::{Position, Quorum, QuorumSettings, Restored, probe};

/// Decodes the bytes: what is a message is encoded as it was. Steps a voter with them, as of each other voter and of a
/// stranger.
pub fn decode(bytes: &[u8]) {
    if let Some(again) = probe(bytes) {
        assert_eq!(again, bytes);
    }
    let settings = QuorumSettings {
        key: 1,
        voters: vec![0, 1, 2],
        is_open: bytes.len().is_multiple_of(2),
        election_ticks: 10,
        heartbeat_ticks: 2,
        message_bytes: 1 << 20,
        messages_in_flight: 8,
        kept_bytes: 1 << 20,
    };
    let restored = Restored {
        hard_state: None,
        before: Position::default(),
        snapshot: None,
        runs: vec![],
        last: 0,
        replayed: 0,
        tail: vec![],
        awaited: Position::default(),
    };
    let mut voter = Quorum::new(&settings, restored).expect("an empty log");
    for from in [0, 2, 9] {
        let _ = voter.step(from, bytes, 0);
        while let Some(ready) = voter.ready() {
            voter.persisted(ready.number);
        }
        let _ = voter.campaign(0);
    }
}
