"""What ends a dump."""

from __future__ import annotations


class DamagedFileError(Exception):
    """A file that cannot be read further. The message is Kafka's."""
