"""Messages as Kafka's JSON."""

from __future__ import annotations

import pytest

from pybroker.protocol.kafka_json import java_double, json_of, json_text, kafka_name
from pybroker.protocol.messages.records.client_quota import ClientQuotaRecord, EntityData
from pybroker.protocol.messages.records.partition import PartitionRecord
from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord


def test_fields_have_kafkas_names_and_shapes() -> None:
    quota = ClientQuotaRecord(entity=[EntityData(entity_type="user", entity_name=None)], key="k", value=1048576.0)
    assert json_text(json_of(quota, 0)) == (
        '{"entity":[{"entityType":"user","entityName":null}],"key":"k","value":1048576.0,"remove":false}'
    )


def test_bytes_and_ids_are_base64_and_text_is_as_it_is() -> None:
    credential = UserScramCredentialRecord(name='ü"', mechanism=1, salt=b"\xff\xfe", iterations=4096)
    text = json_text(json_of(credential, 0))
    assert text.startswith('{"name":"ü\\"","mechanism":1,"salt":"//4=",')
    assert json_of(PartitionRecord(topic_id=b"\xff" * 16), 0)["topicId"] == "_" * 21 + "w"


def test_a_tagged_field_is_written_only_where_it_says_something() -> None:
    assert "eligibleLeaderReplicas" not in json_of(PartitionRecord(), 2)
    assert json_of(PartitionRecord(eligible_leader_replicas=[3]), 2)["eligibleLeaderReplicas"] == [3]
    assert "directories" not in json_of(PartitionRecord(), 0)


def test_names() -> None:
    assert [kafka_name(name) for name in ("topic_id", "isr", "zk_migration_ready")] == [
        "topicId",
        "isr",
        "zkMigrationReady",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-1.5, "-1.5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.25, "1.2345678925E8"),
        (0.0001, "1.0E-4"),
        (1e300, "1.0E300"),
        (float("inf"), "Infinity"),
    ],
)
def test_numbers_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text
