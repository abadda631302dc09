"""The group machine's settings, as tests want them."""

from __future__ import annotations

from typing import Any

import msgspec

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.group.settings import GroupSettings, build_settings


def group_settings(**changes: Any) -> GroupSettings:
    """The broker's defaults, with some changed."""
    return msgspec.structs.replace(build_settings(BrokerConfig({})), **changes)
