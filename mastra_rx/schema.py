"""A schema in any form: one `validate` and one JSON schema.

schema_of(Recipe)                      a pydantic model, dataclass, TypedDict, Enum, Literal, list[Recipe], ...
schema_of(TypeAdapter(list[Recipe]))
schema_of({"type": "object", ...})     JSON schema, its draft by `$schema`
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

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


class _TypeSchema(Schema[T]):
    """Of a type that pydantic knows."""

    def __init__(self, adapter: TypeAdapter[T], spec: Any = None) -> None:
        self._adapter = adapter
        self._spec = spec

    @cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return self._adapter.json_schema()

    def validate(self, value: Any) -> T:
        try:
            return self._adapter.validate_python(value)
        except ValidationError as first:
            try:  # what JSON may do and Python may not, in strict types: a date as text, say
                return self._adapter.validate_json(json.dumps(value))
            except (ValidationError, ValueError, TypeError, RecursionError):
                raise _misfit(value, _sentences(first)) from first

    @cached_property
    def element(self) -> Schema[Any] | None:
        if get_origin(self._spec) in (list, tuple, set, frozenset):
            first, *more = get_args(self._spec) or (Any,)
            if not more or more == [...]:
                return schema_of(first)
        return _element_of(self)


class _JsonSchema(Schema[Any]):
    """Of a JSON schema."""

    def __init__(self, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> None:
        self._schema = schema if root is None else _with_definitions(schema, root)

    @property
    def json_schema(self) -> Mapping[str, Any]:
        return self._schema

    @cached_property
    def _validator(self) -> Any:
        import jsonschema

        cls = jsonschema.validators.validator_for(dict(self._schema), default=jsonschema.Draft202012Validator)
        try:
            cls.check_schema(dict(self._schema))
        except jsonschema.SchemaError as error:
            raise SchemaError(f"not a JSON schema: {error.message} (at {error.json_path})") from error
        return cls(dict(self._schema), format_checker=cls.FORMAT_CHECKER)

    def check(self) -> None:
        """Raises `SchemaError` where the schema is none."""
        _ = self._validator

    def validate(self, value: Any) -> Any:
        """As Mastra's validators do: defaults are filled in, and keys left out that the schema does not allow."""
        import jsonschema

        try:
            value = _prepared(value, self._schema, self._schema)
            errors = sorted(
                self._validator.iter_errors(value), key=lambda error: [str(key) for key in error.absolute_path]
            )
        except (jsonschema.exceptions._WrappedReferencingError, RecursionError) as error:
            raise SchemaError(f"the schema cannot be followed: {error}") from error
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
    if isinstance(spec, TypeAdapter):
        return _TypeSchema(cast("TypeAdapter[Any]", spec), getattr(spec, "_type", None))
    if isinstance(spec, str | bytes | int | float | list) or (isinstance(spec, BaseModel)):
        raise SchemaError(f"a schema is a type, a TypeAdapter or a JSON schema as a dict, not {spec!r}")
    try:
        return _TypeSchema(TypeAdapter(spec), spec)
    except Exception as error:
        raise SchemaError(f"{spec!r} is not a type that pydantic can validate: {error}") from error


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` with the `$ref` at its top followed into the same document."""
    seen = 0
    while isinstance(ref := schema.get("$ref"), str) and ref.startswith("#") and seen < 32:
        target: Any = root
        for part in ref.lstrip("#/").split("/") if ref != "#" else ():
            target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
        schema, seen = cast("Mapping[str, Any]", target), seen + 1
    return schema


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
        return value
    known = cast("Mapping[str, Any]", properties)
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    kept = {
        key: _prepared(item, known.get(key), root)
        for key, item in cast("dict[str, Any]", value).items()
        if key in known or not closed
    }
    defaults = {key: part["default"] for key, part in known.items() if isinstance(part, Mapping) and "default" in part}
    return {**{key: default for key, default in defaults.items() if key not in kept}, **kept}


def _misfit(value: Any, errors: list[str]) -> OutputValidationError:
    text = "\n".join(f"- {error}" for error in errors[:20])
    more = f"\n- and {len(errors) - 20} more" if len(errors) > 20 else ""
    first = errors[0].partition(":")[0].partition(".")[0] if errors else ""
    index = int(first) if isinstance(value, list) and first.isdigit() else None
    message = f"Structured output validation failed:\n{text}{more}"
    return OutputValidationError(message, value=value, errors=errors, index=index)


def _sentences(error: ValidationError) -> list[str]:
    return [f"{_path(item['loc'])}: {item['msg']}" for item in error.errors(include_url=False)]


def _path(keys: Any) -> str:
    return ".".join(str(key) for key in keys) or "root"
