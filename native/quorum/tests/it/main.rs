//! Frames of voters, arbitrary and damaged: the same entry point as the fuzz target's, without a nightly toolchain.

#[path = "../../../fuzz/decoders/raft_message.rs"]
mod raft_message;

use proptest::prelude::*;

/// Bytes in which 0, 1, -1 and whole numbers of eight bytes are frequent, as they are in messages.
fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        likely_number().prop_map(|number| number.to_be_bytes().to_vec()),
        any::<u8>().prop_map(|byte| vec![byte]),
        Just(vec![0; 4]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn likely_number() -> impl Strategy<Value = i64> {
    prop_oneof![0..4_i64, 0..4_i64, 0..4_i64, Just(-1), Just(i64::MAX), any::<i64>()]
}

/// What stands before the context of a message: version, kind, whether it is refused, and eight numbers.
fn head() -> impl Strategy<Value = Vec<u8>> {
    let numbers = prop::collection::vec(likely_number(), 8);
    (0_u8..12, 0_u8..2, numbers).prop_map(|(kind, is_refused, numbers)| {
        let numbers = numbers.iter().flat_map(|number| number.to_be_bytes());
        [0, kind, is_refused].into_iter().chain(numbers).collect()
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes(bytes in likely_bytes()) {
        raft_message::decode(&bytes);
    }

    #[test]
    fn heads_of_messages_with_anything_behind_them(head in head(), bytes in likely_bytes()) {
        raft_message::decode(&[&head[..], &[0]].concat());
        raft_message::decode(&[&head[..], &[0], &bytes].concat());
    }
}
