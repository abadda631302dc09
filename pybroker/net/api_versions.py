"""The answers to ApiVersions, kept in the data plane, which gives them without a turn of the loop.

Owns when they are published: once requests are served, and again when the cluster's features change, which is all that
they depend on. Must not know what they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage
    from pybroker.net.native import DataPlane


class ApiVersionsPublisher:
    """A publisher of the metadata image."""

    def __init__(self, data_plane: DataPlane) -> None:
        self._data_plane = data_plane
        self._encode: Callable[[MetadataImage], dict[int, bytes]] | None = None
        self._epoch: int | None = None

    def begin(self, encode: Callable[[MetadataImage], dict[int, bytes]], image: MetadataImage) -> None:
        """Publish what `encode` makes of the image, now and with each change; its keys are versions, its values what
        follows the correlation id.
        """
        self._encode = encode
        self._publish(image)

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow the cluster's features."""
        if image.features.epoch != self._epoch:
            self._publish(image)

    def _publish(self, image: MetadataImage) -> None:
        if self._encode is not None:
            self._epoch = image.features.epoch
            self._data_plane.publish_api_versions(self._encode(image))
