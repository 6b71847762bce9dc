"""From a handler's type hints to its input schema and back to typed arguments (MT-2, MT-3)."""

import copy
import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any, get_type_hints

from asgiref.sync import async_to_sync
from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaError, core_schema

from apps.api import schemas


class SignatureError(TypeError):
    """The function has none of the three forms that a handler may have."""


class _PlainSchema(GenerateJsonSchema):
    """Pydantic's schema with a decimal as the decimal string that it is on the wire: a double would lose cents."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a handler takes its input. `model` is None where the schema is explicit: the handler then gets the dict itself."""

    model: Any = None

    @cached_property
    def adapter(self) -> TypeAdapter[Any] | None:
        return None if self.model is None else TypeAdapter(self.model)

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The input schema: references inlined, no titles, an optional field without its null branch."""
        if self.adapter is None:
            return {}
        return schemas.plain(self.adapter.json_schema(schema_generator=_PlainSchema))

    def typed(self, value: dict[str, Any]) -> Any:
        """The validated JSON object as the handler's own type. Raises pydantic.ValidationError."""
        return value if self.adapter is None else self.adapter.validate_python(value)

    def plain(self, typed: Any, given: dict[str, Any]) -> dict[str, Any]:
        """The typed input as JSON again, defaults put in: what is stored of it. `given` is the object that `typed` was made from.

        A field that was left out and is None stays out: the schema has no null branch for it.
        """
        if self.adapter is None:
            return copy.deepcopy(typed)
        found: dict[str, Any] = _without_absent(self.adapter.dump_python(typed, mode="json", by_alias=True), given)
        return found


def _without_absent(value: Any, given: Any) -> Any:
    if isinstance(value, dict):
        known = given if isinstance(given, dict) else {}
        return {
            name: _without_absent(part, known.get(name))
            for name, part in value.items()
            if part is not None or name in known
        }
    if isinstance(value, list) and isinstance(given, list) and len(value) == len(given):
        return [_without_absent(part, of) for part, of in zip(value, given, strict=True)]
    return value


def form_of(function: Callable[..., Any], *, explicit: bool) -> Form:
    """The form of a handler: `f(input: Model, ctx)`, `f(ctx, *, query: str = "")`, or with an explicit schema `f(input: dict, ctx)`.

    Raises SignatureError, which names the function, for anything else and for types that no schema can describe.
    """
    if explicit:
        return Form()
    try:
        form = Form(model=_model_of(function) if takes_keywords(function) else _first_model(function))
        form.schema  # noqa: B018 - made now, so that a type that can't be described stops the start
    except (PydanticUserError, SchemaError, schemas.SchemaError, NameError, ValueError) as error:
        raise SignatureError(
            f"{function.__qualname__}: no schema can be made of its types: {' '.join(str(error).split())[:200]}. "
            "Use types with a JSON form that are defined at the top of a module, or declare an input_schema."
        ) from error
    return form


def _first_model(function: Callable[..., Any]) -> type[Any]:
    first = next(iter(inspect.signature(function).parameters), "")
    model = _hints(function, [first]).get(first)
    if isinstance(model, type) and (issubclass(model, BaseModel) or dataclasses.is_dataclass(model)):
        return model
    raise SignatureError(
        f"{function.__qualname__} must read f(input: Model, ctx) with a pydantic model or a dataclass, f(ctx, *, name: type = …), "
        "or be declared with an input_schema."
    )


@cache
def takes_keywords(function: Callable[..., Any]) -> bool:
    return next(iter(inspect.signature(function).parameters), None) == "ctx"


def invoke(function: Callable[..., Any], typed: Any, ctx: object) -> Any:
    """Call a handler, a preview or a danger rule in the form that it has; an async one shares this thread's connections."""
    called = async_to_sync(function) if inspect.iscoroutinefunction(function) else function
    # Its lists are shared with the schema's defaults, with the preview and with the next attempt, and handlers change what they get.
    typed = copy.deepcopy(typed)
    if not takes_keywords(function):
        return called(typed, ctx)
    fields = typed if isinstance(typed, dict) else {name: getattr(typed, name) for name in _names(type(typed))}
    return called(ctx, **fields)


def misfit(function: Callable[..., Any], tool_fields: Iterable[str], form: Form) -> str | None:
    """Why `invoke` could not call the function with a tool's input; None when it can."""
    fields = tool_fields if form.model is None else _names(form.model)
    try:
        bound = inspect.signature(function).bind
        bound(None, **dict.fromkeys(fields)) if takes_keywords(function) else bound(None, None)
    except TypeError as error:
        return str(error)
    return None


def _names(model: Any) -> list[str]:
    if issubclass(model, BaseModel):
        return list(model.model_fields)
    return [field.name for field in dataclasses.fields(model)]


def _model_of(function: Callable[..., Any]) -> type[BaseModel]:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    hints = _hints(function, [parameter.name for parameter in parameters])
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY or parameter.name not in hints:
            raise SignatureError(f"{function.__qualname__}: {parameter.name} must stand after the * and have a type.")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    with warnings.catch_warnings():
        # A field may be called `copy` or `json`: nobody calls those methods of this model.
        warnings.simplefilter("ignore", UserWarning)
        model = create_model(f"{function.__name__}_input", __config__=ConfigDict(protected_namespaces=()), **fields)
    if odd := sorted(set(fields) - set(model.model_fields)):
        raise SignatureError(f"{function.__qualname__}: {odd[0]} can't be a field's name. Rename it.")
    return model


def _hints(function: Callable[..., Any], names: Iterable[str]) -> dict[str, Any]:
    """The types of these parameters alone: the one of `ctx` may be a name that only a type checker imports."""
    texts = inspect.get_annotations(function)
    wanted = SimpleNamespace(__annotations__={name: texts[name] for name in names if name in texts})
    return get_type_hints(wanted, globalns=getattr(inspect.unwrap(function), "__globals__", {}), include_extras=True)
