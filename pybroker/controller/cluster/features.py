"""Finalizing feature levels (KIP-584, KIP-778).

Owns the allowed level changes. Every node must support a level; a level is lowered only if the request allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.configs import equalize_min_isr
from pybroker.controller.cluster.events import FeatureUpdate, Result, UpdateFeatures, UpgradeType
from pybroker.machine.machine import Outcome
from pybroker.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord

if TYPE_CHECKING:
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

_UNSUPPORTED = (0, 0)
_FAILED = "The update failed for all features since the following feature had an error: "


def update_features(image: MetadataImage, event: UpdateFeatures, settings: ClusterSettings) -> Outcome[Message, Result]:
    """Decide about new levels, all or none; of two updates of a feature the last one applies."""
    updates = {update.name: update for update in event.updates}
    for update in updates.values():
        fault = _fault(image, update, event)
        if fault is not None:
            return Outcome((), Result(ErrorCode.INVALID_UPDATE_VERSION, f"{_FAILED}{fault}"))
    changed = [one for one in updates.values() if _current(image, one.name, event) != one.level]
    records: list[Message] = [
        # The level of kraft.version is a control record, which the quorum writes.
        FeatureLevelRecord(name=one.name, feature_level=one.level)
        for one in changed
        if one.name != KRAFT_VERSION
    ]
    if any(one.name == ELIGIBLE_LEADER_REPLICAS_VERSION and one.level > 0 for one in changed):
        records += equalize_min_isr(image, settings)
    return Outcome(() if event.validate_only else tuple(records), Result())


def _fault(image: MetadataImage, update: FeatureUpdate, event: UpdateFeatures) -> str | None:
    """Return what is wrong with an update, in the words of Kafka's controller, or None."""
    name, level, current = update.name, update.level, _current(image, update.name, event)
    reason = None
    if update.upgrade_type not in set(UpgradeType):
        reason = "The controller does not support the given upgrade type."
    elif level < 0:
        reason = "A feature version cannot be less than 0."
    else:
        reason = _lacking_support(image, name, level, event.controller_id)
    if reason is None and level < current and update.upgrade_type == UpgradeType.UPGRADE:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if reason is None and level > current and update.upgrade_type != UpgradeType.UPGRADE:
        reason = "Can't downgrade to a newer version."
    if reason is None and name == KRAFT_VERSION and level < current:
        reason = "The metadata log names the voters of the quorum, which it goes on to do."
    if reason is None and name not in SUPPORTED_FEATURES:
        reason = f"Feature {name} not found."
    if reason is not None:
        return f"Invalid update version {level} for feature {name}. {reason}"
    if name == METADATA_VERSION and level < current:
        return f"Unsupported metadata.version downgrade from {current} to {level}. {_refusal(update.upgrade_type)}"
    return None


def _current(image: MetadataImage, name: str, event: UpdateFeatures) -> int:
    return event.kraft_version if name == KRAFT_VERSION else image.features.levels.get(name, 0)


def _lacking_support(image: MetadataImage, name: str, level: int, controller_id: int) -> str | None:
    ranges = {f"Local controller {controller_id}": SUPPORTED_FEATURES.get(name, _UNSUPPORTED)}
    for broker in image.cluster.brokers.values():
        ranges[f"Broker {broker.id}"] = broker.features.get(name, _UNSUPPORTED)
    for node, (low, high) in ranges.items():
        if not low <= level <= high:
            return f"{node} only supports versions {low}-{high}" if high else f"{node} does not support this feature."
    return None


def _refusal(upgrade_type: int) -> str:
    # Records are written in the versions of one level: a lower level would make no difference.
    if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        return "Unsafe metadata downgrade is not supported in this version."
    return "Refusing to perform the requested downgrade because it might delete metadata information."
