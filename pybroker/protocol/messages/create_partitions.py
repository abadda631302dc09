"""CreatePartitions (37): adds partitions to existing topics."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, boolean, int16, int32, map_key, nullable, string, versions


class CreatePartitionsAssignment(Struct):
    """The replicas of one new partition."""

    broker_ids: Annotated[list[int], int32, versions("0+"), about("Its replicas, the preferred leader first.")] = []


class CreatePartitionsTopic(Struct):
    """A topic and its new number of partitions."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    count: Annotated[int, int32, versions("0+"), about("How many partitions the topic is to have.")] = 0
    assignments: Annotated[
        list[CreatePartitionsAssignment] | None,
        versions("0+"),
        nullable("0+"),
        about("Where the new replicas go; null to let the controller place them."),
    ] = []


class CreatePartitionsRequest(Message, api_key=37, kind="request", versions="0-3", flexible="2+"):
    """Requests the controller to add partitions."""

    topics: Annotated[list[CreatePartitionsTopic], versions("0+"), about("The topics to enlarge.")] = []
    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 0
    validate_only: Annotated[bool, boolean, versions("0+"), about("Whether to check without creating.")] = False


class CreatePartitionsTopicResult(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = None


class CreatePartitionsResponse(Message, api_key=37, kind="response", versions="0-3", flexible="2+"):
    """The result for each topic."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    results: Annotated[list[CreatePartitionsTopicResult], versions("0+"), about("One result for each topic.")] = []
