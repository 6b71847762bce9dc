"""Many people who are signed in and have a chat each, for the parts that measure chats."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Member:
    """One of them. `cookie` is the header of their browser."""

    user: Any
    chat: Any
    cookie: str


def make(count: int) -> list[Member]:
    """So many members of one role that may use the assistant."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.hashers import make_password
    from django.contrib.auth.models import Group, Permission
    from django.contrib.sessions.models import Session
    from django.utils import timezone

    from apps.accounts.models import LiveSession
    from apps.agent.models import Conversation

    now = timezone.now()
    role, _ = Group.objects.get_or_create(name="Members")
    role.permissions.set(Permission.objects.filter(codename="use_assistant"))
    user_model: Any = get_user_model()
    first = user_model.objects.count()
    facts = {"password": make_password(None), "email_confirmed_at": now, "referral_code": "-"}
    users = user_model.objects.bulk_create(
        [user_model(email=f"member{number}@example.org", **facts) for number in range(first, first + count)]
    )
    membership: Any = user_model.groups.through
    membership.objects.bulk_create([membership(user_id=user.pk, group_id=role.pk) for user in users])
    later = now + timedelta(days=1)
    live = LiveSession.objects.bulk_create([LiveSession(user=user, created_at=now, expires_at=later) for user in users])
    browsers = Session.objects.bulk_create([_browser(user, session) for user, session in zip(users, live, strict=True)])
    chats = Conversation.objects.bulk_create(
        [Conversation(user=user, created_at=now, last_message_at=now) for user in users]
    )
    return [
        Member(user=user, chat=chat, cookie=f"sessionid={browser.session_key}")
        for user, chat, browser in zip(users, chats, browsers, strict=True)
    ]


def _browser(user: Any, session: Any) -> Any:
    """Django's session row, as signing in leaves it."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    from apps.accounts.sessions import CARRIED_AS

    store = SessionStore(session_key=None)
    store._session_key = store._get_new_session_key()  # type: ignore[attr-defined]  # saved in bulk, not by itself
    backend = "django.contrib.auth.backends.ModelBackend"
    values = {SESSION_KEY: str(user.pk), BACKEND_SESSION_KEY: backend, CARRIED_AS: str(session.pk)}
    store.update({**values, HASH_SESSION_KEY: user.get_session_auth_hash()})
    return store.create_model_instance(dict(store.items()))
