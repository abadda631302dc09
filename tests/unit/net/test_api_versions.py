from __future__ import annotations

from typing import Any

from pybroker.handlers.api_versions import encoded_responses
from pybroker.handlers.registry import registered_apis
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import MetadataImage
from pybroker.net.api_versions import ApiVersionsPublisher
from pybroker.protocol.codec import decode
from pybroker.protocol.messages.api_versions import ApiVersionsResponse


class DataPlane:
    def __init__(self) -> None:
        self.published: list[dict[int, bytes]] = []

    def publish_api_versions(self, responses: dict[int, bytes]) -> None:
        self.published.append(responses)


def test_every_version_has_an_answer_that_names_every_api() -> None:
    responses = encoded_responses(MetadataImage())
    assert sorted(responses) == list(range(5))
    for version, payload in responses.items():
        response, size = decode(ApiVersionsResponse, payload, version)
        assert size == len(payload)
        assert {it.api_key for it in response.api_keys} == set(registered_apis())


def test_answers_are_published_at_the_beginning_and_when_the_features_change() -> None:
    data_plane: Any = DataPlane()
    publisher = ApiVersionsPublisher(data_plane)
    image = MetadataImage()
    delta = MetadataDelta(image)
    publisher.publish(delta, image)
    assert data_plane.published == [], "requests are not served yet"
    publisher.begin(lambda it: {0: str(it.features.epoch).encode()}, image)
    publisher.publish(delta, image)
    assert len(data_plane.published) == 1
