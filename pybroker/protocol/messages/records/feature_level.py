"""The metadata record FeatureLevelRecord (12)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, string, versions


class FeatureLevelRecord(Message, api_key=12, kind="metadata", versions="0", flexible="0+"):
    """A feature has a new level."""

    name: Annotated[str, string, versions("0+"), about("The feature's name.")] = ""
    feature_level: Annotated[int, int16, versions("0+"), about("The level the cluster runs with; 0 takes it away.")] = 0
