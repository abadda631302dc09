//! A text that no log line, error or debug output shows.

use std::fmt;

/// A text that no log line, error or debug output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wrap a text.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the code that has to send or use it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}
