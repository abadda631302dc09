//! The console's interface to the client: fetched records become text, and lines of text become records to send.
//!
//! Owns Kafka's formats of both: [`format`](RecordFormat) is the output of its console consumer, with the texts of
//! [`Decoder`]s, and one JSON object a line; [`lines`](LineFormat) is the input of its console producer. Knows no defaults,
//! option names or descriptors. A fetch formats records of [`Received`](crate::Received); a produce sends a block of lines
//! at a time through [`LineSender`] to the accumulator.

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
