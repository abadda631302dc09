//! A response on its way out: bytes, slices of log files between them, and how much is written.

use std::os::unix::fs::FileExt;

use rustix::io::Errno;

use crate::quota::Throttle;
use crate::scheduling::clock::NANOSECONDS_OF_MS;
use crate::transport::Transport;
use pybroker_storage::{ConvertedSlice, FileSlice};

/// Responses without file slices are combined into one buffer up to this size, so that the responses to a pipelining client
/// leave in one system call.
const COALESCE_BYTES: usize = 64 << 10;

/// A slice up to this size is copied into the response's buffer, which then leaves in one system call: below it the copy is
/// cheaper than a second call (`sendfile` sets up a pipe for each).
const COPY_SLICE_BYTES: usize = 8 << 10;
/// The most bytes copied for one response: the other slices of a fetch of many partitions are sent by `sendfile`.
const COPY_BYTES: usize = 64 << 10;

/// Records in a response.
#[derive(Debug)]
pub enum Slice {
    /// As stored in the log.
    File(FileSlice),
    /// Converted to an older format.
    Converted(Box<ConvertedSlice>),
}

impl Slice {
    /// Bytes on the wire.
    fn size(&self) -> usize {
        match self {
            Self::File(slice) => slice.len,
            Self::Converted(slice) => slice.len(),
        }
    }
}

/// A response frame: size prefix, header and body, and the slices of logs inside the body.
#[derive(Debug)]
pub struct Response {
    bytes: Vec<u8>,
    /// Slices by the position in `bytes` that they precede, ascending.
    slices: Vec<(usize, Slice)>,
    /// Bytes of `bytes` written.
    sent: usize,
    /// Slices written whole.
    next_slice: usize,
    /// Bytes written of the next slice.
    sent_of_slice: usize,
    /// When the mute of its client ends, on the data plane's clock in milliseconds; 0 for none.
    muted_until: u64,
    /// Whether the client is a follower.
    of_follower: bool,
}

/// The progress of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything is written.
    Done,
    /// The socket's send buffer is full.
    Blocked,
}

impl Response {
    /// A frame for `correlation_id`; [`Response::finish`] sets its size.
    pub fn begin(correlation_id: i32, capacity: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(capacity + 8);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&correlation_id.to_be_bytes());
        bytes
    }

    /// Completes a frame that [`Response::begin`] began; `slices` are ordered by position.
    pub fn finish(bytes: Vec<u8>, slices: Vec<(usize, Slice)>) -> Self {
        let (mut bytes, slices) = copy_small_slices(bytes, slices);
        let size = bytes.len() - 4 + slices.iter().map(|(_, slice)| slice.size()).sum::<usize>();
        // Responses stay far below 2 GiB: `fetch.max.bytes` and `socket.request.max.bytes` are 32-bit settings.
        bytes[..4].copy_from_slice(&(size as u32).to_be_bytes());
        Self::whole(bytes, slices)
    }

    fn whole(bytes: Vec<u8>, slices: Vec<(usize, Slice)>) -> Self {
        Self { bytes, slices, sent: 0, next_slice: 0, sent_of_slice: 0, muted_until: 0, of_follower: false }
    }

    /// The same response, for a follower or for a client.
    pub fn for_follower(mut self, of_follower: bool) -> Self {
        self.of_follower = of_follower;
        self
    }

    /// Whether the client is a follower.
    pub fn is_of_follower(&self) -> bool {
        self.of_follower
    }

    /// The same response for a throttled client: its connection is muted when the response is queued.
    pub fn muting(mut self, throttle: Throttle) -> Self {
        self.muted_until = throttle.until_ms;
        self
    }

    /// When the mute of the connection ends; 0 for none.
    pub fn muted_until(&self) -> u64 {
        self.muted_until
    }

    /// The rest of the throttle time at `now_ns`, in nanoseconds.
    pub fn throttle_ns(&self, now_ns: u64) -> u64 {
        self.muted_until.saturating_mul(NANOSECONDS_OF_MS).saturating_sub(now_ns)
    }

    /// A frame with the control plane's payload.
    pub fn from_payload(correlation_id: i32, payload: &[u8]) -> Self {
        let mut bytes = Self::begin(correlation_id, payload.len());
        bytes.extend_from_slice(payload);
        Self::finish(bytes, Vec::new())
    }

    /// A frame that contains only a token.
    pub fn bare(token: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(token.len() + 4);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(token);
        Self::finish(bytes, Vec::new())
    }

    /// No frame at all.
    pub fn nothing() -> Self {
        Self::whole(Vec::new(), Vec::new())
    }

    /// Size of the frame on the wire.
    pub fn size(&self) -> u64 {
        (self.bytes.len() + self.slices.iter().map(|(_, slice)| slice.size()).sum::<usize>()) as u64
    }

    /// Memory of the response: slices of files take none.
    pub fn memory(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The frame without its size prefix, with its records.
    ///
    /// # Errors
    /// When a log's file cannot be read.
    #[cfg(feature = "simulation")]
    pub fn to_frame(&self) -> std::io::Result<Vec<u8>> {
        let (mut frame, mut from) = (Vec::new(), 4);
        for (at, slice) in &self.slices {
            frame.extend_from_slice(&self.bytes[from..*at]);
            from = *at;
            let Slice::File(slice) = slice else { return Err(std::io::ErrorKind::Unsupported.into()) };
            let begin = frame.len();
            frame.resize(begin + slice.len, 0);
            slice.file.read_exact_at(&mut frame[begin..], slice.position)?;
        }
        frame.extend_from_slice(&self.bytes[from..]);
        Ok(frame)
    }

    /// Appends `other` to this buffer if both are plain bytes and small; returns `other` if not.
    pub fn coalesce(&mut self, other: Response) -> Option<Response> {
        let plain = self.slices.is_empty() && other.slices.is_empty();
        if !plain || self.bytes.len() + other.bytes.len() > COALESCE_BYTES {
            return Some(other);
        }
        self.bytes.extend_from_slice(&other.bytes);
        None
    }

    /// Writes as much as the transport takes. `more`: another response follows at once.
    pub fn write_to(&mut self, transport: &mut Transport, more: bool) -> Result<Progress, Errno> {
        loop {
            let until = self.slices.get(self.next_slice).map(|(at, _)| *at);
            let end = until.unwrap_or(self.bytes.len());
            if self.sent < end {
                match transport.send(&self.bytes[self.sent..end], until.is_some() || more) {
                    Ok(sent) => self.sent += sent,
                    Err(Errno::AGAIN) => return Ok(Progress::Blocked),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let Some((_, slice)) = self.slices.get_mut(self.next_slice) else { return Ok(Progress::Done) };
            let sent = match slice {
                Slice::File(slice) => send_file(transport, slice, &mut self.sent_of_slice),
                Slice::Converted(slice) => send_converted(transport, slice),
            };
            match sent {
                Ok(true) => {}
                Ok(false) => {
                    self.next_slice += 1;
                    self.sent_of_slice = 0;
                }
                Err(Errno::AGAIN) => return Ok(Progress::Blocked),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Sends a part of a slice; `false` if nothing was left.
fn send_file(transport: &mut Transport, slice: &FileSlice, sent: &mut usize) -> Result<bool, Errno> {
    let any = *sent < slice.len;
    if any {
        *sent += transport.send_file(slice, *sent)?;
    }
    Ok(any)
}

/// Converts and sends a part of a slice; `false` if nothing was left.
fn send_converted(transport: &mut Transport, slice: &mut ConvertedSlice) -> Result<bool, Errno> {
    let (piece, more) = slice.piece().map_err(|_| Errno::IO)?;
    if piece.is_empty() {
        return Ok(false);
    }
    let sent = transport.send(piece, more)?;
    slice.advance(sent);
    Ok(true)
}

/// Copies small slices into the bytes. A slice that cannot be read whole stays a slice: sending it will report the error.
fn copy_small_slices(bytes: Vec<u8>, slices: Vec<(usize, Slice)>) -> (Vec<u8>, Vec<(usize, Slice)>) {
    let small = |(_, slice): &(usize, Slice)| matches!(slice, Slice::File(file) if file.len <= COPY_SLICE_BYTES);
    if !slices.iter().any(small) {
        return (bytes, slices);
    }
    let mut whole =
        Vec::with_capacity(bytes.len() + slices.iter().filter(|at| small(at)).map(|(_, s)| s.size()).sum::<usize>());
    let (mut from, mut copied, mut left) = (0, 0, Vec::new());
    for (at, slice) in slices {
        whole.extend_from_slice(&bytes[from..at]);
        from = at;
        let begin = whole.len();
        if let Slice::File(file) = &slice
            && file.len <= COPY_SLICE_BYTES
            && copied + file.len <= COPY_BYTES
        {
            whole.resize(begin + file.len, 0);
            if file.file.read_exact_at(&mut whole[begin..], file.position).is_ok() {
                copied += file.len;
                continue;
            }
            whole.truncate(begin);
        }
        left.push((begin, slice));
    }
    whole.extend_from_slice(&bytes[from..]);
    (whole, left)
}
