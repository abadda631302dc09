"""A value that a request's field cannot hold is named, with its range."""

from __future__ import annotations

import pytest

from pybroker.client.field_ranges import first_misfit
from pybroker.protocol.messages import create_topics as create
from pybroker.protocol.messages import delete_records as delete


def deletion(partition: int, offset: int) -> delete.DeleteRecordsRequest:
    parts = [delete.DeleteRecordsPartition(partition_index=index, offset=offset) for index in (0, partition)]
    return delete.DeleteRecordsRequest(topics=[delete.DeleteRecordsTopic(name="t", partitions=parts)])


@pytest.mark.parametrize(
    ("partition", "offset", "misfit"),
    [
        (2**31 - 1, 2**63 - 1, None),
        (-(2**31), -(2**63), None),
        (2**31, 0, "partitions[1].partition_index: 2147483648: expected a whole number from -2147483648 to 2147483647"),
        (
            0,
            -(2**63) - 1,
            (
                "partitions[0].offset: -9223372036854775809: "
                "expected a whole number from -9223372036854775808 to 9223372036854775807"
            ),
        ),
    ],
)
def test_a_number_beyond_its_field_is_named_with_the_range(partition: int, offset: int, misfit: str | None) -> None:
    expected = None if misfit is None else f"DeleteRecordsRequest: topics[0].{misfit}"
    assert first_misfit(deletion(partition, offset)) == expected


def test_the_elements_of_an_array_have_a_range() -> None:
    assignment = create.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2**31])
    topic = create.CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment])
    misfit = first_misfit(create.CreateTopicsRequest(topics=[topic]))
    assert misfit is not None
    assert misfit.startswith("CreateTopicsRequest: topics[0].assignments[0].broker_ids[1]: 2147483648: expected")
