"""Keys in the hands of their owners: which are one's own, who may make and replace them, and what such a key can be given.

A key's owner scope is never narrowed (PS-4). So a session that is worth less than its person, an impersonated one or one that acts as a
single role, is handed no key's text: it can neither make nor rotate one. Revoking takes nothing but the key being one's own.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal
from uuid import UUID, uuid5

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext

from apps.api import acting, credentials, keys, people, scopes, switches
from apps.api.models import ApiKey
from apps.api.models.key import KeyQuerySet
from apps.api.people import Scope
from apps.api.switches import Switches

PERMISSION = "api.create_own_key"
# Families with a key that lasts: rotating makes none, and a key in its grace still counts.
LIMIT = 20
LONGEST = timedelta(days=365)

Reason = Literal[
    "impersonated", "acts_as_role", "may_not_act", "switched_off", "not_permitted", "too_many", "sent_twice"
]


class Refused(Exception):
    """Nothing was made."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What the person of a request may do with keys of their own at this moment. Without a scope they may not act at all (PS-3)."""

    person: Any
    scope: Scope | None
    switches: Switches
    is_impersonated: bool
    acts_as_role: bool

    @cached_property
    def held(self) -> frozenset[str]:
        """The API scopes that a key of this person can use."""
        return scopes.held_by_person(self.scope, self.switches) if self.scope else frozenset()

    def refusal(self) -> Reason | None:
        """Why this session is handed no key's text, None when it may be."""
        if self.is_impersonated:
            return "impersonated"
        if self.acts_as_role:
            return "acts_as_role"
        return "may_not_act" if self.scope is None else None

    def refusal_to_make(self) -> Reason | None:
        """Why the person may make no key of their own, None when they may."""
        if not self.switches.api_own_keys:
            return "switched_off"
        if self.scope is not None and not self.scope.can(PERMISSION):
            return "not_permitted"
        return self.refusal()


def standing(request: HttpRequest) -> Standing:
    """Read anew at each call."""
    now, known = switches.parse(credentials.read(None).settings), people.current()
    return Standing(
        person=request.user,
        scope=known.owner_scope(request.user.pk, None, now),
        switches=now,
        is_impersonated=known.is_impersonated(request),
        acts_as_role=known.acts_as_role(request),
    )


def of(person: Any) -> KeyQuerySet:
    return ApiKey.objects.filter(owner=person)


def find(person: Any, uuid: str) -> ApiKey | None:
    """The person's key with this uuid. None alike for somebody else's, an unknown and a malformed one."""
    try:
        return of(person).select_related("successor").filter(pk=UUID(uuid)).first()
    except ValueError:
        return None


def is_full(person: Any, now: datetime) -> bool:
    """Whether as many keys that the person made for themselves last as may."""
    made = of(person).filter(created_by=person, predecessor=None).values("family")
    return of(person).lasting(now).filter(family__in=made).values("family").distinct().count() >= LIMIT


@transaction.atomic
def create(request: HttpRequest, grant: keys.Grant, *, once: UUID) -> tuple[ApiKey, str]:
    """A key of the person of this request for themselves, and its text. `once` names the form: it makes one key.

    Raises Refused, and ValidationError for a grant that is more than the person can give.
    """
    person: Any = request.user
    # One at a time for each person: the count is exact, and of a form sent twice the second one sees the first one's key.
    get_user_model()._default_manager.select_for_update(no_key=True).get(pk=person.pk)
    _must_hold(request)
    now = standing(request)
    # Out of the form and the person, so that nobody learns by it whether another one's key has some uuid.
    uuid = uuid5(once, str(person.pk))
    if reason := now.refusal_to_make():
        raise Refused(reason)
    if ApiKey.objects.filter(pk=uuid).exists():
        raise Refused("sent_twice")
    if is_full(person, timezone.now()):
        raise Refused("too_many")
    _check(grant, now)
    return keys.create(grant, owner=person, created_by=person, uuid=uuid, **acting.of(request))


@transaction.atomic
def rotate(request: HttpRequest, key: ApiKey, *, grace: timedelta) -> tuple[ApiKey, str]:
    """A successor for the person's own key, and its text. Raises Refused, and what `keys.rotate` raises."""
    _must_hold(request)
    if reason := standing(request).refusal():
        raise Refused(reason)
    return keys.rotate(key, grace=grace, by=request.user, **acting.of(request))


def _must_hold(request: HttpRequest) -> None:
    """The session may have ended or been narrowed while the request waited: a key would outlive it."""
    if not people.current().holds(request):
        raise Refused("may_not_act")


def _check(grant: keys.Grant, now: Standing) -> None:
    if not grant.scopes or not now.held.issuperset(grant.scopes):
        raise ValidationError(gettext("A key of yours can be given scopes that you hold right now, and needs one."))
    if grant.expires_at is None or grant.expires_at > timezone.now() + LONGEST:
        raise ValidationError(gettext("A key of yours ends after a year at the latest."))
    if grant.budget is not None and grant.budget > now.switches.api_key_budget:
        raise ValidationError(gettext("A key of yours has at most the budget that is set for all keys."))
