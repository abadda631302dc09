"""Shared by AlterConfigs and IncrementalAlterConfigs: validation, the call of the controller, and the wait.

Owns the errors that need the original request: duplicates and unknown brokers. Owns a broker's validation of its own
settings before the controller's, as only the broker knows its static settings (docs/adr/0056). Must not know fields of
the two requests except resources and their keys.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from pybroker.config.key import LONGEST_NUMBER
from pybroker.controller.cluster.configs import RefusedConfigError, changed_configs
from pybroker.handlers.errors import WireError
from pybroker.machine.slices import each
from pybroker.metadata.image import BROKER_LOGGER_RESOURCE, BROKER_RESOURCE
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.controller.cluster.events import ConfigChange
    from pybroker.handlers.context import RequestContext
    from pybroker.machine.slices import Sliced


class ChangedKey(Protocol):
    """A key of a resource in a request."""

    name: str


class ChangedResource(Protocol):
    """A resource in a request."""

    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sequence[ChangedKey]:
        """The changed keys."""


R = TypeVar("R", bound=ChangedResource)


class PartlyChecked(msgspec.Struct, frozen=True):
    """A request of which this broker has handled a part: the `Prepared` of the net package."""

    request: Any
    """The request with the other resources; None if there are none."""
    complete: Callable[[Any], Any]
    """Makes the response to all resources from the controller's response to the others."""


def alter_own(
    request: Any,
    fault_of: Callable[[R], str | None],
    change_of: Callable[[R], ConfigChange],
    respond: Callable[[Any, list[WireError]], Any],
    context: RequestContext,
    alter_here: Callable[[R], WireError | None] = lambda _: None,
) -> PartlyChecked | None:
    """Validate changes against this broker's static settings, and reject unknown brokers. Return None if all are valid.

    `respond` builds the response to a request from the outcomes of its resources. `alter_here` changes a resource of
    this process and returns the outcome, None for a resource of the controller.
    """
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    decided: dict[int, WireError] = {}
    for index, resource in enumerate(request.resources):
        name = resource.resource_name
        if resource.resource_type == BROKER_LOGGER_RESOURCE:
            error = _refusal(resource, times[BROKER_LOGGER_RESOURCE, name], fault_of(resource), context)
            outcome = error or alter_here(resource)
            if outcome is not None:
                decided[index] = outcome
            continue
        if resource.resource_type != BROKER_RESOURCE or not name:
            continue
        error = _refusal(resource, times[BROKER_RESOURCE, name], fault_of(resource), context)
        if error is None and name == str(context.services.config.node_id):
            error = _own_fault(change_of(resource), context)
        if error is not None:
            decided[index] = error
    if not decided:
        return None
    rest = [resource for index, resource in enumerate(request.resources) if index not in decided]

    def complete(response: Any) -> Any:
        others = iter(() if response is None else response.responses)
        outcomes = [decided.get(index) or _outcome(next(others)) for index in range(len(request.resources))]
        return respond(request, outcomes)

    return PartlyChecked(_with_resources(request, rest) if rest else None, complete)


def _own_fault(change: ConfigChange, context: RequestContext) -> WireError | None:
    services = context.services
    before = context.image.configs.of_broker(services.config.node_id)
    try:
        after = changed_configs(before, change, services.config_rules)
    except RefusedConfigError as refusal:
        return WireError(refusal.code, str(refusal))
    fault = services.config_rules.broker_fault(after, broker=services.config.node_id)
    return None if fault is None else WireError(ErrorCode.INVALID_REQUEST, fault)


def _with_resources(request: Any, resources: list[Any]) -> Any:
    rest = copy(request)
    rest.resources = resources
    return rest


def _outcome(resource: Any) -> WireError:
    return WireError(resource.error_code, resource.error_message)


async def change_configs(
    resources: Sequence[R],
    fault_of: Callable[[R], str | None],
    change_of: Callable[[R], ConfigChange],
    context: RequestContext,
    alter_here: Callable[[R], WireError | None] = lambda _: None,
    *,
    validate_only: bool,
) -> list[WireError]:
    """Change each resource independently, and wait until the changes are applied here. Return the outcomes in order.

    `fault_of` returns why a resource's keys are invalid, else None. `change_of` returns the change of a valid resource.
    `alter_here` is as in `alter_own`.
    """
    services = context.services
    outcomes: list[WireError | None] = await services.slices.run(_refusals(resources, fault_of, context))
    outcomes = [outcome or alter_here(resource) for outcome, resource in zip(outcomes, resources, strict=True)]
    requested = [index for index, outcome in enumerate(outcomes) if outcome is None]
    if requested:
        changes = await services.slices.run(each(change_of, [resources[index] for index in requested]))
        results = await services.controller.own().alter_configs(changes, validate_only=validate_only)
        if not validate_only:
            await services.publisher.published(services.image().offset)
        for index, result in zip(requested, results, strict=True):
            outcomes[index] = WireError(result.error_code, result.error_message)
    return [outcome or WireError(ErrorCode.NONE, None) for outcome in outcomes]


def _refusals(
    resources: Sequence[R], fault_of: Callable[[R], str | None], context: RequestContext
) -> Sliced[list[WireError | None]]:
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    outcomes = []
    for resource in resources:
        yield
        here = times[resource.resource_type, resource.resource_name]
        outcomes.append(_refusal(resource, here, fault_of(resource), context))
    return outcomes


def _refusal(resource: ChangedResource, times: int, fault: str | None, context: RequestContext) -> WireError | None:
    names = [config.name for config in resource.configs]
    words = fault
    if times > 1:
        words = "Each resource must appear at most once."
    elif len(set(names)) < len(names):
        words = "Error due to duplicate config keys"
    elif fault is None and resource.resource_type == BROKER_RESOURCE and resource.resource_name:
        words = _broker_fault(resource.resource_name, context)
    return None if words is None else WireError(ErrorCode.INVALID_REQUEST, words)


def _broker_fault(name: str, context: RequestContext) -> str | None:
    """Return why a broker id is invalid, else None. Any registered broker is accepted (docs/adr/0056)."""
    if not name.removeprefix("-").isdecimal() or len(name) > LONGEST_NUMBER:
        return f"Node id must be an integer, but it is: {name}"
    # On controller listeners, and for forwarded requests, the controller rejects unknown brokers.
    if context.role is ListenerRole.BROKER and int(name) not in context.image.cluster.brokers:
        return f"Unexpected broker id, expected {context.services.config.node_id}, but received {name}"
    return None


def null_fault(names: Sequence[str]) -> str | None:
    """Return Kafka's message about keys with an invalid null value, None if there are none."""
    return f"Null value not supported for : {', '.join(names)}" if names else None
