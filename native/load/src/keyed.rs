//! Stamped records with keys, from a set of any size, chosen uniformly or by Zipf's law.
//!
//! Owns the choice of the key, and the sequences, counted by the partition of the key. A key is its number in decimal
//! digits, so that people can read it.

use std::time::Instant;

use pybroker_client::{now_us, split_mix};

use super::payload::{MadeRecords, Payload};
use super::schedule::{Due, since};
use super::stamp::Stamp;

/// Random numbers below a bound with given weights, in constant time each (Vose's alias method, 1991).
#[derive(Debug)]
struct Alias {
    /// By number: the fraction of its share that is its own, and the number that gets the rest.
    shares: Vec<(f64, u32)>,
}

impl Alias {
    /// Weight 1 / (n + 1)^skew for each number n below `bound`.
    fn zipf(bound: u32, skew: f64) -> Self {
        let weights: Vec<f64> = (1..=bound).map(|rank| f64::from(rank).powf(-skew)).collect();
        let mean = weights.iter().sum::<f64>() / f64::from(bound);
        let mut shares: Vec<(f64, u32)> = (0..).zip(&weights).map(|(number, weight)| (weight / mean, number)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..shares.len()).partition(|number| shares[*number].0 < 1.0);
        while let (Some(lesser), Some(greater)) = (small.pop(), large.last().copied()) {
            shares[lesser].1 = greater as u32;
            shares[greater].0 -= 1.0 - shares[lesser].0;
            if shares[greater].0 < 1.0 {
                large.pop();
                small.push(greater);
            }
        }
        // Numbers left over by rounding get their whole share.
        small.into_iter().chain(large).for_each(|number| shares[number].0 = 1.0);
        Self { shares }
    }

    fn choose(&self, state: &mut u64) -> u32 {
        let number = ((u128::from(split_mix(state)) * self.shares.len() as u128) >> 64) as usize;
        let (own, other) = self.shares[number];
        // 53 random bits: a fraction from 0 to 1, exclusive of 1.
        if ((split_mix(state) >> 11) as f64) * (1.0 / (1u64 << 53) as f64) < own { number as u32 } else { other }
    }
}

/// The state of one producer's keyed records of one topic.
#[derive(Debug)]
pub struct KeyedStamps {
    alias: Alias,
    state: u64,
    payload: Payload,
    /// By partition, the next record's sequence.
    sequences: Vec<u64>,
}

/// One record: the digits of its key, its partition, its value.
#[derive(Debug)]
pub struct KeyedRecord<'a> {
    pub key: &'a [u8],
    pub partition: usize,
    pub value: &'a [u8],
}

impl KeyedStamps {
    /// Choose among `keys` keys; `skew` 0 is uniform, 1 is the distribution of words in a language.
    pub fn new(keys: u32, skew: f64, seed: u64) -> Self {
        Self { alias: Alias::zipf(keys.max(1), skew), state: seed, payload: Payload::new(seed), sequences: Vec::new() }
    }

    /// Generate records and call `add` with each and the start of its latency. `place` returns the partition of a key.
    pub fn make<E>(
        &mut self,
        MadeRecords { size, count }: MadeRecords,
        producer: u64,
        due: Option<&Due>,
        place: impl Fn(&[u8]) -> usize,
        mut add: impl FnMut(KeyedRecord<'_>, Instant) -> Result<(), E>,
    ) -> Result<(), E> {
        let (since, mut made) = (since(due), 0);
        while made < count {
            let values = self.payload.letters(size, (count - made).min(Payload::together(size)));
            for value in values.chunks_exact_mut(size) {
                let mut digits = [0; 10];
                let key = decimal(self.alias.choose(&mut self.state), &mut digits);
                let partition = place(key);
                if self.sequences.len() <= partition {
                    self.sequences.resize(partition + 1, 0);
                }
                let sent_us = due.map_or_else(now_us, |due| due.at_us(made));
                Stamp { producer, sequence: self.sequences[partition], sent_us }.write(value);
                add(KeyedRecord { key, partition, value }, since.of(made))?;
                self.sequences[partition] += 1;
                made += 1;
            }
        }
        Ok(())
    }
}

fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Alias, KeyedStamps, MadeRecords, Stamp, decimal};

    #[test]
    fn keys_are_chosen_as_often_as_zipfs_law_says() {
        for (skew, bound) in [(0.0, 10), (1.0, 100), (1.5, 3)] {
            let (alias, mut state, draws) = (Alias::zipf(bound, skew), 7, 200_000);
            let mut seen = vec![0u32; bound as usize];
            (0..draws).for_each(|_| seen[alias.choose(&mut state) as usize] += 1);
            let whole: f64 = (1..=bound).map(|rank| f64::from(rank).powf(-skew)).sum();
            for (rank, count) in (1..).zip(&seen) {
                let expected = f64::from(draws) * f64::from(rank as u32).powf(-skew) / whole;
                let off = (f64::from(*count) - expected).abs();
                assert!(off < 5.0 * expected.sqrt() + 1.0, "skew {skew}, rank {rank}: {count}, not {expected:.0}");
            }
        }
    }

    #[test]
    fn sequences_count_by_partition() {
        let (mut keyed, mut seen) = (KeyedStamps::new(50, 1.0, 1), vec![Vec::new(); 3]);
        for _ in 0..2 {
            let place = |key: &[u8]| usize::from(key[key.len() - 1]) % 3;
            let made: Result<(), ()> = keyed.make(MadeRecords { size: 40, count: 500 }, 9, None, place, |record, _| {
                let stamp = Stamp::parse(record.value).ok_or(())?;
                assert_eq!((9, 40), (stamp.producer, record.value.len()));
                seen[record.partition].push(stamp.sequence);
                Ok(())
            });
            assert_eq!(Ok(()), made);
        }
        assert_eq!(1000, seen.iter().map(Vec::len).sum::<usize>());
        assert!(seen.iter().all(|s| *s == (0..s.len() as u64).collect::<Vec<_>>()));
    }

    #[test]
    fn a_number_is_written_in_digits() {
        let mut digits = [0; 10];
        assert_eq!(b"0", decimal(0, &mut digits));
        assert_eq!(b"4294967295", decimal(u32::MAX, &mut digits));
    }
}
