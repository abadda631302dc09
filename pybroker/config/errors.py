"""The errors of settings.

ConfigError              an invalid value
├── UnknownKeyError      an unknown key
├── RefusedError         a value that Kafka rejects, with its message
└── PropertiesError      a file, or a line of it, that cannot be read
"""

from __future__ import annotations


class ConfigError(ValueError):
    """An invalid setting. The message is one line with the key, its value and the expected value."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name}={value}: expected {expected}")
        self.name = name
        self.value = value
        self.expected = expected


class UnknownKeyError(ConfigError):
    """An unknown key. The message is Kafka's, with the nearest known key."""

    def __init__(self, kind: str, name: str, near: str | None) -> None:
        hint = "" if near is None else f"; is {near} meant?"
        ValueError.__init__(self, f"Unknown {kind} config name: {name}{hint}")
        self.name = name
        self.value = None
        self.expected = f"a {kind} config name{hint}"


class RefusedError(ConfigError):
    """One or several conflicting values that Kafka rejects; the message is Kafka's."""

    def __init__(self, name: str, value: object, sentence: str) -> None:
        ValueError.__init__(self, sentence)
        self.name = name
        self.value = value
        self.expected = sentence


class PropertiesError(ConfigError):
    """A properties file, or a line of it, cannot be read. The message is one line that identifies it."""

    def __init__(self, text: str) -> None:
        ValueError.__init__(self, text)
        self.name = ""
        self.value = None
        self.expected = text
