"""Who is notified of a new image.

Owns the shape of a publisher. The loader calls publishers in the order of their registration, on the loop thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage


class Publisher(Protocol):
    """Makes a part of the broker agree with the metadata."""

    def publish(self, delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Put an image in force, with what changed since the one before; must not block and must not fail."""
