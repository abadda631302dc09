"""What can be wrong with a setting.

ConfigError          a value that cannot be used
└── PropertiesError  a file, or a line of it, that cannot be read
"""

from __future__ import annotations


class ConfigError(ValueError):
    """One setting is wrong; the text is one line naming the key, its value and what would be right."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name}={value}: expected {expected}")
        self.name = name
        self.value = value
        self.expected = expected


class PropertiesError(ConfigError):
    """A properties file, or a line of it, cannot be read; the text is one line saying which."""

    def __init__(self, text: str) -> None:
        ValueError.__init__(self, text)
        self.name = ""
        self.value = None
        self.expected = text
