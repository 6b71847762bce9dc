"""People on Settings → API: the one whose tools are shown, and those whom a stricter account gate would stop."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import people
from apps.api.people import Scope
from apps.api.settings_store import Changes
from apps.api.switches import Switches

# A search that finds more people than this asks for a longer text.
LISTED = 20
# So many superusers are asked whether they could still act.
ASKED = 100

# The account gates that are settings: why a person behind them may not act, and what that means for the operator.
GATES: dict[str, tuple[Promise, Promise]] = {
    "accounts_email_required": (
        _("their e-mail address is not confirmed"),
        _(
            "your own e-mail address is not confirmed. Until it is, no page but the one for that would be open to you, "
            "this one neither, and your keys and your assistant would be refused"
        ),
    ),
    "accounts_referral_required": (
        _("they have given no referral code"),
        _(
            "you have given no referral code yourself. Until you have, no page but the one for that would be open to you, "
            "this one neither, and your keys and your assistant would be refused"
        ),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Picked:
    """Somebody whose tools are shown. Without a scope they may not act now, for the reason `gate`."""

    pk: str
    label: str
    scope: Scope | None
    gate: str = ""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search for people gives; `more` are not listed."""

    text: str
    people: list[tuple[str, str]]
    more: bool

    @property
    def only(self) -> str:
        """Who needs no choice; empty otherwise."""
        return self.people[0][0] if len(self.people) == 1 else ""


def pick(pk: str, now: Switches) -> Picked | None:
    """The person with this primary key over all their roles; None for nobody."""
    model = get_user_model()
    try:
        person = model._default_manager.filter(pk=pk).first()
    except (ValueError, ValidationError, OverflowError):
        return None
    if person is None:
        return None
    scope = people.current().owner_scope(person.pk, None, now)
    gate = "" if scope is not None else _gate(person.pk, now)
    return Picked(pk=str(person.pk), label=_label(person), scope=scope, gate=gate)


def find(text: str) -> Found:
    """People by a part of their address or name."""
    model = get_user_model()
    text = text.replace("\0", "").strip()
    matches = Q()
    for field in dict.fromkeys([model.USERNAME_FIELD, model.get_email_field_name(), "name"]):
        if _has_field(model, field):
            matches |= Q(**{f"{field}__icontains": text})
    rows = (
        list(model._default_manager.filter(matches).order_by(model.USERNAME_FIELD, "pk")[: LISTED + 1]) if text else []
    )
    return Found(text=text, people=[(str(row.pk), _label(row)) for row in rows[:LISTED]], more=len(rows) > LISTED)


def stopped(changes: Changes, now: Switches, operator: Any) -> list[str]:
    """Whom these changes would stop, in sentences: the operator themself, and every superuser."""
    stricter = [name for name in GATES if changes.get(name, {}).get("new") is True and not getattr(now, name)]
    return [text for name in stricter for text in _stopped_by(name, now, operator)]


def _stopped_by(name: str, now: Switches, operator: Any) -> Iterable[str]:
    after = _with(now, name, value=True)
    if _may_act(operator.pk, now) and not _may_act(operator.pk, after):
        yield gettext("You would stop yourself: %(why)s.") % {"why": GATES[name][1]}
    able = [pk for pk in _superusers() if _may_act(pk, now)]
    if able and not any(_may_act(pk, after) for pk in able):
        yield gettext("No superuser could act any more: %(why)s.") % {"why": GATES[name][0]}


def _superusers() -> list[Any]:
    model = get_user_model()
    if not _has_field(model, "is_superuser"):
        return []
    return list(
        model._default_manager.filter(is_superuser=True, is_active=True)
        .order_by("pk")
        .values_list("pk", flat=True)[:ASKED]
    )


def _gate(pk: Any, now: Switches) -> str:
    """Asked of the gates themselves: which of them, if it were open, would let the person act."""
    shut = [name for name in GATES if getattr(now, name)]
    if not _may_act(pk, _with(now, *GATES, value=False)):
        return gettext("the account is blocked")
    alone = [name for name in shut if _may_act(pk, _with(now, name, value=False))]
    return "; ".join(str(GATES[name][0]) for name in alone or shut)


def _with(now: Switches, *names: str, value: bool) -> Switches:
    gates: dict[str, Any] = dict.fromkeys(names, value)
    return replace(now, **gates)


def _may_act(pk: Any, now: Switches) -> bool:
    return people.current().owner_scope(pk, None, now) is not None


def _label(person: Any) -> str:
    address = person.get_username()
    name = person.get_full_name() if hasattr(person, "get_full_name") else ""
    return f"{name} ({address})" if name and name != address else address


def _has_field(model: Any, name: str) -> bool:
    try:
        model._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return True
