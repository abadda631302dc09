"""What a load cannot be run for.

LoadError
+-- ScenarioError       the file that describes a mix
+-- TooFewSlotsError    fewer slots than tasks that have to run at once
"""

from __future__ import annotations


class LoadError(Exception):
    """A load that cannot run as it was asked for; the text is for the person who asked."""


class ScenarioError(LoadError):
    """A scenario's file with something wrong in it; the text names the file, the place and what would be right."""


class TooFewSlotsError(LoadError):
    """The master runs fewer tasks at a time than the load has; the text says what to set."""
