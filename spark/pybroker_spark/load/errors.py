"""The reasons why a load cannot run.

LoadError +-- ScenarioError       the scenario file +-- TooFewSlotsError    fewer slots than tasks that must run at
once
"""

from __future__ import annotations


class LoadError(Exception):
    """A load that cannot run as requested. The message is for the user."""


class ScenarioError(LoadError):
    """An invalid scenario file. The message has the file, the position and the expected value."""


class TooFewSlotsError(LoadError):
    """The master runs fewer tasks at a time than the load has. The message has the setting to change."""
