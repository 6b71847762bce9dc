"""The settings in an operator's words: what each is called, what it does, and how a change of it reads."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import switches
from apps.api.admin.setting_words import Line, Vocabulary, Words, as_json, number
from apps.api.setting_rules import Unreadable
from apps.api.settings_store import Changes

__all__ = [
    "ACCESS", "BUDGETS", "LISTS", "MODULES", "PEOPLE", "PLAIN", "TIMES", "TOOLS", "WORDS", "Boxes", "Line", "Words", "YesOrNo", "as_json",
    "describe", "meanwhile", "name", "names", "number", "value",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """A stored list as boxes: `field` names them in the form. A closing list is worded the other way round: ticked is not on it."""

    field: str
    label: Promise
    help: Promise
    whole: Promise
    is_closing: bool = False

    def state(self, *, is_listed: bool) -> str:
        """What the box says for a name that is, or is not, on the list."""
        return gettext("on") if is_listed != self.is_closing else gettext("off")


class YesOrNo(Boxes):
    """Boxes that name a property and no switch."""

    def state(self, *, is_listed: bool) -> str:
        return gettext("yes") if is_listed != self.is_closing else gettext("no")


ACCESS: Mapping[str, Words] = {
    "api_admin_enabled": Words(
        label=_("Keys may call the API"),
        help=_("Off: every call with a key is refused with api_disabled. Assistants of signed-in people go on."),
    ),
    "api_public_enabled": Words(
        label=_("Visitors may call public tools"),
        help=_("Off: every call without a key is refused with api_disabled."),
    ),
    "maintenance_mode": Words(
        label=_("Maintenance"),
        help=_(
            "On: every call, with a key or without, is answered 503 until this is off again. "
            "Assistants of signed-in people go on."
        ),
    ),
}
_A_MINUTE = _("units a minute")
BUDGETS: Mapping[str, Words] = {
    "api_key_budget": Words(
        label=_("Budget of a key"), help=_("For every key without a budget of its own."), unit=_A_MINUTE
    ),
    "api_person_budget": Words(label=_("Budget of a person"), help=_("Over all their sessions."), unit=_A_MINUTE),
    "api_network_budget": Words(
        label=_("Budget of a network"), help=_("For all visitors without a key who share it."), unit=_A_MINUTE
    ),
    "api_token_budget": Words(
        label=_("Budget of a client token"), help=_("For one visitor's program, beside its network's."), unit=_A_MINUTE
    ),
}
TIMES: Mapping[str, Words] = {
    "api_code_minutes": Words(
        label=_("A confirmation code is good for"),
        help=_("For a script that confirms a dangerous call. After that it asks again."),
        unit=_("minutes"),
    ),
    "api_hold_minutes": Words(
        label=_("What an assistant proposes waits for"),
        help=_("So long the person may confirm it. After that the assistant has to propose it again."),
        unit=_("minutes"),
    ),
    "api_approval_hours": Words(
        label=_("What a key asks for waits for an approval for"),
        help=_("What nobody has approved or rejected by then expires. Nothing is run."),
        unit=_("hours"),
    ),
    "api_start_hours": Words(
        label=_("What was approved must be started within"),
        help=_("It starts at once, unless there is maintenance or no worker. After that it fails as not started."),
        unit=_("hours"),
    ),
    "idempotency_retention": Words(
        label=_("Outcomes of calls with an idempotency key are kept for"),
        help=_("A repeat within this time gets the first answer again and runs nothing."),
        unit=_("hours"),
    ),
    "confirmation_retention": Words(
        label=_("Confirmations that are over stay listed for"),
        help=_("Used, rejected and expired ones. After that they are deleted."),
        unit=_("days"),
    ),
    "approval_input_retention": Words(
        label=_("Input and preview of an approval that ended are kept for"),
        help=_("After that they are deleted. Who decided what, and what became of it, stays."),
        unit=_("days"),
    ),
}
PEOPLE: Mapping[str, Words] = {
    "accounts_email_required": Words(
        label=_("People need a confirmed e-mail address"),
        help=_(
            "On: whoever has not confirmed theirs may not act. No page but the one for that is open to them, and their "
            "keys and their assistant are refused."
        ),
    ),
    "accounts_referral_required": Words(
        label=_("People need a referral code"),
        help=_(
            "On: whoever has given none may not act. No page but the one for that is open to them, and their keys and "
            "their assistant are refused."
        ),
    ),
    "accounts_act_as_role": Words(
        label=_("People may act as one of their roles"),
        help=_("On: whoever has several roles may narrow a session to one of them."),
    ),
    "api_own_keys": Words(
        label=_("People may make keys of their own"),
        help=_("On: whoever has the permission api.create_own_key makes keys on their own page."),
    ),
}
WORDS: Mapping[str, Words] = {**ACCESS, **BUDGETS, **TIMES, **PEOPLE}
PLAIN = Vocabulary(words=WORDS, rules=switches.RULES)

MODULES: Mapping[str, Boxes] = {
    "disabled_modules": Boxes(
        field="module_on",
        label=_("Module on"),
        help=_("Off: every call of its tools is refused with module_disabled."),
        whole=_("Modules that are off"),
        is_closing=True,
    ),
    "api_disabled_modules": Boxes(
        field="api_on",
        label=_("API on"),
        help=_("Off: for every caller its tools do not exist (not_found)."),
        whole=_("Modules whose API is off"),
        is_closing=True,
    ),
    "api_session_write_modules": Boxes(
        field="agent_may_act",
        label=_("Agent may act"),
        help=_(
            "On: the assistant of a signed-in person may propose changes here, and the person confirms each. "
            "Off: it only reads. Keys do not depend on it."
        ),
        whole=_("Modules in which the agent may act"),
    ),
}
TOOLS = YesOrNo(
    field="hidden",
    label=_("hidden"),
    help=_("The tool does not exist for any caller (not_found)."),
    whole=_("Tools that are hidden"),
)
LISTS: Mapping[str, Boxes] = {**MODULES, "api_disabled_tools": TOOLS}


def describe(changes: Changes) -> list[Line]:
    """The changes box by box: "catalogue: Agent may act: off → on"."""
    return [line for name, change in changes.items() for line in _lines(name, **change)]


def name(setting: str, member: str = "") -> str:
    """What a setting, or a box of it, is called: "Budget of a key", "catalogue: Agent may act"."""
    if setting not in LISTS:
        return PLAIN.name(setting)
    return f"{member}: {LISTS[setting].label}" if member else str(LISTS[setting].whole)


def names(boxes: Mapping[str, Iterable[str]]) -> list[str]:
    """The same of several: a setting without members stands for itself."""
    return [name(setting, member) for setting, members in boxes.items() for member in sorted(members) or [""]]


def value(setting: str, stored: Any) -> str:
    """A stored value in words, whatever it is."""
    if setting not in LISTS:
        return PLAIN.value(setting, stored)
    try:
        return ", ".join(sorted(switches.checked(setting, stored))) or gettext("none")
    except Unreadable:
        return gettext("can't be read (%(stored)s)") % {"stored": as_json(stored)}


def meanwhile(setting: str) -> str:
    """What the gate does while the stored value can't be read."""
    match setting:
        case "api_disabled_modules" | "api_disabled_tools":
            return gettext("Meanwhile every tool is closed to everybody.")
        case "disabled_modules":
            return gettext("Meanwhile every module counts as off.")
        case "api_session_write_modules":
            return gettext("Meanwhile the agent may act nowhere.")
        case _:
            return PLAIN.meanwhile(setting)


def _lines(setting: str, old: Any, new: Any) -> Iterator[Line]:
    before, after = _members(setting, old), _members(setting, new)
    if before is None or after is None:
        yield Line(subject=name(setting), old=value(setting, old), new=value(setting, new))
        return
    boxes = LISTS[setting]
    for member in sorted(before ^ after):
        yield Line(
            subject=name(setting, member),
            old=boxes.state(is_listed=member in before),
            new=boxes.state(is_listed=member in after),
        )


def _members(setting: str, stored: Any) -> frozenset[str] | None:
    """None for what is no list, or none that can be read."""
    if setting not in LISTS:
        return None
    try:
        return frozenset(switches.checked(setting, stored))
    except Unreadable:
        return None
