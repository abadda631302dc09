"""What can be wrong with a setting.

ConfigError          a value that cannot be used
├── UnknownKeyError  a key that there is not
├── RefusedError     what Kafka refuses, in its words
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


class UnknownKeyError(ConfigError):
    """There is no key of that name; the text is Kafka's, and names the nearest key that there is."""

    def __init__(self, kind: str, name: str, near: str | None) -> None:
        hint = "" if near is None else f"; is {near} meant?"
        ValueError.__init__(self, f"Unknown {kind} config name: {name}{hint}")
        self.name = name
        self.value = None
        self.expected = f"a {kind} config name{hint}"


class RefusedError(ConfigError):
    """A value, or several that do not agree, which Kafka refuses; the text is its sentence."""

    def __init__(self, name: str, value: object, sentence: str) -> None:
        ValueError.__init__(self, sentence)
        self.name = name
        self.value = value
        self.expected = sentence


class PropertiesError(ConfigError):
    """A properties file, or a line of it, cannot be read; the text is one line saying which."""

    def __init__(self, text: str) -> None:
        ValueError.__init__(self, text)
        self.name = ""
        self.value = None
        self.expected = text
