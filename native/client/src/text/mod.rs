//! The console's face of the client: fetched records become text, and lines of text become records to send.
//!
//! Owns Kafka's layouts of both: [`format`](RecordFormat) is what its console consumer prints, with the texts that its
//! [`Decoder`]s make of bytes, and one JSON object a line; [`lines`](LineFormat) is what its console producer reads. Knows
//! no default, no option's name and no descriptor. On the way of a fetch it stands behind
//! [`Received`](crate::Received), on the way of a produce before the accumulator: [`LineSender`] sends a block of lines at
//! a time.

mod decoder;
mod format;
mod formatted;
mod json;
mod line_sender;
mod lines;
#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use format::{RecordFormat, Shown, Style};
pub use formatted::{Formatted, Undecodable};
pub use line_sender::{LineFailure, LineSender, SendError};
pub use lines::{BadLine, Line, LineFormat, Lines, LinesSplitter};
