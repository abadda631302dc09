"""The delta of brokers and controllers.

Applies RegisterBrokerRecord, UnregisterBrokerRecord, BrokerRegistrationChangeRecord and RegisterControllerRecord.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.metadata.errors import RecordError
from pybroker.metadata.image import BrokerRegistration, ClusterImage, ControllerRegistration

if TYPE_CHECKING:
    from pybroker.protocol.messages.records.broker_registration_change import BrokerRegistrationChangeRecord
    from pybroker.protocol.messages.records.register_broker import RegisterBrokerRecord
    from pybroker.protocol.messages.records.register_controller import RegisterControllerRecord
    from pybroker.protocol.messages.records.unregister_broker import UnregisterBrokerRecord


class ClusterDelta:
    """The changed brokers and controllers.

    `changed` maps a broker id to its registration, or to None if it is unregistered.
    """

    __slots__ = ("_base", "_kept", "changed", "controllers")

    def __init__(self, base: ClusterImage) -> None:
        self._base = base
        self.changed: dict[int, BrokerRegistration | None] = {}
        self.controllers: dict[int, ControllerRegistration] = {}
        # Controllers of the base image, unless `controllers` has a newer registration.
        self._kept = base.controllers

    def apply_register(self, record: RegisterBrokerRecord) -> None:
        """Add a broker, or replace its older incarnation."""
        self.changed[record.broker_id] = BrokerRegistration(
            id=record.broker_id,
            incarnation_id=record.incarnation_id,
            epoch=record.broker_epoch,
            listeners={point.name: (point.host, point.port) for point in record.end_points},
            security_protocols={point.name: point.security_protocol for point in record.end_points},
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=tuple(record.log_dirs),
            features={
                feature.name: (feature.min_supported_version, feature.max_supported_version)
                for feature in record.features
            },
        )

    def apply_unregister(self, record: UnregisterBrokerRecord) -> None:
        """Remove a broker."""
        self._incarnation(record.broker_id, record.broker_epoch, record)
        self.changed[record.broker_id] = None

    def apply_change(self, record: BrokerRegistrationChangeRecord) -> None:
        """Fence or unfence a broker, start its controlled shutdown, or replace its log directories."""
        broker = self._incarnation(record.broker_id, record.broker_epoch, record)
        self.changed[record.broker_id] = msgspec.structs.replace(
            broker,
            # Kafka's BrokerRegistrationFencingChange: 1 fences, -1 unfences, 0 leaves it.
            fenced=broker.fenced if record.fenced == 0 else record.fenced > 0,
            in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown > 0,
            log_dirs=tuple(record.log_dirs) or broker.log_dirs,
        )

    def apply_register_controller(self, record: RegisterControllerRecord) -> None:
        """Add a controller, or replace its older incarnation."""
        self.controllers[record.controller_id] = ControllerRegistration(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            listeners={point.name: (point.host, point.port) for point in record.end_points},
            security_protocols={point.name: point.security_protocol for point in record.end_points},
            features={
                feature.name: (feature.min_supported_version, feature.max_supported_version)
                for feature in record.features
            },
        )

    def become(self, image: ClusterImage) -> None:
        """Record the changes from the base to `image`, in a delta without changes."""
        for broker in self._base.brokers.keys() | image.brokers.keys():
            registration = image.brokers.get(broker)
            if registration != self._base.brokers.get(broker):
                self.changed[broker] = registration
        if image.controllers != self._base.controllers:
            self._kept, self.controllers = {}, dict(image.controllers)

    def build(self) -> ClusterImage:
        """Return the new image; the base itself without changes."""
        brokers, controllers = self._base.brokers, self._kept
        if not self.changed and not self.controllers and controllers is self._base.controllers:
            return self._base
        if self.changed:
            became = {**brokers, **self.changed}
            brokers = {key: broker for key, broker in sorted(became.items()) if broker is not None}
        if self.controllers:
            controllers = dict(sorted({**controllers, **self.controllers}.items()))
        return ClusterImage(brokers=brokers, controllers=controllers)

    def _incarnation(self, broker_id: int, epoch: int, record: msgspec.Struct) -> BrokerRegistration:
        broker = self.changed[broker_id] if broker_id in self.changed else self._base.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise RecordError(f"{record}: the broker has no incarnation with this id")
        return broker
