"""What this package raises.

MetadataError
└── RecordError    a record that cannot follow the records before it: the log is damaged, or this is a bug
"""

from __future__ import annotations


class MetadataError(Exception):
    """Base of what this package raises."""


class RecordError(MetadataError):
    """A record that cannot follow the ones before it; the text names record and reason."""
