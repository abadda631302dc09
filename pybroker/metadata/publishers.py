"""The interface of metadata publishers, which are notified of each new image.

The loader calls publishers in the order of their registration, on the loop thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage


class Publisher(Protocol):
    """Applies changes of the metadata to a part of the node."""

    def publish(self, delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Apply an image. `delta` has its changes since the previous image. Must not block and must not fail."""
