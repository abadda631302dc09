"""Checks whether all members have joined their groups before a load starts.

Owns the DescribeGroups requests and the timeout. `job` decides what to do after it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from pybroker.client import Admin, ClientError
from pybroker.client.settings import AdminSettings
from pybroker_spark.load.plan import ConsumerPlan, LoadPlan

_STABLE: Final = "stable"
_PATIENCE_S: Final = 60.0
_NAP_S: Final = 0.1


class JoinedGroups:
    """The consumer groups whose members must have joined before the load starts."""

    def __init__(self, plan: LoadPlan) -> None:
        members = [one for one in plan.clients if isinstance(one, ConsumerPlan) and one.joins_before_start]
        self._expected = Counter((one.bootstrap_servers, one.properties["group.id"]) for one in members)
        self._properties = {one.bootstrap_servers: one.properties for one in members}
        self._deadline: float | None = None
        self._next_s = 0.0

    def are_stable(self, give_up: Callable[[str], None]) -> bool:
        """Return whether every group is stable with all its members. `give_up` is called once, after the timeout."""
        now = time.monotonic()
        if not self._expected or now < self._next_s:
            return not self._expected
        if self._deadline is None:
            self._deadline = now + _PATIENCE_S
        lacking = self._lacking()
        self._next_s = time.monotonic() + _NAP_S
        if lacking and now > self._deadline:
            self._deadline = float("inf")
            give_up(f"{lacking} after {_PATIENCE_S:.0f} s")
        return not lacking

    def _lacking(self) -> str:
        """Return a description of a group that is not ready; empty when all groups are ready."""
        for servers, properties in self._properties.items():
            wanted = {group: count for (there, group), count in self._expected.items() if there == servers}
            try:
                with Admin(servers, AdminSettings.acting(properties)) as admin:
                    found = admin.describe_groups(list(wanted))
            except ClientError as error:
                return str(error)
            for group, count in wanted.items():
                state, members = found[group].state, len(found[group].members)
                if state.lower() != _STABLE or members != count:
                    return f"group {group} is {state} with {members} of {count} members"
        return ""
