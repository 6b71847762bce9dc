"""What the operator has switched and set (SPEC 14, 25, 26), read from the settings table's rows.

One immutable value a request. Nothing fails open: a list of closed things that can't be read closes everything (ST-2), an unreadable
permission to act is none, and an unreadable number is its default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.api import setting_rules
from apps.api.setting_rules import Rule, Unreadable

if TYPE_CHECKING:
    from apps.api.tool import Module, Tool

__all__ = ["RULES", "Rule", "Switches", "Unreadable", "checked", "parse"]


def _switch(*, default: bool, unreadable: bool, text: Promise) -> Rule:
    return Rule(default=default, read=setting_rules.flag, unreadable=unreadable, help=text)


def _closing(text: Promise) -> Rule:
    return Rule(default=frozenset(), read=setting_rules.names, unreadable=None, help=text)


def _opening(text: Promise) -> Rule:
    return Rule(default=frozenset(), read=setting_rules.names, unreadable=frozenset(), help=text)


def _amount(default: int, minimum: int, maximum: int, text: Promise) -> Rule:
    return Rule(
        default=default,
        read=setting_rules.whole(minimum, maximum),
        unreadable=default,
        help=text,
        bounds=(minimum, maximum),
    )


RULES: Mapping[str, Rule] = {
    "api_admin_enabled": _switch(default=True, unreadable=False, text=_("Keys may call the API.")),
    "api_public_enabled": _switch(
        default=False, unreadable=False, text=_("Visitors without a key may call public tools.")
    ),
    "maintenance_mode": _switch(
        default=False, unreadable=True, text=_("Every call is answered 503 until this is off.")
    ),
    "disabled_modules": _closing(_("Modules that are off: their tools answer module_disabled.")),
    "api_disabled_modules": _closing(_("Modules whose tools do not exist for the API.")),
    "api_disabled_tools": _closing(_("Tools that do not exist for the API.")),
    "api_session_write_modules": _opening(_("Modules whose writes the assistant of a signed-in person may propose.")),
    "api_key_budget": _amount(600, 1, 1_000_000, _("Units a minute of a key without a budget of its own.")),
    "api_person_budget": _amount(300, 1, 1_000_000, _("Units a minute of a person, over all their sessions.")),
    "api_network_budget": _amount(60, 1, 1_000_000, _("Units a minute of a visitor's network.")),
    "api_token_budget": _amount(60, 1, 1_000_000, _("Units a minute of a visitor's client token.")),
    "api_code_minutes": _amount(10, 1, 1_440, _("Minutes for which the code of a previewed call is good.")),
    "api_hold_minutes": _amount(
        15, 1, 1_440, _("Minutes for which a person may confirm what their assistant proposed.")
    ),
    "api_approval_hours": _amount(72, 1, 8_760, _("Hours for which a write waits to be approved or rejected.")),
    "api_start_hours": _amount(24, 1, 8_760, _("Hours within which an approved write must have been started.")),
    "idempotency_retention": _amount(72, 1, 8_760, _("Hours for which the outcome of a call with a key is kept.")),
    "confirmation_retention": _amount(30, 1, 3_650, _("Days for which codes that are over stay listed.")),
    "approval_input_retention": _amount(
        30, 1, 3_650, _("Days for which the input and the preview of an approval that ended are kept.")
    ),
    "accounts_email_required": _switch(
        default=False, unreadable=True, text=_("A person whose e-mail address is not confirmed may not act.")
    ),
    "accounts_referral_required": _switch(
        default=False, unreadable=True, text=_("A person without a referral code may not act.")
    ),
    "accounts_act_as_role": _switch(
        default=False, unreadable=False, text=_("A person with several roles may choose to act as one of them.")
    ),
    "api_own_keys": _switch(
        default=False,
        unreadable=False,
        text=_("People who may create keys of their own do so on their page of keys."),
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Switches:
    """The settings of this moment. A list of closed things is None when it can't be read: then everything is closed."""

    api_admin_enabled: bool
    api_public_enabled: bool
    maintenance_mode: bool
    disabled_modules: frozenset[str] | None
    api_disabled_modules: frozenset[str] | None
    api_disabled_tools: frozenset[str] | None
    api_session_write_modules: frozenset[str]
    api_key_budget: int
    api_person_budget: int
    api_network_budget: int
    api_token_budget: int
    api_code_minutes: int
    api_hold_minutes: int
    api_approval_hours: int
    api_start_hours: int
    idempotency_retention: int
    confirmation_retention: int
    approval_input_retention: int
    accounts_email_required: bool
    accounts_referral_required: bool
    accounts_act_as_role: bool
    api_own_keys: bool

    def is_open(self, tool: "Tool") -> bool:
        """The tool exists for the API: neither hidden nor of a module whose API is off."""
        return not self.is_api_off(tool.module) and not self.is_hidden(tool)

    def is_api_off(self, module: "Module") -> bool:
        """The module's tools do not exist for the API; nor does any while one of the two lists can't be read (ST-2)."""
        if self.api_disabled_modules is None or self.api_disabled_tools is None:
            return True
        return module.key in self.api_disabled_modules

    def is_hidden(self, tool: "Tool") -> bool:
        """The tool is on the list of hidden ones. One that can't be read names none: see `is_api_off`."""
        return self.api_disabled_tools is not None and tool.name in self.api_disabled_tools

    def agent_may_act(self, module: "Module") -> bool:
        """A live session may propose the module's writes (LS-2). Keys never ask."""
        return module.key in self.api_session_write_modules

    def is_on(self, module: "Module") -> bool:
        return self.disabled_modules is not None and module.key not in self.disabled_modules


@lru_cache(maxsize=8)
def parse(text: str) -> Switches:
    """The switches of a JSON object of rows. Pure, so the same text gives the same object in every request."""
    return Switches(**setting_rules.values(text, RULES))


def checked(name: str, value: Any) -> Any:
    """The value as the gate will read it. Raises Unreadable, which says what is wanted, or KeyError for an unknown name."""
    return RULES[name].read(value)
