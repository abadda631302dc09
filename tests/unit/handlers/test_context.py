from __future__ import annotations

from typing import Any, NamedTuple

from pybroker.config.broker import BrokerConfig
from pybroker.handlers.context import BrokerContext, BrokerServices, Contexts
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage
from pybroker.security.principals import ANONYMOUS, Principal


class Origin(NamedTuple):
    api_version: int
    principal: tuple[str, str] | None = None


def test_a_request_finds_the_settings_and_the_image_that_are_in_force_when_it_comes() -> None:
    images = [EMPTY_IMAGE, MetadataImage(offset=5)]
    given: dict[str, Any] = dict.fromkeys(BrokerServices.__struct_fields__)
    first, second = BrokerConfig({}), BrokerConfig({"message.max.bytes": "10"})
    contexts = Contexts(BrokerContext, BrokerServices(**given | {"config": first, "image": lambda: images.pop(0)}))
    before = contexts.build(Origin(3, ("User", "alice")))  # type: ignore[arg-type]
    contexts.reconfigure(second)
    after = contexts.build(Origin(4))  # type: ignore[arg-type]
    assert (before.services.config, before.image.offset, before.version) == (first, -1, 3)
    assert (before.principal, after.principal) == (Principal("User", "alice"), ANONYMOUS)
    assert (after.services.config, after.image.offset, after.version) == (second, 5, 4)
