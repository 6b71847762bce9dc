"""What a module author writes (MT-1 to MT-4): modules, their tools, the error a handler refuses with, and the context it gets."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from apps.api import schemas, signature
from apps.api.call import Actor, Audience, Entrance
from apps.api.people import Scope
from apps.api.problems import Kind, Retry

if TYPE_CHECKING:
    import jsonschema_rs

    from apps.api.ratelimit import Level

Handler = Callable[..., Any]
Danger = Literal["always"] | Callable[..., Any] | None
Reach = Literal["database", "external"]


class DeclarationError(TypeError):
    """A declaration that would be unsafe; the process does not start with it (MT-5)."""


class Annotations(TypedDict, total=False):
    """MCP's four hints. A tool is a write unless `read_only` is exactly True."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


class ToolError(Exception):
    """A handler's refusal: a code of core or of the module, a message for the caller, and a context for machines."""

    def __init__(self, code: str, message: str, **context: Any) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.context = context


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """A change that a handler asked to record with `ctx.log`."""

    action: str
    resource_type: str
    resource_uuid: str
    metadata: Mapping[str, Any]


def _no_progress(partial: Any) -> None:
    return None


@dataclass(kw_only=True)
class Context:
    """What a handler knows of its call (MT-4).

    `scope` is the owner's full scope for a key and None for the public: a handler answers nothing that it would filter by it then.
    `base_url` has no last slash. `hosts` has the canonical one first. A session's call has only what its caller gave, None for the rest.
    `confirmation_uuid` and `approved_by_uuid` are None for an
    ordinary call. `progress(partial)` reports the part of a long piece of work that is done.
    """

    actor: Actor
    scopes: frozenset[str]
    scope: Scope | None
    audience: Audience
    entrance: Entrance
    currency: str | None
    dry_run: bool = False
    via: str | None = None
    approved_by_uuid: str | None = None
    confirmation_uuid: str | None = None
    progress: Callable[[Any], None] = _no_progress
    extra: Mapping[str, Any] = field(default_factory=dict)  # what the host's API_REQUEST_CONTEXT added
    levels: Sequence["Level"] = ()  # the budgets that this call was charged to
    log_lines: list[LogLine] = field(default_factory=list)

    @property
    def language(self) -> str | None:
        return self.entrance.language

    @property
    def hosts(self) -> tuple[str, ...] | None:
        return self.entrance.hosts or None

    @property
    def base_url(self) -> str | None:
        return self.entrance.base_url

    @property
    def request_id(self) -> str | None:
        return self.entrance.request_id or None

    def log(
        self, action: str, resource_type: str, resource_uuid: object, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Record a change of the module's own. Written last in the effect's transaction; in a preview nothing is written."""
        self.log_lines.append(
            LogLine(
                action=action,
                resource_type=resource_type,
                resource_uuid=str(resource_uuid),
                metadata=dict(metadata or {}),
            )
        )


@dataclass(kw_only=True, eq=False)
class Tool:
    """One callable operation, as its module declared it. `MT-2` explains each member."""

    module: "Module"
    name: str
    title: str
    description: str
    audience: Audience
    scope: str | None
    permission: str | None
    own_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    annotations: Annotations
    danger: Danger
    max_items: int | None
    cost: Callable[[Any], Any] | None
    replay: bool
    client_token: str | None
    reach: Reach
    handler: Handler
    form: signature.Form
    is_direct: bool = False  # core's own write on the caller's own affairs: no preview, no control field, no approval
    preview_handler: Handler | None = None

    @property
    def is_write(self) -> bool:
        return self.annotations.get("read_only") is not True

    @property
    def is_external(self) -> bool:
        return self.is_write and self.reach == "external"

    @property
    def alias(self) -> str:
        """The name for clients that refuse a dot (MC-2)."""
        return self.name.replace(".", "_")

    @cached_property
    def hints(self) -> dict[str, bool]:
        """All four hints, the careful answer where the module gave none."""
        write = self.is_write
        return {
            "read_only": not write,
            "destructive": bool(self.annotations.get("destructive", write)),
            "idempotent": bool(self.annotations.get("idempotent", not write)),
            "open_world": bool(self.annotations.get("open_world", self.is_external)),
        }

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The schema that the gate enforces: see `schemas.closed`."""
        write = self.is_write and not self.is_direct
        return schemas.closed(self.own_schema, write=write, replay=self.replay, client_token=self.client_token)

    @cached_property
    def validator(self) -> "jsonschema_rs.Validator":
        """Compiled once per tool and process (IN-2)."""
        return schemas.compiled(self.input_schema)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Root-level defaults, where the handler takes the plain dict; a model knows its own."""
        if self.form.model is not None:
            return {}
        properties: Mapping[str, Any] = self.own_schema.get("properties", {})
        return {
            name: rule["default"] for name, rule in properties.items() if isinstance(rule, dict) and "default" in rule
        }

    def preview(self, function: Handler) -> Handler:
        """Decorator: the write's preview, `f` in the handler's own form, answering `(preview, fingerprint)`."""
        if not self.is_write:
            raise DeclarationError(f"{self.name} is a read: a read has no preview.")
        self.preview_handler = function
        return function


class Module:
    """A Django app's tools: `Module(key="catalogue", name=…, problems={"sku_taken": (409, "SKU taken")})`.

    `problems` maps each code that the module's handlers may refuse with to its status and title, or status, title and retry advice.
    """

    def __init__(
        self, *, key: str, name: str, problems: Mapping[str, tuple[int, str] | tuple[int, str, Retry]] | None = None
    ) -> None:
        if key == "system":
            raise DeclarationError("The module key system is core's own.")
        self._set(key, name, problems or {})

    def _set(self, key: str, name: str, problems: Mapping[str, Sequence[Any]]) -> None:
        self.key = key
        self.name = name
        self.tools: list[Tool] = []
        self.problems = {
            code: Kind(code=code, status=row[0], title=row[1], retry=row[2] if len(row) > 2 else "never")
            for code, row in problems.items()
        }

    @classmethod
    def core(cls) -> "Module":
        """The module `system`, whose tools have no scope and no permission (MT-7)."""
        module = cls.__new__(cls)
        module._set("system", "System", {})
        return module

    def tool(  # noqa: PLR0913 - the members of a declaration (MT-2)
        self,
        name: str,
        *,
        title: str = "",
        description: str = "",
        audience: Audience = "admin",
        scope: str | None = None,
        permission: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        annotations: Annotations | None = None,
        danger: Danger = None,
        max_items: int | None = None,
        cost: Callable[[Any], Any] | None = None,
        replay: bool | None = None,
        client_token: str | None = None,
        reach: Reach = "database",
        is_direct: bool = False,
    ) -> Callable[[Handler], Tool]:
        """Decorator: the function becomes the handler of the tool `name` (`module.verb_noun`), in one of MT-3's three forms.

        Raises DeclarationError for what would be unsafe; `manage.py check` names every other mistake.
        """
        if is_direct and self.key != "system":
            raise DeclarationError(f"{name}: only core's own module has writes without a preview.")
        hints: Annotations = {} if annotations is None else annotations
        write = hints.get("read_only") is not True
        if not write and (danger is not None or replay is not None):
            raise DeclarationError(f"{name} is a read: a read has no danger and no replay.")
        if danger is not None and danger != "always" and not callable(danger):
            raise DeclarationError(f'{name}: danger is None, "always" or a function of input and context.')
        if audience not in ("admin", "public") or reach not in ("database", "external"):
            raise DeclarationError(f"{name}: audience is admin or public, reach is database or external.")

        def declare(function: Handler) -> Tool:
            form = signature.form_of(function, explicit=input_schema is not None)
            tool = Tool(
                module=self,
                name=name,
                title=title or name.rpartition(".")[2].replace("_", " ").capitalize(),
                description=description or inspect.cleandoc(function.__doc__ or ""),
                audience=audience,
                scope=scope,
                permission=permission,
                own_schema=form.schema if input_schema is None else input_schema,
                output_schema=output_schema,
                annotations=hints,
                danger=danger,
                max_items=max_items,
                cost=cost,
                replay=replay is not False,
                client_token=client_token,
                reach=reach,
                handler=function,
                form=form,
                is_direct=is_direct,
            )
            self.tools.append(tool)
            return tool

        return declare
