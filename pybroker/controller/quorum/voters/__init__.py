"""The voters of the metadata quorum, and changes of the voter set (KIP-853)."""
