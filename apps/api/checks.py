"""System checks over the declared tools (MT-5): each names the tool and the mend. Warnings do not stop a start, errors do."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core import checks
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from apps.api import problems, registry, schemas, signature
from apps.api.mcp import provider
from apps.api.registry import Registry
from apps.api.tool import Annotations, Module, Tool

NAME = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")
MAX_NAME, MAX_ALIAS = 64, 40
DIALECT = "https://json-schema.org/draft/2020-12/schema"
HINTS = frozenset(Annotations.__annotations__)
KEY = re.compile(r"[a-z][a-z0-9_]*")
SCOPE = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*")
CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
# jsonschema knows two formats less than the hot path: what it needs for them takes seconds to import (requirements/base.in).
FORMATS = frozenset(FormatChecker.checkers) | {"iri", "iri-reference"}

Found = Iterator[checks.CheckMessage]


def register() -> None:
    checks.register(check_tools)
    checks.register(check_databases, checks.Tags.database)
    checks.register(check_settings)
    checks.register(provider.check_provider)


def check_tools(**_: Any) -> list[checks.CheckMessage]:
    """Every declared tool and module of the current registry."""
    return list(found(registry.current()))


def found(tools: Registry) -> Found:
    for tool in tools.duplicates:
        yield _error("E001", tool, "its name or MCP alias is declared twice", "rename it: the first one keeps the name")
    yield from _keys(tools)
    for module in tools.modules:
        yield from _problems(module)
    yield from _clashing_problems(tools)
    for tool in tools.declared():
        for check in _CHECKS:
            yield from check(tool)


def check_databases(**_: Any) -> list[checks.CheckMessage]:
    """`ATOMIC_REQUESTS` would wrap the gate in a transaction that a later error rolls back (RF-15)."""
    return [
        checks.Error(
            f"The database {alias} has ATOMIC_REQUESTS.",
            hint="Set it to False: the gate opens its own transactions.",
            id="api.E020",
        )
        for alias, database in settings.DATABASES.items()
        if database.get("ATOMIC_REQUESTS")
    ]


def check_settings(**_: Any) -> list[checks.CheckMessage]:
    if getattr(settings, "API_KEY_PEPPERS", None):
        return []
    return [checks.Error("API_KEY_PEPPERS is empty.", hint="Give it at least one id and secret.", id="api.E021")]


def _keys(tools: Registry) -> Found:
    first: dict[str, Module] = {}
    for module in tools.modules:
        if not KEY.fullmatch(module.key):
            yield _module_error("E018", module, "its key is odd", "write it in lower case, like an app's label")
        if first.setdefault(module.key, module) is not module:
            yield _module_error("E019", module, "its key is declared twice", "choose another key")


def _problems(module: Module) -> Found:
    for code, kind in module.problems.items():
        if code in problems.CORE:
            yield _module_error("E002", module, f"the problem code {code} is core's own", "choose another code")
        elif not CODE.fullmatch(code) or not 400 <= kind.status <= 499:
            yield _module_error(
                "E003", module, f"the problem {code} is odd", "a lower-case code and a status of 400 to 499"
            )


def _clashing_problems(tools: Registry) -> Found:
    first: dict[str, Module] = {}
    for module in tools.modules:
        for code, kind in module.problems.items():
            other = first.setdefault(code, module)
            if other.problems[code] != kind:
                yield _module_error(
                    "E004", module, f"{other.key} declares the code {code} otherwise", "choose another code"
                )


def _name(tool: Tool) -> Found:
    if not NAME.fullmatch(tool.name) or len(tool.name) > MAX_NAME:
        yield _error("E005", tool, "its name is bad", "write module.verb_noun in lower case, at most 64 characters")
    elif tool.name.partition(".")[0] != tool.module.key:
        yield _error("E006", tool, "its name does not begin with its module's key", f"begin it with {tool.module.key}.")
    elif len(tool.alias) > MAX_ALIAS:
        yield _warning(
            "W001", tool, "its MCP form is longer than 40 characters", "some clients refuse it: shorten the name"
        )


def _rights(tool: Tool) -> Found:
    if tool.audience == "public":
        if tool.scope is not None or tool.permission is not None:
            yield _error("E007", tool, "a public tool has a scope or a permission", "leave both out")
        return
    if tool.module.key == "system":
        return
    if tool.scope is None or not SCOPE.fullmatch(tool.scope):
        yield _error("E008", tool, "its scope is missing or odd", 'write scope="module:verb"')
    if tool.permission is None or not _is_known(tool.permission):
        yield _error(
            "E009", tool, f"its permission {tool.permission} is unknown", "name one of Django's: app_label.codename"
        )


def _schemas(tool: Tool) -> Found:
    for label, schema in (("input_schema", tool.own_schema), ("output_schema", tool.output_schema)):
        if schema is not None:
            yield from _schema(tool, label, schema)


def _schema(tool: Tool, label: str, schema: Mapping[str, Any]) -> Found:
    reason = _bad_schema(schema)
    if reason:
        yield _error(
            "E010",
            tool,
            f"its {label} can't be used: {reason}",
            "mend the schema (JSON Schema 2020-12, no look-around)",
        )
        return
    if label != "input_schema":
        return
    if schema.get("type", "object") != "object":
        yield _error("E011", tool, "its input_schema is no object", 'write "type": "object" at the root')
    taken = set(schema.get("properties", {})) & set(schemas.CONTROL_FIELDS)
    if taken:
        yield _error("E012", tool, f"its field {min(taken)} is one of the gate's own", "rename the field")
    spread = sorted({"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"} & set(schema))
    if spread:
        yield _error("E027", tool, f"its input_schema has {spread[0]} at the root", "list every field under properties")
    for where in _open_objects(schema):
        yield _warning("W002", tool, f"the object at {where} is open", 'add "additionalProperties": false')


def _bad_schema(schema: Any) -> str | None:
    """Both validators must take it, and every reference must stay inside."""
    if not isinstance(schema, Mapping):
        return "not an object"
    if (outside := next(_references_outside(schema), None)) is not None:
        return f"the reference {schemas.cut(outside)} leaves it"
    if (unknown := next(_unknown_formats(schema), None)) is not None:
        return f"the format {schemas.cut(unknown)} is unknown"
    if str(schema.get("$schema", DIALECT)).rstrip("#") != DIALECT:
        return f"its $schema is not {DIALECT}"
    try:
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker())
        schemas.compiled(schemas.closed(schema, write=False, client_token=None))
    except (SchemaError, ValueError, TypeError) as error:
        return schemas.cut(str(error).partition("\n")[0])
    return None


def _write(tool: Tool) -> Found:
    if tool.is_write and not tool.is_direct and tool.preview_handler is None:
        yield _error(
            "E013", tool, "it is a write without a preview", f"add @{tool.handler.__name__}.preview, or read_only"
        )
    hints: Mapping[str, object] = tool.annotations
    for name, value in hints.items():
        if name not in HINTS:
            yield _error("E022", tool, f"its annotation {name} is unknown", f"write one of {', '.join(sorted(HINTS))}")
        elif not isinstance(value, bool):
            yield _error("E014", tool, f"its {name} is neither True nor False", "only read_only=True makes it a read")


def _functions(tool: Tool) -> Found:
    """Each of the tool's functions can be called with its input: a misfit would be a 500 at the first call."""
    named = (("handler", tool.handler), ("preview", tool.preview_handler), ("danger", tool.danger))
    for label, function in named:
        if callable(function) and (reason := signature.misfit(function, _fields(tool), tool.form)):
            yield _error("E023", tool, f"its {label} does not take its input ({reason})", "give it the tool's fields")
    cost: Any = tool.cost  # as a module may write it
    if cost is not None and not callable(cost):
        yield _error("E024", tool, "its cost is no function", "write a function of the input")


def _public(tool: Tool) -> Found:
    if tool.audience == "public" and tool.danger is not None and tool.client_token is None:
        yield _error(
            "E015", tool, "it is public and dangerous without a client token", "name the field: client_token=…"
        )
    if tool.client_token is not None and tool.client_token not in _fields(tool):
        yield _error("E016", tool, f"its client token {tool.client_token} is no field", "add the field to the input")
    elif tool.client_token is not None and _fields(tool)[tool.client_token].get("type") != "string":
        yield _error("E028", tool, f"its client token {tool.client_token} is no string", "make the field a string")


def _words(tool: Tool) -> Found:
    if not str(tool.description).strip():
        yield _warning("W003", tool, "it has no description", "say in a sentence what it does: machines read it")
    if tool.max_items is not None and (type(tool.max_items) is not int or tool.max_items < 1):
        yield _error("E017", tool, "its max_items is odd", "a whole number of 1 or more")


_CHECKS: tuple[Callable[[Tool], Found], ...] = (_name, _rights, _schemas, _write, _functions, _public, _words)


def _fields(tool: Tool) -> Mapping[str, Any]:
    schema: Any = tool.own_schema  # which may be broken: another check says so
    found = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _is_known(permission: str) -> bool:
    """A permission of a model's own Meta or Django's four; the database is not asked, it may not be there yet."""
    from django.apps import apps

    label, _, codename = permission.partition(".")
    try:
        models = list(apps.get_app_config(label).get_models())
    except LookupError:
        return False
    known = {f"{verb}_{model._meta.model_name}" for model in models for verb in model._meta.default_permissions}
    return codename in known | {name for model in models for name, _ in model._meta.permissions}


def _nodes(node: Any, where: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema and those inside it, each with its JSON Pointer; what stands in `const` or `default` is data."""
    if isinstance(node, Mapping):
        yield where, node
        for word, part in node.items():
            if word in schemas.NAMED and isinstance(part, Mapping):
                for name, rule in part.items():
                    yield from _nodes(rule, where + schemas.pointer([word, name]))
            elif word not in schemas.DATA:
                yield from _nodes(part, where + schemas.pointer([word]))
    elif isinstance(node, list):
        for index, part in enumerate(node):
            yield from _nodes(part, f"{where}/{index}")


def _references_outside(schema: Mapping[str, Any]) -> Iterator[str]:
    for _, node in _nodes(schema):
        for word in ("$ref", "$dynamicRef"):
            reference = node.get(word)
            if isinstance(reference, str) and not reference.startswith("#"):
                yield reference


def _unknown_formats(schema: Mapping[str, Any]) -> Iterator[str]:
    for _, node in _nodes(schema):
        name = node.get("format")
        if isinstance(name, str) and name not in FORMATS:
            yield name


def _open_objects(schema: Mapping[str, Any]) -> Iterator[str]:
    """Nested objects that let any property in."""
    for where, node in _nodes(schema):
        closing = (node.get("additionalProperties"), node.get("unevaluatedProperties"))
        is_object = node.get("type") == "object" or "properties" in node
        if where and is_object and closing == (None, None):
            yield where


def _error(number: str, tool: Tool, fault: str, mend: str) -> checks.Error:
    return checks.Error(f"The tool {tool.name}: {fault}.", hint=f"Mend: {mend}.", id=f"api.{number}")


def _warning(number: str, tool: Tool, fault: str, mend: str) -> checks.Warning:
    return checks.Warning(f"The tool {tool.name}: {fault}.", hint=f"Mend: {mend}.", id=f"api.{number}")


def _module_error(number: str, module: Module, fault: str, mend: str) -> checks.Error:
    return checks.Error(f"The module {module.key}: {fault}.", hint=f"Mend: {mend}.", id=f"api.{number}")
