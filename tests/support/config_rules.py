"""Configuration rules for the cluster machine in tests. They reject the key or value `bad`."""

from __future__ import annotations

from collections.abc import Mapping


class BadIsWrong:
    """Rejects the key or value `bad`. Only `cleanup.policy` is a list."""

    def topic_fault(self, configs: Mapping[str, str], /) -> str | None:
        return next((f"{name} must not be bad" for name, value in configs.items() if "bad" in (name, value)), None)

    def broker_fault(self, configs: Mapping[str, str], /, *, broker: int | None) -> str | None:
        fault = self.topic_fault(configs)
        return None if fault is None else f"{fault} ({'of all' if broker is None else 'own'})"

    def group_fault(self, configs: Mapping[str, str], /) -> str | None:
        return self.topic_fault(configs)

    def min_insync_replicas(self, configs: Mapping[str, str], /) -> int:
        return int(configs.get("min.insync.replicas", 1))

    def elects_uncleanly(self, configs: Mapping[str, str], /) -> bool:
        return configs.get("unclean.leader.election.enable") == "true"

    def list_inherited(self, _resource_type: int, name: str, /) -> tuple[str, ...] | None:
        return ("delete",) if name == "cleanup.policy" else None
