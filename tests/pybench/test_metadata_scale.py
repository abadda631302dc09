"""The controller at scale, small: every figure is there, and a broker's death is seen."""

from __future__ import annotations

from pybench.figures import FIGURES
from pybench.metadata_scale import measure_metadata_scale


def test_every_figure_is_measured() -> None:
    command, figures = measure_metadata_scale(1_000)
    assert command == "python -m pybench.metadata_scale measure DIRECTORY 1000"
    shown = {"load_s", "failover_s", "create_s", "one_change_ms", "resident_mib", "peak_mib"}
    assert shown <= figures.keys() & FIGURES.keys()
    assert 0 < figures["resident_mib"] <= figures["peak_mib"]
    assert figures["leads"] == figures["records"] == 1_000
