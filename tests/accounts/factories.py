"""People, roles and sessions for tests. Addresses are numbered, so that each is new."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.utils import timezone

from apps.accounts.models import LiveSession, ReferralCode, User
from apps.accounts.sessions import LIFETIME
from apps.api.models import Setting

PASSWORD = "a long and quiet password"

_numbers = count(1)


def make_user(
    *,
    email: str = "",
    password: str | None = None,
    groups: Sequence[Group] = (),
    permissions: Sequence[str] = (),
    **fields: Any,
) -> User:
    """A person without rights. Without a password they sign in by `client.force_login` only."""
    user = User.objects.create_user(email or f"person{next(_numbers)}@example.org", password, **fields)
    user.groups.set(groups)
    user.user_permissions.set(make_permissions(permissions))
    return user


def make_owner(**fields: Any) -> User:
    """A superuser who may open the admin site."""
    return make_user(is_superuser=True, is_staff=True, **fields)


def make_group(*, name: str = "", permissions: Sequence[str] = ()) -> Group:
    """A role that grants permissions, written as `app_label.codename`."""
    group = Group.objects.create(name=name or f"role {next(_numbers)}")
    group.permissions.set(make_permissions(permissions))
    return group


def make_permissions(labels: Sequence[str]) -> list[Permission]:
    """The permissions that exist under these labels; KeyError-like failure for one that does not."""
    pairs = (label.split(".", 1) for label in labels)
    return [Permission.objects.get(content_type__app_label=app, codename=codename) for app, codename in pairs]


def switch_on(*names: str) -> None:
    """Settings of the operator."""
    for name in names:
        Setting.objects.update_or_create(name=name, defaults={"value": True})


def make_referral_code(**fields: Any) -> ReferralCode:
    """A code that anybody may give at any time."""
    return ReferralCode.objects.create(**fields)


def make_live_session(user: User, *, started_at: datetime | None = None, **fields: Any) -> LiveSession:
    """A session that no browser carries: it started now, or then, and has its ordinary time."""
    created_at = started_at or timezone.now()
    return LiveSession.objects.create(user=user, created_at=created_at, expires_at=created_at + LIFETIME, **fields)


def make_expired_session(user: User) -> LiveSession:
    """A session whose time was over a minute ago, and that nobody has ended."""
    return make_live_session(user, started_at=timezone.now() - LIFETIME - timedelta(minutes=1))
