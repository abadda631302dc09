"""The metadata record FeatureLevelRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, int16, string, versions


class FeatureLevelRecord(Message, api_key=12, kind="metadata", versions="0", flexible="0+"):
    """FeatureLevelRecord."""

    name: Annotated[str, string, versions("0+")] = ""
    feature_level: Annotated[int, int16, versions("0+")] = 0
