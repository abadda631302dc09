"""Exceptions of this package.

MetadataError
└── RecordError    a record contradicts the records before it: the log is damaged, or this is a bug
"""

from __future__ import annotations


class MetadataError(Exception):
    """Base of this package's exceptions."""


class RecordError(MetadataError):
    """The record contradicts the records before it. The text has the record and the reason."""
