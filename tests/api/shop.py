"""A module `shop` whose handlers the test itself writes, so that they can be as bad as handlers get."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from apps.api import Module, fingerprint, preview, registry
from apps.api.models import Setting
from tests.api import factories
from tests.api.factories import Machine

SCOPE = "shop:run"
PERMISSION = "api.change_setting"
ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}

Handler = Callable[..., Any]


def harmless(given: dict[str, Any], ctx: Any) -> Any:
    """A preview that shows nothing."""
    return preview("Something."), fingerprint(["something"], {})


def put(name: str, value: Any = 1) -> str:
    """The effect of these tests: a row of the settings that no switch reads. Answers its name."""
    Setting.objects.update_or_create(name=name, defaults={"value": value})
    return name


def stored() -> list[str]:
    """The names of all effects that stayed."""
    return list(Setting.objects.exclude(name="api_public_enabled").order_by("name").values_list("name", flat=True))


class Shop:
    """Opens a shop with the tools of one test, and gives a machine whose key may call all of them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def open(self, module: Module) -> Machine:
        self._stack.enter_context(registry.using(module))
        return factories.make_machine(scopes=[SCOPE])

    def write(self, handler: Handler, *, shown: Handler = harmless, **declared: Any) -> Machine:
        """`shop.run` is this write, and `shop.put` an honest one that stores the name it is given."""
        module = make_module()
        tool = module.tool(
            "shop.run", **{"scope": SCOPE, "permission": PERMISSION, "input_schema": ANYTHING, **declared}
        )(handler)
        tool.preview(shown)
        return self.open(module)

    def read(self, handler: Handler, **declared: Any) -> Machine:
        """`shop.run` is this read, and `shop.put` an honest write."""
        module = make_module()
        module.tool(
            "shop.run",
            **{
                "scope": SCOPE,
                "permission": PERMISSION,
                "input_schema": ANYTHING,
                "annotations": {"read_only": True},
                **declared,
            },
        )(handler)
        return self.open(module)


def make_module() -> Module:
    """The shop with its one honest write."""
    module = Module(key="shop", name="Shop", problems={"sold_out": (409, "Sold out")})
    named = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    @module.tool("shop.put", scope=SCOPE, permission=PERMISSION, input_schema=named)
    def keep(given: dict[str, Any], ctx: Any) -> dict[str, Any]:
        put(given["name"])
        return {"name": given["name"]}

    keep.preview(harmless)
    return module
