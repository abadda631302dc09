//! Record values of load generators: random capital letters, as Kafka's producer performance tool sends, and stamps.

use pybroker_client::{now_us, split_mix};

use super::schedule::Due;
use super::stamp::{STAMP_BYTES, Stamp};

/// How many records to generate, and their size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeRecords {
    pub size: usize,
    pub count: usize,
}

/// Bytes of values generated at a time: they are still in the cache when they are copied into a batch.
const TOGETHER: usize = 64 * 1024;

/// Values of random letters in a reused buffer.
#[derive(Debug)]
pub struct Payload {
    buffer: Vec<u8>,
    state: u64,
}

impl Payload {
    /// Any seed is valid, also 0.
    pub fn new(seed: u64) -> Self {
        Self { buffer: vec![0; TOGETHER], state: seed }
    }

    /// The number of values of `size` bytes generated at a time.
    pub fn together(size: usize) -> usize {
        (TOGETHER / size.max(1)).max(1)
    }

    /// `count` adjacent values of `size` bytes.
    pub fn letters(&mut self, size: usize, count: usize) -> &mut [u8] {
        self.buffer.resize(self.buffer.len().max(size * count), 0);
        let values = &mut self.buffer[..size * count];
        fill_random_letters(values, &mut self.state);
        values
    }

    /// The same, each after a stamp; `first` is the first one's, `due` has the times at which they should be sent.
    pub fn stamped(&mut self, size: usize, count: usize, first: Stamp, due: Option<&Due>) -> &[u8] {
        debug_assert!(size >= STAMP_BYTES);
        let values = self.letters(size, count);
        let mut sent_us = now_us();
        for (index, value) in values.chunks_exact_mut(size).enumerate() {
            if let Some(due) = due {
                sent_us = due.at_us(index);
            }
            Stamp { sequence: first.sequence + index as u64, sent_us, ..first }.write(value);
        }
        values
    }
}

/// Fill with `A`-`Z`, each about equally likely; advances `state` (any initial value is valid, also 0).
fn fill_random_letters(buffer: &mut [u8], state: &mut u64) {
    let mut chunks = buffer.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let random = split_mix(state).to_le_bytes();
        for (letter, byte) in chunk.iter_mut().zip(random) {
            *letter = b'A' + ((u16::from(byte) * 26) >> 8) as u8;
        }
    }
    let random = split_mix(state).to_le_bytes();
    for (letter, byte) in chunks.into_remainder().iter_mut().zip(random) {
        *letter = b'A' + ((u16::from(byte) * 26) >> 8) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::{Due, Payload, Stamp, fill_random_letters};

    #[test]
    fn stamps_count_and_follow_the_schedule() {
        let (mut payload, due) = (Payload::new(0), Due { first_us: 1_000, every_us: 2.5 });
        let values = payload.stamped(30, 3, Stamp { producer: 9, sequence: 4, sent_us: 0 }, Some(&due));
        let stamps: Vec<Stamp> = values.chunks(30).map(|value| Stamp::parse(value).unwrap()).collect();
        let expected = [(4, 1_000), (5, 1_002), (6, 1_005)];
        assert_eq!(expected.map(|(sequence, sent_us)| Stamp { producer: 9, sequence, sent_us })[..], stamps[..]);
        assert!(values.chunks(30).all(|value| value[24..].iter().all(u8::is_ascii_uppercase)));
    }

    #[test]
    fn only_capital_letters_and_all_of_them() {
        let mut buffer = vec![0; 10_007];
        fill_random_letters(&mut buffer, &mut 0);
        let mut seen = [0usize; 256];
        buffer.iter().for_each(|b| seen[usize::from(*b)] += 1);
        assert_eq!(buffer.len(), (b'A'..=b'Z').map(|b| seen[usize::from(b)]).sum::<usize>());
        assert!((b'A'..=b'Z').all(|b| seen[usize::from(b)] > 200));
    }
}
