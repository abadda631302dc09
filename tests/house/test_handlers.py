"""One file per Kafka API, registered in one place, its docstring its data sheet (style 2, 3)."""

from __future__ import annotations

import ast
import re

import pytest

from pybroker.handlers import registry
from pybroker.protocol.api_keys import ApiKey
from pybroker.security.operations import OPERATIONS, ResourceType
from pybroker.security.requirements import NothingRequired, Scope, steps_of
from tests.support import repository

HEADINGS = ["Key", "Versions", "Behaviour", "Version notes", "Not done"]
MODULES = registry.handler_modules()
APIS = registry.registered_apis().values()
CLUSTER = ResourceType.CLUSTER


def module_of(api: registry.RegisteredApi) -> str:
    """The name that a handler of this API has to have."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower()


def test_handler_modules_and_registered_apis_are_the_same_set() -> None:
    assert sorted(module_of(api) for api in registry.registered_apis().values()) == MODULES


def test_every_registered_key_is_kafkas_key_of_that_name() -> None:
    for key, api in registry.registered_apis().items():
        assert ApiKey(key).name.replace("_", "").lower() == api.name.lower()


@pytest.mark.parametrize("module", MODULES)
def test_a_handlers_docstring_is_its_data_sheet(module: str) -> None:
    sheet = repository.docstring(f"pybroker/handlers/{module}.py") or ""
    headings = re.findall(r"^([A-Z][a-z ]+)$", sheet, re.M)
    assert headings == HEADINGS


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_data_sheet_has_the_key_and_versions_that_are_registered(api: registry.RegisteredApi) -> None:
    sheet = repository.docstring(f"pybroker/handlers/{module_of(api)}.py") or ""
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
        is_named = needed.resource_type is CLUSTER or bool(needed.fields)
        assert is_named != (needed.scope is Scope.ANSWER and needed.resource_type is not CLUSTER), (
            "say by fields which resources the request names; what the answer names is none of them"
        )


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_version_of_a_request_has_a_field_that_names_the_resource(api: registry.RegisteredApi) -> None:
    needed = () if isinstance(api.requires, NothingRequired) else api.requires
    for one in needed:
        found = {
            version: [steps for path in one.fields if (steps := steps_of(api.request_type, path, version)) is not None]
            for version in range(api.min_version, api.max_version + 1)
        }
        for steps in (steps for ways in found.values() for steps in ways if one.resource_type is not CLUSTER):
            last = steps[-1].field
            assert last is not None
            assert last.type.removeprefix("[]") in {"string", "uuid"}, f"{one.fields}: no name is found there"
        if one.fields and one.resource_type in {ResourceType.TOPIC, ResourceType.GROUP}:
            assert [version for version, ways in found.items() if not ways] == []


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
