"""Changes of configurations of topics, brokers, groups and client metrics: incremental (KIP-339), or of all keys.

Owns which resources can be changed, list operations, and that a resource's configurations stay valid as a whole.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pybroker.config.client_metrics import client_metrics_fault
from pybroker.config.key import LONGEST_NUMBER
from pybroker.controller.cluster.availability import MIN_INSYNC_REPLICAS, has_eligible_replicas
from pybroker.controller.cluster.events import AlterConfigs, ConfigChange, ConfigResult
from pybroker.controller.cluster.topic_names import name_fault
from pybroker.machine.machine import Outcome
from pybroker.metadata.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.clear_elr import ClearElrRecord
from pybroker.protocol.messages.records.config import ConfigRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.controller.cluster.settings import ClusterSettings, ConfigRules
    from pybroker.metadata.image import ConfigResource, MetadataImage
    from pybroker.protocol.schema import Message

LONGEST_VALUE = 32767
"""Maximum size of a string in a ConfigRecord, in bytes."""


class RefusedConfigError(Exception):
    """The change of one resource is rejected."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def alter_configs(
    image: MetadataImage, event: AlterConfigs, settings: ClusterSettings
) -> Outcome[Message, list[ConfigResult]]:
    """Decide about changed configurations, each resource by itself; a repeated resource sees its earlier change."""
    results: list[ConfigResult] = []
    records: list[Message] = []
    changed: dict[ConfigResource, Mapping[str, str]] = {}
    for change in event.changes:
        resource = change.resource
        try:
            before = changed.get(resource, image.configs.of(resource.type, resource.name))
            after = changed_configs(before, change, settings.config_rules)
            _check(image, resource, after, settings)
            _check_min_isr(image, resource, before, after)
        except RefusedConfigError as refusal:
            results.append(ConfigResult(resource, refusal.code, str(refusal)))
            continue
        results.append(ConfigResult(resource))
        changed[resource] = after
        some = _records(resource, before, after)
        records += some
        if any(record.name == MIN_INSYNC_REPLICAS for record in some) and has_eligible_replicas(image):
            # A replica that was eligible under another minimum may lack committed records (KIP-966); "" is all topics.
            records.append(ClearElrRecord(topic_name=resource.name))
    return Outcome(() if event.validate_only else tuple(records), results)


def changed_configs(before: Mapping[str, str], change: ConfigChange, rules: ConfigRules) -> dict[str, str]:
    """Return the configurations after the change. Raises `RefusedConfigError` for items of a key that is no list."""
    after = {} if change.replaces else dict(before)
    for name, value in change.changes.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = value
    for verb, texts in (("APPEND", change.appended), ("SUBTRACT", change.subtracted)):
        for name, text in texts.items():
            items = _items(change.resource, name, after.get(name), verb, rules)
            # SUBTRACT removes an item once, APPEND adds it unless it exists (Kafka's ConfigurationControlManager).
            if verb == "SUBTRACT":
                removed = Counter(text.split(","))
                after[name] = ",".join(item for item in items if not _takes(removed, item))
            else:
                there = set(items)
                new = [item for item in dict.fromkeys(text.split(",")) if item not in there]
                after[name] = ",".join([*items, *new])
    return after


def _takes(counts: Counter[str], item: str) -> bool:
    if not counts[item]:
        return False
    counts[item] -= 1
    return True


def _items(resource: ConfigResource, name: str, now: str | None, verb: str, rules: ConfigRules) -> list[str]:
    inherited = rules.list_inherited(resource.type, name)
    if inherited is None:
        raise RefusedConfigError(ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {name} because its type is not LIST.")
    return list(inherited) if now is None else [item for item in now.split(",") if item]


def _check(image: MetadataImage, resource: ConfigResource, after: Mapping[str, str], settings: ClusterSettings) -> None:
    if any(len(value.encode()) > LONGEST_VALUE for value in after.values()):
        raise RefusedConfigError(
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{LONGEST_VALUE} bytes.",
        )
    if resource.type == TOPIC_RESOURCE:
        if not resource.name:
            raise RefusedConfigError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        fault = name_fault(resource.name)
        if fault is not None:
            raise RefusedConfigError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        fault = settings.config_rules.topic_fault(after)
        if fault is not None:
            raise RefusedConfigError(ErrorCode.INVALID_CONFIG, fault)
        if resource.name not in image.topics.by_name:
            raise RefusedConfigError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
            )
    elif resource.type == BROKER_RESOURCE:
        if resource.name and not (resource.name.isdecimal() and len(resource.name) <= LONGEST_NUMBER):
            raise RefusedConfigError(
                ErrorCode.INVALID_REQUEST, f"Unable to parse broker name '{resource.name}' as a number."
            )
        broker = int(resource.name) if resource.name else None
        fault = settings.config_rules.broker_fault(after, broker=broker)
        if fault is not None:
            raise RefusedConfigError(ErrorCode.INVALID_REQUEST, fault)
        if broker is not None and broker not in {**image.cluster.brokers, **image.cluster.controllers}:
            raise RefusedConfigError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {broker} found.")
    elif resource.type == GROUP_RESOURCE:
        if not resource.name:
            raise RefusedConfigError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        fault = settings.config_rules.group_fault(after)
        if fault is not None:
            raise RefusedConfigError(ErrorCode.INVALID_CONFIG, fault)
    elif resource.type == CLIENT_METRICS_RESOURCE:
        wrong = client_metrics_fault(resource.name, after)
        if wrong is not None:
            code = ErrorCode.INVALID_REQUEST if wrong.of_request else ErrorCode.INVALID_CONFIG
            raise RefusedConfigError(code, wrong.message)
    else:
        raise RefusedConfigError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource.type}")


def _check_min_isr(
    image: MetadataImage, resource: ConfigResource, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Reject a change after which brokers have different minimums while ELRs are enabled (KIP-966)."""
    old, new = before.get(MIN_INSYNC_REPLICAS), after.get(MIN_INSYNC_REPLICAS)
    if resource.type != BROKER_RESOURCE or old == new or not has_eligible_replicas(image):
        return
    if resource.name:
        words = f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
        raise RefusedConfigError(ErrorCode.INVALID_CONFIG, words)
    if new is None:
        words = f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
        raise RefusedConfigError(ErrorCode.INVALID_CONFIG, words)


def equalize_min_isr(image: MetadataImage, settings: ClusterSettings) -> list[ConfigRecord]:
    """Return the records that make `min.insync.replicas` equal for all brokers, before ELRs are enabled."""
    records = []
    if MIN_INSYNC_REPLICAS not in image.configs.of_broker(None):
        value = str(settings.config_rules.min_insync_replicas({}))
        records.append(_min_isr_record("", value))
    for resource, configs in sorted(image.configs.by_resource.items()):
        if resource.type == BROKER_RESOURCE and resource.name and MIN_INSYNC_REPLICAS in configs:
            records.append(_min_isr_record(resource.name, None))
    return records


def _min_isr_record(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=MIN_INSYNC_REPLICAS, value=value)


def _records(resource: ConfigResource, before: Mapping[str, str], after: Mapping[str, str]) -> list[ConfigRecord]:
    """Return records for the keys that differ."""
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    removed = [name for name in before if name not in after]
    return [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in (*changed.items(), *((name, None) for name in removed))
    ]
