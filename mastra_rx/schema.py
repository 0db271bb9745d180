"""A schema in any form: one `validate` and one JSON schema.

schema_of(Recipe)                      a pydantic model, dataclass, TypedDict, Enum, Literal, list[Recipe], ...
schema_of(TypeAdapter(list[Recipe]))
schema_of({"type": "object", ...})     JSON schema, its draft by `$schema`
"""

from __future__ import annotations

import collections.abc
import inspect
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, TypeVar, cast, get_args, get_origin
from urllib.parse import unquote

import pydantic

from .errors import OutputValidationError, SchemaError

T = TypeVar("T")

Kind = Literal["object", "array", "enum"]
"""How Mastra asks a model for the value: as it is, as `{"elements": [...]}`, or as `{"result": "..."}`."""


class Schema(Generic[T]):
    """What values must look like. Two kinds: of a Python type, validated by pydantic, and of a JSON schema."""

    @property
    def json_schema(self) -> Mapping[str, Any]:
        """The schema as JSON schema."""
        raise NotImplementedError

    def validate(self, value: Any) -> T:
        """`value` as the type that the schema stands for. Raises `OutputValidationError` where it does not fit."""
        raise NotImplementedError

    @property
    def element(self) -> Schema[Any] | None:
        """The schema of an array's elements, where it says one for all."""
        raise NotImplementedError

    @cached_property
    def kind(self) -> Kind:
        root = resolved(self.json_schema, self.json_schema)
        if root.get("type") == "array":
            return "array"
        return "enum" if isinstance(root.get("enum"), list) else "object"

    @cached_property
    def choices(self) -> list[Any]:
        """The values of an enum."""
        return list(resolved(self.json_schema, self.json_schema).get("enum", ()))


_ARRAYS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
_SAID_BY_VALIDATORS = frozenset({"value_error", "assertion_error", "missing"})


class _TypeSchema(Schema[T]):
    """Of a type that pydantic knows."""

    def __init__(self, adapter: pydantic.TypeAdapter[T], spec: Any = None) -> None:
        self._adapter = adapter
        self._spec = spec

    @cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return self._adapter.json_schema()

    def validate(self, value: Any) -> T:
        try:
            return self._adapter.validate_python(value)
        except pydantic.ValidationError as first:
            if all(item["type"] in _SAID_BY_VALIDATORS for item in first.errors(include_url=False)):
                raise _misfit(value, _sentences(first)) from first
            try:  # what JSON may do and Python may not, in strict types: a date as text, say
                return self._adapter.validate_json(json.dumps(value))
            except (pydantic.ValidationError, ValueError, TypeError, RecursionError):
                raise _misfit(value, _sentences(first)) from first
            except Exception as error:
                raise _misfit(value, [f"root: {type(error).__name__}: {error}"]) from error
        except Exception as error:  # a validator's own
            raise _misfit(value, [f"root: {type(error).__name__}: {error}"]) from error

    @cached_property
    def element(self) -> Schema[Any] | None:
        spec = self._spec
        while get_origin(spec) is Annotated:
            spec = get_args(spec)[0]
        if get_origin(spec) in _ARRAYS:
            first, *more = get_args(spec) or (Any,)
            if not more or more == [...]:
                return schema_of(first)
        return _element_of(self)


class _JsonSchema(Schema[Any]):
    """Of a JSON schema."""

    def __init__(self, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> None:
        self._schema = schema
        self._root = schema if root is None else root

    @property
    def json_schema(self) -> Mapping[str, Any]:
        return _with_definitions(self._schema, self._root)

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator, exceptions, validators

        root = dict(self._root)
        if not isinstance(root.get("$schema", ""), str):
            raise SchemaError("not a JSON schema: its $schema is not a string")
        cls = validators.validator_for(root, default=Draft202012Validator)
        try:
            cls.check_schema(root)
        except exceptions.SchemaError as error:
            raise SchemaError(f"not a JSON schema: {error.message} (at {error.json_path})") from error
        validator: Any = cls(root, format_checker=cls.FORMAT_CHECKER)
        return validator if self._schema is self._root else validator.evolve(schema=self._schema)

    def check(self) -> None:
        """Raises `SchemaError` where the schema is none."""
        try:
            _ = self._validator
            references = list(_references(self._root))
        except RecursionError:
            raise SchemaError("not a JSON schema: nested too deep, or it contains itself (use $ref)") from None
        if "$id" not in self._root:
            for ref in references:
                if ref.startswith("#/") and not _points(ref, self._root):
                    raise SchemaError(f"not a JSON schema: {ref!r} refers to no schema")

    def validate(self, value: Any) -> Any:
        """As Mastra's validators do: defaults are filled in, and keys left out that the schema does not allow."""
        from referencing.exceptions import Unresolvable

        try:
            value = _prepared(value, self._schema, self._root)
            errors = sorted(
                self._validator.iter_errors(value),
                key=lambda error: [(isinstance(key, str), key) for key in error.absolute_path],
            )
        except RecursionError as error:
            raise _misfit(value, ["root: nested too deep"]) from error
        except Unresolvable as error:
            raise SchemaError(f"the schema cannot be followed: {error}") from error
        except (ArithmeticError, ValueError, TypeError) as error:  # numbers that are too large for jsonschema
            raise _misfit(value, [f"root: cannot be checked: {error}"]) from error
        if errors:
            raise _misfit(value, [f"{_path(error.absolute_path)}: {error.message}" for error in errors])
        return value

    @cached_property
    def element(self) -> Schema[Any] | None:
        return _element_of(self)


def schema_of(spec: Any) -> Schema[Any]:
    """The schema that `spec` stands for: a type that pydantic knows, a `TypeAdapter`, or a JSON schema as a dict.

    Raises `SchemaError` where it is none of these.
    """
    if isinstance(spec, Schema):
        return cast("Schema[Any]", spec)
    if isinstance(spec, Mapping):
        schema = _JsonSchema(cast("Mapping[str, Any]", spec))
        schema.check()
        return schema
    if isinstance(spec, str | bytes | int | float | list | pydantic.BaseModel) or inspect.isroutine(spec):
        raise SchemaError(f"a schema is a type, a pydantic.TypeAdapter or a JSON schema as a dict, not {spec!r}")
    try:
        if isinstance(spec, pydantic.TypeAdapter):
            adapter = cast("pydantic.TypeAdapter[Any]", spec)
            schema = _TypeSchema(adapter, getattr(adapter, "_type", None))
        else:
            schema = _TypeSchema(pydantic.TypeAdapter(spec), spec)
        _ = schema.json_schema
        return schema
    except Exception as error:
        raise SchemaError(f"{spec!r} is not a type that pydantic can validate: {error}") from error


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` with the `$ref` at its top followed into the same document."""
    seen = 0
    while isinstance(ref := schema.get("$ref"), str) and ref.startswith("#") and seen < 32:
        target: Any = root
        for part in ref.lstrip("#/").split("/") if ref != "#" else ():
            inside: Mapping[str, Any] = cast("Mapping[str, Any]", target) if isinstance(target, Mapping) else {}
            target = inside.get(part.replace("~1", "/").replace("~0", "~"), {})
        schema, seen = cast("Mapping[str, Any]", target if isinstance(target, Mapping) else {}), seen + 1
    return schema


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        known = cast("Mapping[str, Any]", schema)
        if isinstance(known.get("$ref"), str):
            yield known["$ref"]
        for key, part in known.items():
            if key not in ("const", "default", "enum", "examples"):
                yield from _references(part)
    elif isinstance(schema, list):
        for part in cast("list[Any]", schema):
            yield from _references(part)


def _points(ref: str, root: Any) -> bool:
    for part in unquote(ref[2:]).split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(root, list):
            items = cast("list[Any]", root)
            root = items[int(part)] if part.isdecimal() and len(part) < 9 and int(part) < len(items) else None
        else:
            root = cast("Mapping[str, Any]", root).get(part) if isinstance(root, Mapping) else None
        if root is None:
            return False
    return isinstance(root, Mapping | bool)


def _element_of(schema: Schema[Any]) -> Schema[Any] | None:
    root = schema.json_schema
    items = resolved(root, root).get("items")
    return _JsonSchema(cast("Mapping[str, Any]", items), root) if isinstance(items, Mapping) else None


def _with_definitions(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    shared = {key: root[key] for key in ("$defs", "definitions", "$schema") if key in root and key not in schema}
    return {**shared, **schema}


def _prepared(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    if not isinstance(schema, Mapping):
        return value
    schema = resolved(cast("Mapping[str, Any]", schema), root)
    if isinstance(value, list) and "items" in schema:
        return [_prepared(item, schema["items"], root) for item in cast("list[Any]", value)]
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return cast("Any", value)
    known = cast("Mapping[str, Any]", properties)
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    kept = {
        key: _prepared(item, known.get(key), root)
        for key, item in cast("dict[str, Any]", value).items()
        if key in known or not closed
    }
    defaults: dict[str, Any] = {
        key: cast("Mapping[str, Any]", part)["default"]
        for key, part in known.items()
        if isinstance(part, Mapping) and "default" in part
    }
    return {**{key: deepcopy(default) for key, default in defaults.items() if key not in kept}, **kept}


def _misfit(value: Any, errors: list[str]) -> OutputValidationError:
    text = "\n".join(f"- {error}" for error in errors[:20])
    more = f"\n- and {len(errors) - 20} more" if len(errors) > 20 else ""
    first = errors[0].partition(":")[0].partition(".")[0] if errors else ""
    index = int(first) if isinstance(value, list) and first.isdigit() else None
    message = f"Structured output validation failed:\n{text}{more}"
    return OutputValidationError(message, value=value, errors=errors, index=index)


def _sentences(error: pydantic.ValidationError) -> list[str]:
    return [f"{_path(item['loc'])}: {item['msg']}" for item in error.errors(include_url=False)]


def _path(keys: Any) -> str:
    return ".".join(str(key) for key in keys) or "root"
