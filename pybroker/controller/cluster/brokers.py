"""Registering, fencing and unregistering brokers (KIP-631).

Owns incarnations, and the partition changes when brokers register or leave. A heartbeat sets the timer that ends the
broker's session. It writes no record, so a new active controller gives every broker a grace period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.availability import after_leaving, after_returning, after_unclean_stop
from pybroker.controller.cluster.broker_control import BROKER_CONTROL, BrokerControl, BrokerTrigger, control_of
from pybroker.controller.cluster.elections import leads_anything
from pybroker.controller.cluster.events import (
    Heartbeat,
    HeartbeatResult,
    RegisterBroker,
    RegisteredBroker,
    Result,
    SessionExpired,
    UnregisterBroker,
)
from pybroker.controller.cluster.log_directories import usable_brokers
from pybroker.machine.machine import Outcome, Timer
from pybroker.metadata.features import LEFT_OUT
from pybroker.metadata.replica_directories import directory_of, is_online, is_reserved
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.kafka_json import id_text
from pybroker.protocol.messages.records.broker_registration_change import BrokerRegistrationChangeRecord
from pybroker.protocol.messages.records.register_broker import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from pybroker.protocol.messages.records.unregister_broker import UnregisterBrokerRecord

if TYPE_CHECKING:
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import BrokerRegistration, MetadataImage
    from pybroker.protocol.schema import Message

_FENCE, _UNFENCE, _SHUT_DOWN = 1, -1, 1
_STOOD_STILL_MS = 1_000
"""If a timer fires this late, the process or its machine was suspended."""


def session_key(broker_id: int) -> str:
    """Return the key of the session timeout of a broker."""
    return f"session of broker {broker_id}"


def grace_key(broker_id: int) -> str:
    """Return the key of the timer within which a broker must contact a new active controller."""
    return f"grace of broker {broker_id}"


def build_graces(image: MetadataImage, settings: ClusterSettings, now: int) -> list[Timer]:
    """Return the timers that a new active controller starts with: every unfenced broker may be alive."""
    return [
        _expiry(grace_key(broker.id), broker.id, broker.epoch, now + settings.session_timeout_ms)
        for broker in image.cluster.brokers.values()
        if not broker.fenced
    ]


def register_broker(
    image: MetadataImage, event: RegisterBroker, settings: ClusterSettings, now: int
) -> Outcome[Message, RegisteredBroker]:
    """Decide about a broker's registration; another incarnation is accepted only after the session has ended."""
    before = image.cluster.brokers.get(event.broker_id)
    same = before is not None and before.incarnation_id == event.incarnation_id
    if before is not None and not same and event.session_is_alive:
        message = f"Another broker is registered with the broker id {event.broker_id}, and it is alive."
        return Outcome((), RegisteredBroker(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message))
    refusal = _refusal(image, event)
    if refusal is not None:
        return Outcome((), refusal)
    epoch = event.epoch if before is None else max(event.epoch, before.epoch + 1)
    record = _registration(event, epoch)
    records: list[Message] = [record]
    if same and before is not None:
        # The earlier response was lost: the incarnation keeps its state, and gets a new epoch.
        record.fenced, record.in_controlled_shutdown = before.fenced, before.in_controlled_shutdown
    elif not event.fenced:
        records += _begin_at_once(image, event, settings)
    elif before is not None:
        usable, is_lost = usable_brokers(image, but=event.broker_id), _may_have_lost(image, event)
        records += after_leaving(image, event.broker_id, usable, settings, is_lost=is_lost)
    # The broker in this process, which registers unfenced, lives as long as the controller and sends no heartbeats.
    session = _session(event.broker_id, epoch, settings, now) if event.fenced else _no_session(event.broker_id)
    return Outcome(tuple(records), RegisteredBroker(broker_epoch=epoch), session)


def _refusal(image: MetadataImage, event: RegisterBroker) -> RegisteredBroker | None:
    """Return the error of a registration, None if it is valid."""
    if event.broker_id < 0:
        fault: str | None = f"Invalid broker id {event.broker_id}: expected 0 or more"
    elif not event.listeners:
        fault = "No listeners specified for the broker"
    else:
        fault = _directory_fault(image, event)
    if fault is not None:
        return RegisteredBroker(ErrorCode.INVALID_REGISTRATION, fault)
    for name, level in image.features.levels.items():
        low, high = event.features.get(name, (0, 0))
        if level > 0 and not low <= level <= high and name not in LEFT_OUT:
            message = (
                f"Unable to register because the broker does not support finalized version {level} of {name}. The "
                f"broker wants a version between {low} and {high}, inclusive."
            )
            return RegisteredBroker(ErrorCode.UNSUPPORTED_VERSION, message)
    return None


def _directory_fault(image: MetadataImage, event: RegisterBroker) -> str | None:
    """Return what is wrong with a broker's log directories: duplicate, reserved, or another broker's ids; else None."""
    directories = set(event.log_dirs)
    if len(directories) < len(event.log_dirs):
        return "Duplicate directory ID in request"
    if any(map(is_reserved, directories)):
        return "Reserved directory ID in request"
    for broker in image.cluster.brokers.values():
        if broker.id != event.broker_id and not directories.isdisjoint(broker.log_dirs):
            directory = next(one for one in broker.log_dirs if one in directories)
            return f"Broker {broker.id} is already registered with directory {id_text(directory)}"
    return None


def _begin_at_once(image: MetadataImage, event: RegisterBroker, settings: ClusterSettings) -> list[Message]:
    """Return the changes of partitions for a new incarnation that registers unfenced.

    The broker leads no partition in a log directory that it lacks. It becomes leader of partitions without one. The
    leader epoch of the others increases, unless its previous incarnation stopped cleanly.
    """
    usable = usable_brokers(image, {event.broker_id: event.log_dirs}, plus=event.broker_id)
    placed = {
        directory_of(partition, event.broker_id)
        for topic in image.topics.by_id.values()
        for partition in topic.partitions.values()
        if event.broker_id in partition.replicas
    }
    lacking = {directory for directory in placed if not is_online(directory, event.log_dirs)}
    leaving = after_leaving(image, event.broker_id, usable, settings, lacking)
    returning = after_returning(image, usable, settings)
    if not _may_have_lost(image, event):
        return [*leaving, *returning]
    return [*leaving, *after_unclean_stop(image, event.broker_id, usable), *returning]


def _may_have_lost(image: MetadataImage, event: RegisterBroker) -> bool:
    """Return whether records may be lost: the previous incarnation did not stop cleanly (KIP-966)."""
    before = image.cluster.brokers.get(event.broker_id)
    return before is not None and event.previous_broker_epoch != before.epoch


def unregister_broker(
    image: MetadataImage, event: UnregisterBroker, settings: ClusterSettings
) -> Outcome[Message, Result]:
    """Decide about the removal of a broker's registration."""
    broker = image.cluster.brokers.get(event.broker_id)
    if broker is None:
        code = ErrorCode.BROKER_ID_NOT_REGISTERED
        return Outcome((), Result(code, f"Broker ID {event.broker_id} is not currently registered"))
    leaving = after_leaving(image, broker.id, usable_brokers(image, but=broker.id), settings, is_lost=True)
    forgotten = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return Outcome((*leaving, forgotten), Result(), _no_session(broker.id))


def heartbeat(
    image: MetadataImage, event: Heartbeat, settings: ClusterSettings, now: int
) -> Outcome[Message, HeartbeatResult]:
    """Decide about a heartbeat of a broker."""
    broker = image.cluster.brokers.get(event.broker_id)
    if broker is None:
        return Outcome((), HeartbeatResult(ErrorCode.BROKER_ID_NOT_REGISTERED, "The broker is not registered."))
    if broker.epoch != event.broker_epoch:
        message = f"Expected broker epoch {broker.epoch}, but got broker epoch {event.broker_epoch}"
        return Outcome((), HeartbeatResult(ErrorCode.STALE_BROKER_EPOCH, message))
    # The registration's offset is its broker epoch, or slightly higher in the same commit.
    is_caught_up = event.metadata_offset is None or event.metadata_offset >= broker.epoch
    trigger = BrokerTrigger.WANTS_TO_RUN
    if event.want_shut_down:
        leads = leads_anything(image, broker.id)
        trigger = BrokerTrigger.WANTS_TO_STOP_AND_LEADS if leads else BrokerTrigger.WANTS_TO_STOP
    elif event.want_fence or (broker.fenced and not is_caught_up):
        trigger = BrokerTrigger.WANTS_TO_BE_FENCED
    state = BROKER_CONTROL.following(control_of(broker), trigger)
    reply = HeartbeatResult(
        is_fenced=state in (BrokerControl.FENCED, BrokerControl.SHUTDOWN_NOW),
        should_shut_down=state is BrokerControl.SHUTDOWN_NOW,
        is_caught_up=is_caught_up,
    )
    return Outcome(_become(image, broker, state, settings), reply, _session(broker.id, broker.epoch, settings, now))


def expire_session(
    image: MetadataImage, event: SessionExpired, settings: ClusterSettings, now: int
) -> Outcome[Message, None]:
    """Fence a silent broker. If the controller itself was suspended, the broker gets another session timeout."""
    broker = image.cluster.brokers.get(event.broker_id)
    if broker is None or broker.epoch != event.broker_epoch:
        return Outcome((), None)
    if event.due_ms is not None and now - event.due_ms >= _STOOD_STILL_MS:
        # Heartbeats received meanwhile are not processed yet: all brokers would be fenced together.
        # Only once: a controller whose timers are always late still fences brokers.
        again = Timer(
            session_key(broker.id), now + settings.session_timeout_ms, SessionExpired(broker.id, broker.epoch)
        )
        return Outcome((), None, (again, Timer(grace_key(broker.id), None)))
    state = BROKER_CONTROL.following(control_of(broker), BrokerTrigger.FELL_SILENT)
    # Also if the failure was detected before the session timeout: another incarnation may register at once.
    return Outcome(_become(image, broker, state, settings), None, _no_session(broker.id))


def _become(
    image: MetadataImage, broker: BrokerRegistration, state: BrokerControl, settings: ClusterSettings
) -> tuple[Message, ...]:
    before = control_of(broker)
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    if state is before:
        return ()
    if state is BrokerControl.UNFENCED:
        change.fenced = _UNFENCE
        return (change, *after_returning(image, usable_brokers(image, plus=broker.id), settings))
    if state is BrokerControl.CONTROLLED_SHUTDOWN:
        change.in_controlled_shutdown = _SHUT_DOWN
    elif before is BrokerControl.FENCED:
        return ()
    else:
        change.fenced = _FENCE
    return (change, *after_leaving(image, broker.id, usable_brokers(image, but=broker.id), settings))


def _session(broker_id: int, epoch: int, settings: ClusterSettings, now: int) -> tuple[Timer, ...]:
    expiry = _expiry(session_key(broker_id), broker_id, epoch, now + settings.session_timeout_ms)
    return (expiry, Timer(grace_key(broker_id), None))


def _expiry(key: str, broker_id: int, epoch: int, due_ms: int) -> Timer:
    return Timer(key, due_ms, SessionExpired(broker_id, epoch, due_ms))


def _no_session(broker_id: int) -> tuple[Timer, ...]:
    return (Timer(session_key(broker_id), None), Timer(grace_key(broker_id), None))


def _registration(event: RegisterBroker, epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=event.broker_id,
        incarnation_id=event.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            BrokerEndpoint(name=name, host=host, port=port, security_protocol=event.security_protocols.get(name, 0))
            for name, (host, port) in event.listeners.items()
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in event.features.items()
        ],
        rack=event.rack,
        fenced=event.fenced,
        log_dirs=list(event.log_dirs),
    )
