//! quorum
