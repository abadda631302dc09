"""Settings of the group machine for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.group.settings import GroupSettings, build_settings


def group_settings(**changes: Any) -> GroupSettings:
    """Return the broker's default settings with changes."""
    return msgspec.structs.replace(build_settings(BrokerConfig({})), **changes)
