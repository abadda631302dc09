"""Average and maximum of a measured value since the start of its thread."""

from __future__ import annotations


class Measured:
    """The number, sum and maximum of values."""

    __slots__ = ("count", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.most = 0.0

    def record(self, value: float) -> None:
        """Add a value."""
        self.count += 1
        self.total += value
        self.most = max(self.most, value)

    def metrics(self, name: str) -> dict[str, float]:
        """Return `name-avg` and `name-max`: 0 without a value."""
        return {f"{name}-avg": self.total / self.count if self.count else 0.0, f"{name}-max": self.most}
