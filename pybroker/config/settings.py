"""An immutable set of values, parsed from text by the keys that its class declares.

Owns the rule that all values are validated before any is used, and which values were given (DescribeConfigs
distinguishes them from defaults). Must not know particular keys.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from pybroker.config.key import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Settings:
    """Values as attributes; immutable.

    `given` has the given texts by Kafka name, without unknown keys. `unknown` has the undeclared keys, which are no
    error, as in Kafka (`suggestion` returns the nearest known key).
    """

    keys: ClassVar[dict[str, Key[Any]]] = {}
    given: Mapping[str, str]
    unknown: tuple[str, ...]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        keys: dict[str, Key[Any]] = {}
        for base in reversed(cls.__mro__):
            for value in vars(base).values():
                if isinstance(value, Key):
                    keys[value.name] = value
        cls.keys = keys

    def __init__(self, given: Mapping[str, str]) -> None:
        """Parse and validate the texts in `given`. Raises ConfigError for the first invalid one."""
        values = self.__dict__
        values["given"] = {name: text for name, text in given.items() if name in self.keys}
        values["unknown"] = tuple(name for name in given if name not in self.keys)
        for name, key in self.keys.items():
            text = given.get(name)
            values[key.attribute] = self.default_of(key) if text is None else key.value_of(text)

    def overlaid(self, texts: Mapping[str, str]) -> Self:
        """Return a copy with these values; `given` is unchanged. Raises ConfigError."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for name, text in texts.items():
            key = self.keys[name]
            copy.__dict__[key.attribute] = key.value_of(text)
        return copy

    def default_of(self, key: Key[Any]) -> Any:
        """Return the value of a key that was not given."""
        return key.default

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: {name} cannot be set")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def items(self) -> Iterator[tuple[Key[Any], Any]]:
        """Yield every key with its value, sorted by name."""
        for name in sorted(self.keys):
            key = self.keys[name]
            yield key, self.__dict__[key.attribute]


def suggestion(unknown: str, known: Mapping[str, object]) -> str | None:
    """Return the known name that is nearest to an unknown one, None where none is near."""
    near = get_close_matches(unknown.lower(), known, n=1, cutoff=0.8)
    return near[0] if near else None
