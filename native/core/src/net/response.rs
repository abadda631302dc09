//! An answer on its way out: bytes, with slices of log files spliced in, and how much of it is written.

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::storage::FileSlice;

/// The most that one `sendfile` is asked for: another connection gets its turn in between.
const SENDFILE_BYTES: usize = 1 << 20;
/// Answers without file slices are written into one buffer up to this size, so that a pipelining client's answers
/// leave in one system call.
const COALESCE_BYTES: usize = 64 << 10;

/// A slice up to this size is copied into the answer's buffer, which then leaves in one system call: below it the copy is
/// cheaper than a second call (`sendfile` sets up a pipe for each).
const COPY_SLICE_BYTES: usize = 8 << 10;
/// The most that one answer copies: a fetch of many partitions stays with `sendfile` for the rest.
const COPY_BYTES: usize = 64 << 10;

/// A response frame: size prefix, header and body, and the file slices that interrupt the body.
#[derive(Debug)]
pub struct Response {
    bytes: Vec<u8>,
    /// File slices by the position in `bytes` that they stand in front of, ascending.
    slices: Vec<(usize, FileSlice)>,
    /// Bytes of `bytes` written.
    sent: usize,
    /// Slices written whole.
    next_slice: usize,
    /// Bytes written of the next slice.
    sent_of_slice: usize,
}

/// How far a write got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything is written.
    Done,
    /// The socket takes no more now.
    Blocked,
}

impl Response {
    /// A frame for `correlation_id`, its size to be set by [`Response::finish`].
    pub fn begin(correlation_id: i32, capacity: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(capacity + 8);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&correlation_id.to_be_bytes());
        bytes
    }

    /// Completes a frame that [`Response::begin`] began; `slices` are ordered by position.
    pub fn finish(bytes: Vec<u8>, slices: Vec<(usize, FileSlice)>) -> Self {
        let (mut bytes, slices) = copy_small_slices(bytes, slices);
        let size = bytes.len() - 4 + slices.iter().map(|(_, slice)| slice.len).sum::<usize>();
        // Answers stay far below 2 GiB: `fetch.max.bytes` and `socket.request.max.bytes` are 32-bit settings.
        bytes[..4].copy_from_slice(&(size as u32).to_be_bytes());
        Self { bytes, slices, sent: 0, next_slice: 0, sent_of_slice: 0 }
    }

    /// A frame from the control plane's payload.
    pub fn from_payload(correlation_id: i32, payload: &[u8]) -> Self {
        let mut bytes = Self::begin(correlation_id, payload.len());
        bytes.extend_from_slice(payload);
        Self::finish(bytes, Vec::new())
    }

    /// Size of the frame on the wire.
    pub fn size(&self) -> u64 {
        (self.bytes.len() + self.slices.iter().map(|(_, slice)| slice.len).sum::<usize>()) as u64
    }

    /// Takes `other` into this buffer when both are plain bytes and small; gives it back otherwise.
    pub fn coalesce(&mut self, other: Response) -> Option<Response> {
        let plain = self.slices.is_empty() && other.slices.is_empty();
        if !plain || self.bytes.len() + other.bytes.len() > COALESCE_BYTES {
            return Some(other);
        }
        self.bytes.extend_from_slice(&other.bytes);
        None
    }

    /// Writes as much as the socket takes. `more` tells the kernel that another response follows at once.
    pub fn write_to(&mut self, socket: impl AsFd, more: bool) -> Result<Progress, Errno> {
        loop {
            let (until, slice) = match self.slices.get(self.next_slice) {
                Some((at, slice)) => (*at, Some(slice)),
                None => (self.bytes.len(), None),
            };
            if self.sent < until {
                let flags =
                    if slice.is_some() || more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
                match rustix::net::send(&socket, &self.bytes[self.sent..until], flags) {
                    Ok(sent) => self.sent += sent,
                    Err(Errno::AGAIN) => return Ok(Progress::Blocked),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let Some(slice) = slice else { return Ok(Progress::Done) };
            let left = slice.len - self.sent_of_slice;
            if left == 0 {
                self.next_slice += 1;
                self.sent_of_slice = 0;
                continue;
            }
            let mut offset = slice.position + self.sent_of_slice as u64;
            match rustix::fs::sendfile(&socket, &*slice.file, Some(&mut offset), left.min(SENDFILE_BYTES)) {
                // The file ended before the slice: it was truncated after the plan. The frame cannot be completed.
                Ok(0) => return Err(Errno::IO),
                Ok(sent) => self.sent_of_slice += sent,
                Err(Errno::AGAIN) => return Ok(Progress::Blocked),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Takes small slices into the bytes. One that cannot be read whole stays a slice: sending it will say why.
fn copy_small_slices(bytes: Vec<u8>, slices: Vec<(usize, FileSlice)>) -> (Vec<u8>, Vec<(usize, FileSlice)>) {
    let small = |(_, slice): &(usize, FileSlice)| slice.len <= COPY_SLICE_BYTES;
    if !slices.iter().any(small) {
        return (bytes, slices);
    }
    let mut whole =
        Vec::with_capacity(bytes.len() + slices.iter().filter(|at| small(at)).map(|(_, s)| s.len).sum::<usize>());
    let (mut from, mut copied, mut left) = (0, 0, Vec::new());
    for (at, slice) in slices {
        whole.extend_from_slice(&bytes[from..at]);
        from = at;
        let begin = whole.len();
        if slice.len <= COPY_SLICE_BYTES && copied + slice.len <= COPY_BYTES {
            whole.resize(begin + slice.len, 0);
            if slice.file.read_exact_at(&mut whole[begin..], slice.position).is_ok() {
                copied += slice.len;
                continue;
            }
            whole.truncate(begin);
        }
        left.push((begin, slice));
    }
    whole.extend_from_slice(&bytes[from..]);
    (whole, left)
}
