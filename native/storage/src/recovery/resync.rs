//! Searches for a valid batch after invalid bytes, which distinguishes damage from a torn write.
//!
//! Owns the search. A batch counts as valid if its checksum matches, whatever its offset: the checksum does not cover
//! the offset. The work is bounded. Bytes crafted to look like many nested headers cost a few times their own size,
//! and then count as batches, so they are kept.

use std::fs::File;
use std::io;

use pybroker_record::{BatchHeader, Crc32c, HEADER_LEN, SMALLEST_BATCH, batch_crc};
use pybroker_sys::file::read_full_at;

const CHUNK: usize = 1 << 20;
/// Bytes over which checksums may be computed, as a multiple of the bytes searched.
const CHECKED_TIMES: u64 = 4;
/// A message of format 0 or 1 is checked in one piece, up to this size.
const LARGEST_OLD: usize = 16 << 20;
/// The first byte of a batch that its checksum covers.
const COVERED_FROM: u64 = 21;

/// Returns the first position from `from` on of a batch with a valid checksum that ends at or before `limit`.
pub(crate) fn find_batch(file: &File, from: u64, limit: u64) -> io::Result<Option<u64>> {
    let mut budget = (limit.saturating_sub(from)) * CHECKED_TIMES + CHUNK as u64;
    let mut chunk = Vec::new();
    let mut position = from;
    while position + SMALLEST_BATCH as u64 <= limit {
        let wanted = (limit - position).min(CHUNK as u64) as usize;
        chunk.resize(wanted, 0);
        let read = read_full_at(file, &mut chunk, position)?;
        let bytes = &chunk[..read];
        for at in 0..read.saturating_sub(SMALLEST_BATCH - 1) {
            let Some(header) = header_at(&bytes[at..]) else { continue };
            let (place, size) = (position + at as u64, header.size() as u64);
            if place + size > limit {
                continue;
            }
            let Some(left) = budget.checked_sub(size) else { return Ok(Some(place)) };
            budget = left;
            if checksum_holds(file, &header, place)? {
                return Ok(Some(place));
            }
        }
        if read < wanted || wanted < CHUNK {
            break;
        }
        // A header may span two chunks.
        position += (wanted - HEADER_LEN + 1) as u64;
    }
    Ok(None)
}

/// Parses the header at the start of these bytes, if there is one.
fn header_at(bytes: &[u8]) -> Option<BatchHeader> {
    // A cheap check that excludes nearly all positions: offsets of 2^56 and more do not occur.
    if bytes[0] != 0 || bytes[16] > 2 {
        return None;
    }
    BatchHeader::parse_stored(bytes).ok().filter(|header| header.last_offset_delta >= 0)
}

fn checksum_holds(file: &File, header: &BatchHeader, position: u64) -> io::Result<bool> {
    let size = header.size();
    if header.magic < 2 {
        if size > LARGEST_OLD {
            return Ok(false);
        }
        let mut bytes = vec![0; size];
        return Ok(read_full_at(file, &mut bytes, position)? == size && batch_crc(&bytes) == header.crc);
    }
    let mut crc = Crc32c::new();
    let mut piece = vec![0; size.min(CHUNK)];
    let (mut at, end) = (position + COVERED_FROM, position + size as u64);
    while at < end {
        let wanted = (end - at).min(CHUNK as u64) as usize;
        if read_full_at(file, &mut piece[..wanted], at)? < wanted {
            return Ok(false);
        }
        crc.update(&piece[..wanted]);
        at += wanted as u64;
    }
    Ok(crc.value() == header.crc)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use pybroker_record::{BatchBuilder, Compression, set_base_offset};

    fn batch(base_offset: i64, size: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Compression::None, None, usize::MAX);
        builder.try_append(1, None, Some(&vec![b'x'; size]), &[]).unwrap();
        let mut bytes = Vec::new();
        builder.finish(-1, -1, -1, &mut bytes).unwrap();
        set_base_offset(&mut bytes, base_offset);
        bytes
    }

    fn found(bytes: &[u8], from: u64) -> Option<u64> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        find_batch(&file, from, bytes.len() as u64).unwrap()
    }

    #[test]
    fn a_batch_is_found_behind_garbage_of_any_length() {
        for garbage in [0, 1, 60, 61, 4096, CHUNK - 70, CHUNK - 30, CHUNK, 2 * CHUNK + 5] {
            let bytes = [vec![0xab; garbage], batch(7, 100), vec![0; 50]].concat();
            assert_eq!(found(&bytes, 0), Some(garbage as u64), "{garbage}");
        }
        let large = [vec![0; 10], batch(3, 3 << 20)].concat();
        assert_eq!(found(&large, 0), Some(10));
    }

    #[test]
    fn zeros_noise_halves_and_wrong_checksums_are_no_batch() {
        let whole = batch(5, 1000);
        let mut wrong = whole.clone();
        wrong[500] ^= 1;
        let noise: Vec<u8> = (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for bytes in [vec![0; 100_000], noise, whole[..900].to_vec(), wrong, Vec::new()] {
            assert_eq!(found(&bytes, 0), None);
        }
    }

    #[test]
    fn nested_headers_cost_no_more_than_a_few_times_their_size() {
        // Each of 20,000 headers claims everything that follows it.
        let total = 20_000 * HEADER_LEN;
        let mut bytes = Vec::with_capacity(total);
        for number in 0..20_000 {
            let mut header = batch(1, 0)[..HEADER_LEN].to_vec();
            let length = (total - number * HEADER_LEN - 12) as i32;
            header[8..12].copy_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(&header);
        }
        assert!(found(&bytes, 0).is_some(), "in doubt it is kept");
    }
}
