"""Finalizing feature levels (KIP-584)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import Result, UpdateFeatures
from pybroker.machine.machine import Outcome
from pybroker.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord

if TYPE_CHECKING:
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message


def update_features(image: MetadataImage, event: UpdateFeatures) -> Outcome[Message, Result]:
    """Decide about new levels, all or none: every broker has to support each."""
    for name, level in event.levels.items():
        fault = _fault(image, name, level)
        if fault is not None:
            return Outcome((), Result(ErrorCode.INVALID_UPDATE_VERSION, fault))
    records = tuple(
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in event.levels.items()
        if image.features.levels.get(name, 0) != level
    )
    return Outcome(() if event.validate_only else records, Result())


def _fault(image: MetadataImage, name: str, level: int) -> str | None:
    wrong = f"Invalid update version {level} for feature {name}. "
    low, high = SUPPORTED_FEATURES.get(name, (0, -1))
    if high < 0:
        return f"{wrong}The controller does not support the given feature."
    if level < 0 or (level == 0 and name == METADATA_VERSION) or (level > 0 and not low <= level <= high):
        return f"{wrong}The controller supports levels {low} to {high}."
    for broker in image.cluster.brokers.values():
        lowest, highest = broker.features.get(name, (0, 0))
        if level > 0 and not lowest <= level <= highest:
            return f"{wrong}Broker {broker.id} supports levels {lowest} to {highest}."
    return None
