"""StreamsGroupTopology (23) of `__consumer_offsets`: the topology of a streams group."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, string, versions


class StreamsGroupTopologyKey(Message, api_key=23, kind="coordinator-key", versions="0", flexible="none"):
    """The group."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""


class TopicConfig(Struct):
    """A configuration of a topic."""

    key: Annotated[str, string, versions("0+"), about("The key.")] = ""
    value: Annotated[str, string, versions("0+"), about("The value.")] = ""


class TopicInfo(Struct):
    """An internal topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[
        int, int32, versions("0+"), about("Number of partitions; 0 if the broker decides, and for changelog topics.")
    ] = 0
    replication_factor: Annotated[int, int16, versions("0+"), about("Replication factor; 0 for the default.")] = 0
    topic_configs: Annotated[list[TopicConfig], versions("0+"), about("Configuration of the topic.")] = []


class CopartitionGroup(Struct):
    """Source topics that must have the same number of partitions, as indexes into the subtopology's lists."""

    source_topics: Annotated[list[int], int16, versions("0+"), about("Indexes of source topics.")] = []
    source_topic_regex: Annotated[list[int], int16, versions("0+"), about("Indexes of patterns.")] = []
    repartition_source_topics: Annotated[list[int], int16, versions("0+"), about("Indexes of repartition topics.")] = []


class Subtopology(Struct):
    """A part of a topology whose tasks are independent of other parts."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    source_topics: Annotated[list[str], string, versions("0+"), about("Source topics.")] = []
    source_topic_regex: Annotated[list[str], string, versions("0+"), about("Patterns of source topics.")] = []
    state_changelog_topics: Annotated[list[TopicInfo], versions("0+"), about("Changelog topics of its stores.")] = []
    repartition_sink_topics: Annotated[
        list[str], string, versions("0+"), about("Repartition topics that it writes.")
    ] = []
    repartition_source_topics: Annotated[
        list[TopicInfo], versions("0+"), about("Repartition topics that it reads.")
    ] = []
    copartition_groups: Annotated[
        list[CopartitionGroup], versions("0+"), about("Source topics that must have the same number of partitions.")
    ] = []


class StreamsGroupTopologyValue(Message, api_key=23, kind="coordinator-value", versions="0", flexible="0+"):
    """The subtopologies, with their topics."""

    epoch: Annotated[int, int32, versions("0+"), about("The epoch of the topology.")] = 0
    subtopologies: Annotated[list[Subtopology], versions("0+"), about("The subtopologies.")] = []
