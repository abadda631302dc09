"""The encoded responses to ApiVersions, which the data plane sends without the event loop.

Owns when they are published: at the start of serving, and when the cluster's features change. Must not know their
content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage
    from pybroker.net.native import DataPlane


class ApiVersionsPublisher:
    """Publishes ApiVersions responses to the data plane. A metadata publisher."""

    def __init__(self, data_plane: DataPlane) -> None:
        self._data_plane = data_plane
        self._encode: Callable[[MetadataImage], dict[int, bytes]] | None = None
        self._epoch: int | None = None

    def begin(self, encode: Callable[[MetadataImage], dict[int, bytes]], image: MetadataImage) -> None:
        """Publish the responses of `encode`, now and after each change of the features.

        `encode` maps versions to the bytes after the correlation id.
        """
        self._encode = encode
        self._publish(image)

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Publish the responses again if the cluster's features have changed."""
        if image.features.epoch != self._epoch:
            self._publish(image)

    def _publish(self, image: MetadataImage) -> None:
        if self._encode is not None:
            self._epoch = image.features.epoch
            self._data_plane.publish_api_versions(self._encode(image))
