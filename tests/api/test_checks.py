"""Every trap that a module author can step into is named at start-up, with the tool and the mend (MT-2, MT-5)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.core import checks as django_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings
from pydantic import BaseModel
from structlog.testing import capture_logs

from apps.api import Context, Module, checks, preview, registry
from apps.api.registry import Registry
from apps.api.tool import DeclarationError, Tool

READS: Any = {"read_only": True}
RIGHTS: Any = {"scope": "trap:read", "permission": "api.view_setting"}


class Open(BaseModel):
    name: str


def handler(ctx: Context, *, text: str = "") -> dict[str, Any]:
    """Does something."""
    return {}


def explicit(input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Does something."""
    return {}


def nested(ctx: Context, *, rows: list[Open]) -> dict[str, Any]:
    """Does something."""
    return {}


def reserved(ctx: Context, *, confirm_token: str) -> dict[str, Any]:
    """Does something."""
    return {}


def silent(ctx: Context) -> dict[str, Any]:
    return {}


def read(
    module: Module, name: str = "trap.read_it", *, function: Callable[..., Any] = handler, **declared: Any
) -> Tool:
    return module.tool(name, **{**RIGHTS, "annotations": READS, **declared})(function)


def write(
    module: Module, name: str = "trap.write_it", *, function: Callable[..., Any] = handler, **declared: Any
) -> Tool:
    tool = module.tool(name, **{**RIGHTS, **declared})(function)
    tool.preview(lambda *args, **fields: (preview("Write it."), "mark"))
    return tool


def schema(module: Module, **properties: Any) -> Tool:
    return read(module, function=explicit, input_schema={"type": "object", "properties": properties})


def trap(**fields: Any) -> Module:
    return Module(**{"key": "trap", "name": "Trap", **fields})


def found(*modules: Module) -> list[django_checks.CheckMessage]:
    return list(checks.found(Registry(modules)))


def test_a_sound_module_has_no_message() -> None:
    module = trap(problems={"trap_sprung": (409, "Trap sprung")})
    read(module)
    write(module, danger="always", max_items=5)
    assert found(module) == []


LONG = "trap." + "a" * 60

# What is planted, the message's number, and words that it must say besides the tool's name.
PLANTS: list[tuple[str, Callable[[Module], object], list[str]]] = [
    # Names.
    ("E005", lambda module: read(module, "trap"), ["module.verb_noun"]),
    ("E005", lambda module: read(module, "trap.Read"), ["lower case"]),
    ("E005", lambda module: read(module, "trap.read-it"), ["lower case"]),
    ("E005", lambda module: read(module, "trap..read"), ["module.verb_noun"]),
    ("E005", lambda module: read(module, "trap.read "), ["lower case"]),
    ("E005", lambda module: read(module, "trap.read\n"), ["lower case"]),
    ("E005", lambda module: read(module, "trap.lésen"), ["lower case"]),
    ("E005", lambda module: read(module, LONG), ["64 characters"]),
    ("E006", lambda module: read(module, "other.read_it"), ["begin it with trap."]),
    ("E006", lambda module: read(module, "system.read_it"), ["begin it with trap."]),
    ("W001", lambda module: read(module, "trap." + "a" * 40), ["40 characters", "shorten"]),
    ("E001", lambda module: (read(module), read(module)), ["declared twice", "rename"]),
    ("E001", lambda module: (read(module, "trap.read_it"), read(module, "trap.read.it")), ["alias", "rename"]),
    # Rights.
    ("E008", lambda module: read(module, scope=None), ["scope"]),
    ("E008", lambda module: read(module, scope="trap"), ["module:verb"]),
    ("E009", lambda module: read(module, permission=None), ["permission", "app_label.codename"]),
    ("E009", lambda module: read(module, permission="api.fly_setting"), ["api.fly_setting"]),
    ("E009", lambda module: read(module, permission="nowhere.view_setting"), ["nowhere.view_setting"]),
    ("E007", lambda module: read(module, audience="public"), ["public", "leave both out"]),
    # Schemas.
    ("E010", lambda module: schema(module, a={"type": "nope"}), ["input_schema"]),
    ("E010", lambda module: schema(module, a={"minimum": "1"}), ["input_schema"]),
    (
        "E010",
        lambda module: schema(module, a={"$ref": "http://example.org/a.json"}),
        ["http://example.org/a.json leaves"],
    ),
    (
        "E010",
        lambda module: schema(module, a={"items": [{"$ref": "file:///etc/passwd"}]}),
        ["file:///etc/passwd leaves"],
    ),
    ("E010", lambda module: schema(module, a={"anyOf": [{"$dynamicRef": "b.json#c"}]}), ["b.json#c leaves"]),
    ("E010", lambda module: schema(module, a={"$ref": "#/$defs/missing"}), ["missing"]),
    ("E010", lambda module: schema(module, a={"format": "binary"}), ["format binary is unknown"]),
    ("E010", lambda module: schema(module, a={"items": {"type": "string", "format": "color"}}), ["color"]),
    ("E010", lambda module: schema(module, a={"pattern": "(?=a)"}), ["no look-around"]),
    ("E010", lambda module: schema(module, a={"pattern": "(?<=a)b"}), ["no look-around"]),
    ("E010", lambda module: schema(module, a={"pattern": r"(a)\1"}), ["input_schema"]),
    ("E010", lambda module: schema(module, a={"pattern": "["}), ["regex"]),
    ("E010", lambda module: read(module, function=explicit, input_schema=[]), ["not an object"]),
    ("E010", lambda module: read(module, function=explicit, input_schema={"properties": []}), ["input_schema"]),
    (
        "E010",
        lambda module: read(
            module, function=explicit, input_schema={"$schema": "http://json-schema.org/draft-07/schema#"}
        ),
        ["2020-12"],
    ),
    ("E010", lambda module: read(module, output_schema={"type": "nope"}), ["output_schema"]),
    ("E010", lambda module: read(module, output_schema={"$ref": "http://example.org/"}), ["output_schema", "leaves"]),
    ("E011", lambda module: read(module, function=explicit, input_schema={"type": "array"}), ['"type": "object"']),
    ("E012", lambda module: write(module, function=reserved), ["confirm_token", "rename"]),
    ("W002", lambda module: read(module, function=nested), ["/properties/rows/items", "additionalProperties"]),
    ("W002", lambda module: schema(module, properties={"properties": {"a": {}}}), ["/properties/properties is open"]),
    # Reads and writes.
    ("E013", lambda module: module.tool("trap.write_it", **RIGHTS)(handler), ["@handler.preview"]),
    ("E014", lambda module: write(module, annotations={"read_only": 1}), ["read_only", "True"]),
    ("E014", lambda module: write(module, annotations={"read_only": "yes"}), ["read_only", "True"]),
    ("E014", lambda module: write(module, annotations={"read_only": None}), ["read_only", "True"]),
    ("E014", lambda module: read(module, annotations={**READS, "idempotent": 0}), ["idempotent"]),
    ("E022", lambda module: write(module, annotations={"readOnlyHint": True}), ["readOnlyHint", "read_only"]),
    # Functions.
    ("E023", lambda module: write(module).preview(lambda ctx: None), ["preview", "text"]),
    ("E023", lambda module: write(module).preview(lambda ctx, *, other: None), ["preview", "other"]),
    ("E023", lambda module: write(module, danger=lambda: True), ["danger"]),
    ("E023", lambda module: write(module, danger=lambda ctx, *, weight: True), ["danger", "weight"]),
    ("E023", lambda module: read(module, function=lambda given: {}, input_schema={}, description="A."), ["handler"]),
    ("E024", lambda module: read(module, cost=5), ["cost", "function"]),
    ("E017", lambda module: write(module, max_items=0), ["max_items"]),
    ("E017", lambda module: write(module, max_items=True), ["max_items"]),
    ("E017", lambda module: write(module, max_items="5"), ["max_items"]),
    # Visitors.
    (
        "E015",
        lambda module: write(module, audience="public", scope=None, permission=None, danger="always"),
        ["client token", "client_token=…"],
    ),
    (
        "E016",
        lambda module: read(module, audience="public", scope=None, permission=None, client_token="visitor"),
        ["visitor", "add the field"],
    ),
    # Words.
    ("W003", lambda module: read(module, function=silent), ["description"]),
]


@pytest.mark.parametrize(("number", "plant", "words"), PLANTS)
def test_a_planted_trap_is_named_with_its_tool_and_its_mend(
    number: str, plant: Callable[[Module], object], words: list[str]
) -> None:
    module = trap()
    plant(module)
    messages = [message for message in found(module) if message.id == f"api.{number}"]
    said = f"{messages[0].msg} {messages[0].hint}" if messages else ""
    assert all(word in said for word in ["The tool ", module.tools[-1].name, "Mend: ", *words]), found(module)
    assert messages[0].level == (django_checks.ERROR if number.startswith("E") else django_checks.WARNING)


def test_data_in_a_schema_is_no_reference_and_no_format() -> None:
    module = trap()
    schema(
        module,
        a={"default": {"$ref": "http://example.org/", "format": "csv", "properties": {}}},
        format={"type": "string", "enum": ["csv", "json"]},
    )
    assert found(module) == []


@pytest.mark.parametrize(
    ("number", "fields", "words"),
    [
        ("E002", {"problems": {"not_found": (404, "Not here")}}, ["not_found", "another code"]),
        ("E003", {"problems": {"Trap": (409, "Trap")}}, ["Trap", "lower-case"]),
        ("E003", {"problems": {"trap_sprung": (500, "Trap")}}, ["trap_sprung", "400 to 499"]),
        ("E003", {"problems": {"trap_sprung": (200, "Trap")}}, ["trap_sprung", "400 to 499"]),
        ("E018", {"key": "My Trap"}, ["My Trap", "lower case"]),
        ("E018", {"key": ""}, ["lower case"]),
    ],
)
def test_a_trap_of_a_module_is_named_with_it(number: str, fields: dict[str, Any], words: list[str]) -> None:
    (message,) = found(trap(**fields))
    assert message.id == f"api.{number}"
    assert all(word in f"{message.msg} {message.hint}" for word in ["The module ", "Mend: ", *words])


def test_two_modules_may_share_a_code_only_with_one_meaning() -> None:
    first = trap(problems={"gone_away": (409, "Gone"), "closed_now": (409, "Closed")})
    second = trap(key="other", problems={"gone_away": (409, "Gone"), "closed_now": (410, "Closed")})
    (message,) = found(first, second)
    assert message.id == "api.E004"
    assert "other" in message.msg
    assert "trap declares the code closed_now otherwise" in message.msg


def test_a_module_key_belongs_to_one_module() -> None:
    (message,) = found(trap(), trap(name="Another"))
    assert message.id == "api.E019"


@pytest.mark.parametrize("second", ["trap.read_it", "trap.read.it"])
def test_at_run_time_the_first_of_two_keeps_the_name_and_a_log_line_says_so(second: str) -> None:
    module = trap()
    first = read(module)
    read(module, second)
    with capture_logs() as lines:
        tools = Registry([module])
    assert tools.of("admin") == [first]
    assert [(line["event"], line["tool"]) for line in lines] == [("tool_declared_twice", second)]


@pytest.mark.parametrize("read_only", [1, "true", None, 0, object()])
def test_only_exactly_true_makes_a_read(read_only: Any) -> None:
    module = trap()
    assert write(module, annotations={"read_only": read_only}).is_write
    assert not read(module, annotations={"read_only": True}).is_write


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"annotations": READS, "danger": "always"}, "is a read"),
        ({"annotations": READS, "danger": lambda ctx: True}, "is a read"),
        ({"annotations": READS, "replay": True}, "is a read"),
        ({"annotations": READS, "replay": False}, "is a read"),
        ({"danger": "sometimes"}, "danger"),
        ({"danger": True}, "danger"),
        ({"audience": "everybody"}, "audience"),
        ({"reach": "far"}, "reach"),
    ],
)
def test_an_unsafe_declaration_raises_at_once(declared: dict[str, Any], words: str) -> None:
    with pytest.raises(DeclarationError, match=f"trap.do_it.*{words}"):
        trap().tool("trap.do_it", **{**RIGHTS, **declared})


def test_a_read_takes_no_preview() -> None:
    with pytest.raises(DeclarationError, match=r"trap.read_it is a read"):
        read(trap()).preview(handler)


def test_no_module_takes_the_key_of_core() -> None:
    with pytest.raises(DeclarationError, match="system"):
        Module(key="system", name="Mine")


def test_the_tools_of_core_have_no_message() -> None:
    with registry.using():
        assert checks.check_tools() == []


@pytest.mark.django_db
def test_an_error_stops_the_check_command() -> None:
    module = trap()
    module.tool("trap.write_it", **RIGHTS)(handler)
    with registry.using(module), pytest.raises(SystemCheckError, match=r"trap\.write_it"):
        call_command("check")


def test_atomic_requests_is_an_error_on_every_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES, "second", {"ATOMIC_REQUESTS": True})
    (message,) = checks.check_databases()
    assert message.id == "api.E020"
    assert "second" in message.msg
    assert "False" in str(message.hint)


def test_keys_need_a_pepper() -> None:
    with override_settings(API_KEY_PEPPERS={}):
        assert [message.id for message in checks.check_settings()] == ["api.E021"]


@pytest.mark.parametrize("word", ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"])
def test_a_field_that_stands_beside_the_properties_of_the_root_is_named(word: str) -> None:
    module = trap()
    rules: dict[str, Any] = {
        "$ref": "#/$defs/Input",
        "if": {"required": ["a"]},
        "patternProperties": {"^[a-z]+$": {"type": "string"}},
    }
    root = {"type": "object", "$defs": {"Input": {"type": "object"}}, word: rules.get(word, [{"type": "object"}])}
    read(module, function=explicit, input_schema=root)
    (message,) = [message for message in found(module) if message.id == "api.E027"]
    assert "trap.read_it" in message.msg
    assert word in message.msg


def test_a_client_token_that_is_no_string_is_named() -> None:
    module = trap()
    given = {"type": "object", "properties": {"visitor": {"type": "integer"}}}
    public: dict[str, Any] = {"audience": "public", "scope": None, "permission": None, "client_token": "visitor"}
    read(module, function=explicit, input_schema=given, **public)
    assert [message.id for message in found(module)] == ["api.E028"]


def test_a_read_that_declares_a_control_field_of_its_own_is_named() -> None:
    module = trap()
    schema(module, dry_run={"type": "boolean"})
    assert "api.E012" in [message.id for message in found(module)]
