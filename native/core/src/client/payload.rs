//! Record values for load generators: random capital letters, as Kafka's producer performance tool sends.

/// Fill with `A`-`Z`, each about equally likely; advances `state` (any value, also 0, is a good start).
pub fn fill_random_letters(buffer: &mut [u8], state: &mut u64) {
    let mut chunks = buffer.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let random = next(state).to_le_bytes();
        for (letter, byte) in chunk.iter_mut().zip(random) {
            *letter = b'A' + ((u16::from(byte) * 26) >> 8) as u8;
        }
    }
    let random = next(state).to_le_bytes();
    for (letter, byte) in chunks.into_remainder().iter_mut().zip(random) {
        *letter = b'A' + ((u16::from(byte) * 26) >> 8) as u8;
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): every state gives a well-mixed output.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::fill_random_letters;

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
