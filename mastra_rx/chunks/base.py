"""What every chunk is made of: immutable, slotted, typed by pydantic, and nothing of what came is lost.

A run keeps every chunk, so a chunk is a slotted dataclass and not a `BaseModel`: a kept text delta weighs about 150
bytes instead of 1,100. What the attributes can't give back (keys nobody knows, an explicit `null`, the wire's own
spelling of a date) stays in `extra`, so that `to_wire` returns exactly what came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Self, TypeVar, cast

from pydantic import AliasGenerator, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass
from typing_extensions import dataclass_transform

T = TypeVar("T")

Json = Any
"""A JSON value as Python has it: dict, list, str, int, float, bool or None."""

JsonObject = dict[str, Any]


def wire_name(name: str) -> str:
    """The wire's name of an attribute: `run_id` is `runId`, `from_` is `from`."""
    return to_camel(name.removesuffix("_"))


_CONFIG = ConfigDict(
    alias_generator=AliasGenerator(alias=wire_name),
    populate_by_name=True,
    defer_build=True,  # a validator is built when its type is first seen: most runs see a dozen of the types
    protected_namespaces=(),
)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field, dataclasses.field))
def wire(cls: type[T]) -> type[T]:
    """Make `cls` a part of the wire's vocabulary: a slotted dataclass that pydantic validates.

    Equality and `repr` are inherited from `Wire`, which knows of `extra`.
    """
    return cast("type[T]", dataclass(slots=True, kw_only=True, eq=False, repr=False, config=_CONFIG)(cls))


class _Extra:
    __slots__ = ("_extra",)
    _extra: JsonObject | None


_set_extra = cast("Any", _Extra)._extra.__set__  # past the immutability of Wire


@wire
class Wire(_Extra):
    """A piece of a chunk: attributes in snake_case, the wire's camelCase as aliases, unknown fields in `extra`."""

    @model_validator(mode="wrap")
    @classmethod
    def _keep_the_rest(cls, data: Any, handler: Any) -> Any:
        made = handler(data)
        if made is not data:  # not one that is only passed through
            known: JsonObject = data
            _set_extra(made, (rest_of(cls, known, made) or None) if type(data) is dict else None)
        return made

    @property
    def extra(self) -> Mapping[str, Json]:
        """What came beside the known fields, by the wire's names."""
        return self._extra or {}

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(
            f"{type(self).__name__} is immutable, since every view shares it; dataclasses.replace makes a changed copy"
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __replace__(self, /, **changes: Any) -> Self:
        """A copy with some attributes changed; `extra` comes along."""
        copy = dataclasses.replace(cast("Any", self), **changes)
        changed = {wire_name(name) for name in changes}
        return copy.with_extra({key: value for key, value in self.extra.items() if key not in changed})

    def with_extra(self, extra: Mapping[str, Json]) -> Self:
        """This piece, just made and not yet given to anybody, with what stands beside its fields."""
        _set_extra(self, dict(extra) or None)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Wire) or other.__class__ is not self.__class__:
            return NotImplemented
        return self.extra == other.extra and all(
            getattr(self, name) == getattr(other, name) for name in fields_of(self.__class__).values()
        )

    __hash__ = None  # type: ignore[assignment]  # payloads hold dicts

    def __repr__(self) -> str:
        shown = [
            f"{name}={value!r}"
            for name in fields_of(self.__class__).values()
            if (value := getattr(self, name)) is not None and name != "type"
        ]
        if self.extra:
            shown.append(f"extra={self.extra!r}")
        return f"{self.__class__.__name__}({', '.join(shown)})"

    def __getstate__(self) -> JsonObject:
        state = {name: getattr(self, name) for name in fields_of(self.__class__).values()}
        return {**state, "_extra": self._extra}

    def __setstate__(self, state: JsonObject) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


@wire
class BaseChunk(Wire):
    """What all chunks have. Only `type` is sure to be there: see "Real-world exceptions" in Mastra's chunk types."""

    type: str
    run_id: str | None = None
    """Which run the chunk belongs to; task manager and processor chunks come without."""
    from_: str | None = None
    """`AGENT`, `USER`, `SYSTEM`, `WORKFLOW` or `NETWORK`; newer servers may say more."""
    trace_id: str | None = None
    """The trace of the run, when tracing is on (ChunkType reference; not in 1.71.0)."""
    metadata: JsonObject | None = None


_fields: dict[type, dict[str, str]] = {}
_always: dict[type, frozenset[str]] = {}


def fields_of(cls: type) -> dict[str, str]:
    """The fields of a wire type: the wire's name -> the attribute's name."""
    known = _fields.get(cls)
    if known is None:
        known = _fields[cls] = {wire_name(f.name): f.name for f in dataclasses.fields(cls)}
    return known


def always_there(cls: type) -> frozenset[str]:
    """The wire's names of the fields without a default: `null` is a value of theirs."""
    known = _always.get(cls)
    if known is None:
        known = _always[cls] = frozenset(
            wire_name(f.name)
            for f in dataclasses.fields(cls)
            if f.name == "type" or (f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING)
        )
    return known


def rest_of(cls: type, data: JsonObject, made: object) -> JsonObject:
    """The part of `data` that the attributes of `made` would not give back."""
    known, required = fields_of(cls), always_there(cls)
    rest: JsonObject = {}
    for key, value in data.items():
        name = known.get(key)
        if name is None:
            rest[key] = value
        elif value is None:
            if key not in required:
                rest[key] = value
        elif (held := getattr(made, name)) is not value and (
            held is None  # a validator put it elsewhere, see ToolCallPayload
            or (isinstance(held, datetime) and date_to_wire(held) != value)
        ):
            rest[key] = value
    return rest


def date_to_wire(value: datetime) -> str:
    """A date as JavaScript writes it: ISO 8601 in UTC with milliseconds and a Z."""
    with suppress(OverflowError):  # a day before the first year, or after the last
        value = value.astimezone(UTC)
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _date_from_wire(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value / 1000, UTC)  # epoch milliseconds, as steps and workflows send them
        except (OverflowError, OSError):
            raise ValueError(f"{value} is no moment that a date can hold") from None
    return value


def _bytes_from_wire(value: object) -> object:
    if isinstance(value, dict):  # what JSON.stringify makes of a Uint8Array: {"0": 1, "1": 2}
        items = cast("dict[str, int]", value)
        return bytes(items[str(index)] for index in range(len(items)))
    return value


def bytes_to_wire(value: bytes) -> dict[str, int]:
    """Bytes as JavaScript's JSON writes a Uint8Array: an object with index keys."""
    return {str(index): byte for index, byte in enumerate(value)}


Date = Annotated[datetime, BeforeValidator(_date_from_wire), PlainSerializer(date_to_wire, when_used="json")]
"""A moment: on the wire an ISO string or epoch milliseconds."""

Data = Annotated[bytes | str, BeforeValidator(_bytes_from_wire)]
"""File contents: bytes where the provider sent bytes, else a string (base64 or a URL)."""
