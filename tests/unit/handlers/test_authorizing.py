"""Items of a request are judged one by one, in every API and version that declares them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.handlers.authorizing import checked
from pybroker.handlers.registry import RegisteredApi, every_api
from pybroker.protocol.messages.delete_groups import DeleteGroupsRequest
from pybroker.protocol.schema import fields_of
from pybroker.security.acls import Decision
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import NothingRequired, Requirement, Scope, of_items
from pybroker.security.selectors import Selector, select

MINE, THEIRS = "mine", "theirs"
MINE_ID, THEIRS_ID = bytes([1] * 16), bytes([2] * 16)
CHECK_THEMSELVES = {"AddPartitionsToTxn", "DescribeTopicPartitions", "Metadata", "OffsetFetch"}
"""The APIs whose items do not all stand in a list of the request; tests/security and tests/conformance ask them."""
NAMES = {MINE_ID: MINE, THEIRS_ID: THEIRS}


class AuthorizationRules:
    """Lets everybody do everything to what is named `mine`, and nothing else."""

    version = 1

    def __init__(self) -> None:
        self.requested: list[tuple[Operation, ResourceType, str]] = []

    def follow(self, acls: Any) -> None:
        """Nothing: it knows no entries."""

    def decide(self, _principal: str, _host: str, operation: Operation, kind: ResourceType, name: str) -> Decision:
        self.requested.append((operation, kind, name))
        return Decision(name == MINE, "a test")

    def allows_on_any(self, *_: Any) -> bool:
        return False


def context(version: int, check: AuthorizationRules | None) -> Any:
    topics = SimpleNamespace(by_id={topic_id: SimpleNamespace(name=name) for topic_id, name in NAMES.items()})
    return SimpleNamespace(
        version=version,
        authorizer=check,
        principal="User:alice",
        client_host="10.0.0.1",
        api_key=3,
        image=SimpleNamespace(topics=topics),
    )


def in_lists() -> Iterator[Any]:
    """Every selector of items in a list, with its API, requirement and newest version that has it."""
    for api in every_api():
        if isinstance(api.requires, NothingRequired) or api.name in CHECK_THEMSELVES:
            continue
        for needed in api.requires:
            if needed.scope is not Scope.ITEM or needed.when is not None:
                continue
            for selector in needed.selectors:
                is_in_list = any(step.field and step.field.array for step in selector.steps)
                if needed.resource_type is not ResourceType.CLUSTER and is_in_list:
                    versions = range(api.max_version, api.min_version - 1, -1)
                    version = next(version for version in versions if selector.is_in(version))
                    yield pytest.param(api, needed, selector, version, id=f"{api.name}-{selector}")


@pytest.mark.parametrize(("api", "needed", "selector", "version"), list(in_lists()))
def test_what_is_refused_does_not_come_to_the_handler_and_the_rest_does(
    api: RegisteredApi, needed: Requirement, selector: Selector, version: int
) -> None:
    request, list_name = requested(api, selector)
    arrived: list[Any] = []

    def handle(left: Any, _: Any) -> Any:
        arrived.extend(getattr(left, list_name))
        return SimpleNamespace(__struct_fields__=())

    check = AuthorizationRules()
    before = list(getattr(request, list_name))
    checked(handle, (needed,), lambda left, _version, _error: SimpleNamespace(__struct_fields__=()))(
        request, context(version, check)
    )
    assert arrived == before[1:2]
    names = {name for _, kind, name in check.requested if kind is needed.resource_type}
    assert names == {MINE, THEIRS}


def requested(api: RegisteredApi, selector: Selector) -> tuple[Any, str]:
    """A request that names `theirs`, `mine` and `theirs` where it is selected, and the name of the list of them."""
    steps = selector.steps
    request = api.request_type()
    if steps[0].field is None:
        assert steps[0].where is not None
        setattr(request, steps[0].where.field.__name__, steps[0].where.value)
        steps = steps[1:]
    assert len(steps) <= 2, f"{selector}: judging follows a list and a name in its items"
    outer = steps[0].field
    assert outer is not None
    assert outer.array
    if outer.struct is None:
        setattr(request, outer.name, [THEIRS, MINE, THEIRS])
        return request, outer.name
    items = []
    inner = steps[1].field
    assert inner is not None
    for name, topic_id in ((THEIRS, THEIRS_ID), (MINE, MINE_ID), (THEIRS, THEIRS_ID)):
        item = outer.struct()
        setattr(item, inner.name, topic_id if inner.type == "uuid" else name)
        if steps[0].where is not None:
            setattr(item, steps[0].where.field.__name__, steps[0].where.value)
        items.append(item)
    setattr(request, outer.name, items)
    return request, outer.name


def test_an_api_that_judges_itself_says_so_and_asks() -> None:
    authorizing = set()
    for api in every_api():
        module = import_module(f"pybroker.handlers.{api.module}")
        if "authorizes_itself=True" in inspect.getsource(module):
            authorizing.add(api.name)
            assert {"may", "may_by_id", "authorizer"} & set(vars(module)), api.name
    assert authorizing == CHECK_THEMSELVES


def test_a_selector_begins_at_its_request_and_some_version_has_its_fields() -> None:
    for api in every_api():
        if not isinstance(api.requires, NothingRequired):
            for selector in (selector for needed in api.requires for selector in needed.selectors):
                assert selector.request_type is api.request_type, f"{api.name}: {selector}"
                versions = range(api.min_version, api.max_version + 1)
                assert any(map(selector.is_in, versions)), f"{api.name}: {selector}"


NEEDED = (of_items(Operation.DELETE, ResourceType.GROUP, select(DeleteGroupsRequest.groups_names)),)


def deletion(*names: str) -> Any:
    (api,) = (one for one in every_api() if one.name == "DeleteGroups")
    assert {field.name for field in fields_of(api.request_type)} == {"groups_names"}
    return api, api.request_type(groups_names=list(names))


def test_without_an_authorizer_the_handler_gets_the_request_itself() -> None:
    _, request = deletion(MINE, THEIRS)
    assert checked(lambda left, _: left, NEEDED, None)(request, context(2, None)) is request


def test_answers_become_one_whether_the_handlers_comes_at_once_or_later() -> None:
    api, request = deletion(THEIRS, MINE, "others")

    def at_once(left: Any, _: Any) -> Any:
        return api.respond_failure(left, 2, SimpleNamespace(code=0, message=None))

    async def later(left: Any, context: Any) -> Any:
        return at_once(left, context)

    outcomes = [
        checked(at_once, NEEDED, api.respond_failure)(request, context(2, AuthorizationRules())),
        asyncio.run(checked(later, NEEDED, api.respond_failure)(request, context(2, AuthorizationRules()))),
    ]
    for outcome in outcomes:
        assert [(one.group_id, int(one.error_code)) for one in outcome.results] == [
            (MINE, 0),
            (THEIRS, 30),
            ("others", 30),
        ]


def test_a_request_of_which_nothing_is_left_does_not_come_to_the_handler() -> None:
    api, request = deletion(THEIRS)

    def unreachable(*_: Any) -> Any:
        raise AssertionError

    outcome = checked(unreachable, NEEDED, api.respond_failure)(request, context(2, AuthorizationRules()))
    assert [int(one.error_code) for one in outcome.results] == [30]


def test_a_name_is_asked_about_once_however_often_it_stands_there() -> None:
    _, request = deletion(*[THEIRS] * 1000)
    check = AuthorizationRules()
    checked(lambda left, _: left, NEEDED, lambda left, *_: left)(request, context(2, check))
    assert len(check.requested) == 1
