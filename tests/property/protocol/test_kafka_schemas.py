"""Every declaration says what Kafka's own schema says, field by field: the JSON files in Kafka's jars."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pybench.peers import java
from pybroker.protocol.api_keys import FIRST_OWN_KEY, ApiKey
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.kafka_json import kafka_name
from pybroker.protocol.messages.group_records import GROUP_RECORDS
from pybroker.protocol.messages.records import METADATA_RECORDS
from pybroker.protocol.messages.share_records import SHARE_RECORDS
from pybroker.protocol.messages.transaction_records import TRANSACTION_RECORDS
from pybroker.protocol.schema import MAX_VERSION, FieldSpec, Message, Struct, VersionRange, fields_of
from tests.support import programs
from tests.support.declarations import OWN_FIELDS, declared, of_kafka

pytestmark = pytest.mark.java


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    """Every message schema in the jars, by message name. Those of streams groups are of the release with version 1."""
    found, newer = _schemas_in(java.fetch_jars()), _schemas_in(java.fetch_streams_group_jars())
    return found | {name: newer[name] for name in found if name.startswith("StreamsGroup")}


def _schemas_in(jars: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for jar in sorted(jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"common/(message|metadata)/\w+\.json", name):
                    text = archive.read(name).decode()
                    schema = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))
                    found[schema["name"]] = schema
    return found


@pytest.fixture(autouse=True)
def _needs_kafkas_jars() -> None:
    programs.kafka_tools()


#: Messages of which versions are served that Kafka 4 has dropped: the first of Kafka's.
OLDER_VERSIONS = {
    "ProduceRequest": 3,
    "ProduceResponse": 3,
    "FetchRequest": 4,
    "FetchResponse": 4,
    "ListOffsetsRequest": 1,
    "ListOffsetsResponse": 1,
    "DescribeLogDirsRequest": 1,
    "DescribeLogDirsResponse": 1,
}
#: Fields that no later version has.
ONLY_OLDER = {"max_num_offsets", "old_style_offsets"}
#: Structs of which Kafka has two with one name, in a request and in its response, that are in one module here.
TWINS = {
    "[]DescribedTopicData": "[]TopicData",
    "[]DescribedPartitionData": "[]PartitionData",
    "[]AlteredTopicData": "[]TopicData",
    "[]AlteredPartitionData": "[]PartitionData",
    "[]AlteredEntity": "[]EntryData",
    "[]AssignedDirectoryData": "[]DirectoryData",
    "[]AssignedTopicData": "[]TopicData",
    "[]AssignedPartitionData": "[]PartitionData",
    "[]FetchedTopicSnapshot": "[]TopicSnapshot",
    "[]FetchedPartitionSnapshot": "[]PartitionSnapshot",
}


@pytest.mark.parametrize("cls", of_kafka(), ids=lambda cls: cls.__name__)
def test_a_declaration_equals_kafkas_schema(cls: type[Message]) -> None:
    schema = _schemas()[cls.__name__]
    spec = cls.__message__
    assert spec.kind == schema["type"]
    assert spec.api_key == schema.get("apiKey", -1)
    first = OLDER_VERSIONS.get(cls.__name__, spec.versions.first)
    assert str(VersionRange(first, spec.versions.last)) == str(VersionRange.parse(schema["validVersions"]))
    assert str(spec.flexible) == str(VersionRange.parse(schema["flexibleVersions"]))
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    _compare(cls, schema["fields"], common)


def _compare(cls: type[Struct], wanted: list[dict[str, Any]], common: dict[str, Any]) -> None:
    ours = [
        field
        for field in fields_of(cls)
        if field.name not in ONLY_OLDER and (cls.__name__, field.name) not in OWN_FIELDS
    ]
    assert [_squeezed(field.name) for field in ours] == [_squeezed(field["name"]) for field in wanted]
    for field, theirs in zip(ours, wanted, strict=True):
        where = f"{cls.__name__}.{field.name}"
        assert _ours(field) == _theirs(theirs), where
        assert field.about, f"{where} says not what it means"
        if field.struct is not None:
            _compare(field.struct, theirs.get("fields") or common[theirs["type"].removeprefix("[]")], common)


def _ours(field: FieldSpec) -> dict[str, Any]:
    default = field.default
    return {
        "type": TWINS.get(field.type, field.type),
        "versions": str(field.versions),
        "nullable": str(field.nullable),
        "tag": field.tag,
        "tagged": str(field.tagged),
        "default": {} if isinstance(default, Struct) and default == type(default)() else default,
        "ignorable": field.ignorable,
        "map_key": field.map_key,
        "flexible": field.flexible,
    }


def _theirs(field: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": field["type"],
        "versions": str(VersionRange.parse(_versions(field))),
        "nullable": str(VersionRange.parse(field.get("nullableVersions", "none"))),
        "tag": field.get("tag"),
        "tagged": str(VersionRange.parse(field.get("taggedVersions", "none"))),
        "default": _default(field),
        "ignorable": bool(field.get("ignorable", False)),
        "map_key": bool(field.get("mapKey", False)),
        "flexible": field.get("flexibleVersions") != "none",
    }


def _versions(field: dict[str, Any]) -> str:
    """The versions a field exists in: Kafka leaves them out where they are those of its tag."""
    return str(field.get("versions", field.get("taggedVersions")))


def _default(field: dict[str, Any]) -> Any:
    """What Kafka's generated class starts a field with."""
    reported, kind = field.get("default", ""), field["type"]
    if str(reported) == "null":
        return None
    if kind.startswith("[]"):
        return []
    zeros: dict[str, Any] = {"string": str(reported), "bytes": b"", "records": b"", "uuid": bytes(16), "float64": 0.0}
    if kind in zeros:
        return zeros[kind]
    if kind == "bool":
        return str(reported).lower() == "true"
    if kind[0].isupper():
        return {}
    return int(str(reported), 0) if reported != "" else 0


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


def test_every_metadata_record_has_kafkas_number() -> None:
    schemas = _schemas()
    assert {number: name for number, name in METADATA_RECORDS.items() if schemas[name]["apiKey"] != number} == {}


def test_the_metadata_records_are_all_that_kafka_has() -> None:
    theirs = {schema["apiKey"] for schema in _schemas().values() if schema["type"] == "metadata"}
    assert set(METADATA_RECORDS) == theirs


@pytest.mark.parametrize("records", [TRANSACTION_RECORDS, SHARE_RECORDS])
def test_every_record_of_a_coordinator_has_kafkas_number(records: dict[int, str]) -> None:
    schemas = _schemas()
    for number, name in records.items():
        assert (schemas[f"{name}Key"]["apiKey"], schemas[f"{name}Value"]["apiKey"]) == (number, number)


@pytest.mark.parametrize("cls", [cls for cls in declared() if cls.__message__.kind not in ("request", "response")])
def test_json_names_are_kafkas(cls: type[Message]) -> None:
    if cls.__name__ not in _schemas():
        return
    schema = _schemas()[cls.__name__]
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    assert list(_differing_names(cls, schema["fields"], common)) == []


def _differing_names(cls: type[Struct], wanted: list[dict[str, Any]], common: dict[str, Any]) -> Iterator[str]:
    for field, theirs in zip(fields_of(cls), wanted, strict=True):
        if kafka_name(field.name) != theirs["name"][0].lower() + theirs["name"][1:]:
            yield f"{cls.__name__}.{field.name}"
        if field.struct is not None:
            fields = theirs.get("fields") or common[theirs["type"].removeprefix("[]")]
            yield from _differing_names(field.struct, fields, common)


def test_every_group_record_has_kafkas_number() -> None:
    schemas = _schemas()
    for number, (name, _) in GROUP_RECORDS.items():
        assert (schemas[f"{name}Key"]["apiKey"], schemas[f"{name}Value"]["apiKey"]) == (number, number)


def test_api_keys_and_names_are_kafkas() -> None:
    theirs = {
        schema["apiKey"]: schema["name"].removesuffix("Request")
        for schema in _schemas().values()
        if schema["type"] == "request" and schema.get("apiKey") is not None
    }
    for number, name in theirs.items():
        assert _squeezed(ApiKey(number).name) == name.lower()
    assert {int(key) for key in ApiKey if key < FIRST_OWN_KEY} == set(theirs)


def test_versions_end_where_kafkas_do() -> None:
    assert all(cls.__message__.versions.last < MAX_VERSION for cls in declared())


def test_error_codes_are_kafkas(tmp_path: Path) -> None:
    """Code, name and whether it may be tried again, as Kafka's client library has them."""
    source = tmp_path / "Codes.java"
    source.write_text(_ERRORS)
    done = subprocess.run(
        ["java", "-cp", f"{java.fetch_jars()}/*", str(source)], capture_output=True, text=True, check=True
    )
    theirs = {
        int(code): (name, retriable == "true") for code, name, retriable in map(str.split, done.stdout.splitlines())
    }
    assert {int(code): (code.name, code.retriable) for code in ErrorCode} == theirs


_ERRORS = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

public class Codes {
    public static void main(String[] none) {
        for (Errors error : Errors.values())
            System.out.println(
                error.code() + " " + error.name() + " " + (error.exception() instanceof RetriableException));
    }
}
"""
