"""One file per Kafka API, registered in one place, its docstring its data sheet (style 2, 3)."""

from __future__ import annotations

import ast
import re

import pytest

from pybroker.handlers import registry
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.listener_role import ListenerRole
from pybroker.security.operations import OPERATIONS, ResourceType
from pybroker.security.requirements import NothingRequired, Scope
from tests.support import repository

HEADINGS = ["Key", "Versions", "Behaviour", "Version notes", "Not done"]
MODULES = registry.handler_modules()
APIS = registry.every_api()
CLUSTER = ResourceType.CLUSTER
AT_CONTROLLERS = {
    "AllocateProducerIds",
    "AlterPartition",
    "AssignReplicasToDirs",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ControllerRegistration",
    "Envelope",
    "FetchSnapshot",
    "RaftMessages",
    "UpdateRaftVoter",
}
"""The APIs that Kafka's schemas give to listeners of controllers alone, and the quorum's frames."""
EVERYWHERE = {
    "AddRaftVoter",
    "AlterClientQuotas",
    "AlterConfigs",
    "AlterPartitionReassignments",
    "AlterUserScramCredentials",
    "ApiVersions",
    "CreatePartitions",
    "CreateAcls",
    "CreateDelegationToken",
    "CreateTopics",
    "DeleteAcls",
    "DescribeAcls",
    "DeleteTopics",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeQuorum",
    "ElectLeaders",
    "ExpireDelegationToken",
    "Fetch",
    "IncrementalAlterConfigs",
    "ListPartitionReassignments",
    "RemoveRaftVoter",
    "RenewDelegationToken",
    "SaslAuthenticate",
    "SaslHandshake",
    "UnregisterBroker",
    "UpdateFeatures",
}
"""The APIs that Kafka's schemas give to listeners of both roles."""
DECIDED_WHERE_REQUESTED = {
    "ApiVersions",
    "DescribeAcls",
    "DescribeCluster",
    "DescribeConfigs",
    "Fetch",
    "SaslAuthenticate",
    "SaslHandshake",
}
"""Those of `EVERYWHERE` that every node answers by itself."""


def module_of(api: registry.RegisteredApi) -> str:
    """The name that a handler of this API has to have, at least where its module's name begins."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower()


def test_handler_modules_and_registered_apis_are_the_same_set() -> None:
    assert sorted(api.module for api in APIS) == MODULES
    assert [api.module for api in APIS if not api.module.startswith(module_of(api))] == []


def test_every_registered_key_is_kafkas_key_of_that_name() -> None:
    for api in APIS:
        assert ApiKey(api.key).name.replace("_", "").lower() == api.name.lower()


def test_an_api_is_served_on_the_listeners_that_kafka_serves_it_on() -> None:
    served: dict[str, ListenerRole] = {}
    for api in APIS:
        served[api.name] = served.get(api.name, ListenerRole(0)) | api.listeners
    assert {name for name, role in served.items() if role is ListenerRole.CONTROLLER} <= AT_CONTROLLERS
    assert {name for name, role in served.items() if role is ListenerRole.BOTH} <= EVERYWHERE
    half = {name for name, role in served.items() if role is ListenerRole.BROKER} & (AT_CONTROLLERS | EVERYWHERE)
    assert half <= {"Fetch"}, "served on brokers' listeners alone"


def test_what_the_active_controller_decides_is_forwarded() -> None:
    assert {api.name for api in APIS if api.forwarded} == {
        api.name for api in APIS if api.listeners is ListenerRole.BOTH and api.name not in DECIDED_WHERE_REQUESTED
    }


@pytest.mark.parametrize("module", MODULES)
def test_a_handlers_docstring_is_its_data_sheet(module: str) -> None:
    sheet = repository.docstring(f"pybroker/handlers/{module}.py") or ""
    headings = re.findall(r"^([A-Z][a-z ]+)$", sheet, re.M)
    assert headings == HEADINGS


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_data_sheet_has_the_key_and_versions_that_are_registered(api: registry.RegisteredApi) -> None:
    sheet = repository.docstring(f"pybroker/handlers/{api.module}.py") or ""
    key = re.search(r"^Key\n +(\d+)", sheet, re.M)
    versions = re.search(r"^Versions\n +(\d+)-(\d+)", sheet, re.M)
    assert key
    assert int(key[1]) == api.key
    assert versions
    assert (int(versions[1]), int(versions[2])) == (api.min_version, api.max_version)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_an_api_declares_the_operations_and_resources_it_requires_or_why_there_are_none(
    api: registry.RegisteredApi,
) -> None:
    if isinstance(api.requires, NothingRequired):
        assert len(api.requires.reason.split()) > 4, "say why everybody may ask for it"
        return
    assert api.requires
    for needed in api.requires:
        assert needed.operation in OPERATIONS[needed.resource_type], "the resource has no such operation"
        is_named = needed.resource_type is CLUSTER or bool(needed.selectors)
        assert is_named != (needed.scope is Scope.RESPONSE and needed.resource_type is not CLUSTER), (
            "say by fields which resources the request names; what the answer names is none of them"
        )


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_version_of_a_request_has_a_field_that_names_the_resource(api: registry.RegisteredApi) -> None:
    needed = () if isinstance(api.requires, NothingRequired) else api.requires
    for one in needed:
        found = {
            version: [selector for selector in one.selectors if selector.is_in(version)]
            for version in range(api.min_version, api.max_version + 1)
        }
        for selector in one.selectors if one.resource_type is not CLUSTER else ():
            last = selector.steps[-1].field
            assert last is not None
            assert last.type.removeprefix("[]") in {"string", "uuid"}, f"{selector}: no name is found there"
        if one.selectors and one.resource_type in {ResourceType.TOPIC, ResourceType.GROUP}:
            assert [version for version, selectors in found.items() if not selectors] == []


def test_no_handler_says_itself_how_long_a_client_is_to_wait() -> None:
    # The pipeline does (pybroker/net/pipeline.py); Metadata's answers are encoded in parts and reach it as bytes.
    saying = [
        path
        for path in repository.files_under("pybroker/handlers", "pybroker/coordinator", suffix=".py")
        for node in ast.walk(repository.tree(path))
        if (isinstance(node, ast.keyword) and node.arg == "throttle_time_ms")
        or (isinstance(node, ast.Attribute) and node.attr == "throttle_time_ms")
    ]
    assert saying == ["pybroker/handlers/metadata.py"]


def test_no_handler_knows_another() -> None:
    handlers = {f"pybroker.handlers.{module}" for module in MODULES}
    climbing = [
        f"{path}:{line} {name}"
        for path in repository.files_under("pybroker/handlers", suffix=".py")
        for line, name in repository.imported_modules(path)
        if name.rsplit(".", 1)[0] in handlers
    ]
    assert climbing == []
