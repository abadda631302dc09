//! Integration tests of the data plane, in one binary: each further one would be linked anew.

mod arbitrary_bytes;
mod data_plane;
