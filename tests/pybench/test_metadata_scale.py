"""The controller at scale, small: every figure is there, and a broker's death is seen."""

from __future__ import annotations

from pybench.metadata_scale import measure_metadata_scale
from pybench.scenario import read_scenarios


def test_every_figure_of_the_scenario_is_measured() -> None:
    command, figures = measure_metadata_scale(1_000)
    assert command == "python -m pybench.metadata_scale 1000"
    scenario = next(one for one in read_scenarios() if one.id == "51-metadata-scale")
    assert set(scenario.figures) <= figures.keys()
    assert figures["leads"] == figures["records"] == 1_000
