"""New passwords. Whatever door sets one (page, admin, command), the person's other live sessions end with it (PS-2)."""

from typing import Any
from uuid import UUID

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps.accounts import address, mails, sessions
from apps.accounts.models import User
from apps.activity import actions, log


def change(user: User, new: str, *, keep: UUID | None, request: HttpRequest | None = None) -> bool:
    """Sets the password and ends the person's sessions but `keep`, the one that they change it from; None keeps none.

    False, and nothing is done, when the password is no longer the one that `user` was loaded with: of two changes by one old
    password, or two resets by one link, one is made. The browser session of a kept one needs `update_session_auth_hash` as
    well: Django binds it to the password.
    """
    seen = user.password
    user.set_password(new)  # takes as long as a guess is to take: outside of the transaction
    user.live_session_uuid = keep
    if request is not None:
        user.changed_by, user.changed_in = user, request
    with transaction.atomic():
        if User.objects.select_for_update().filter(pk=user.pk, password=seen).first() is not None:
            user.save(update_fields=["password"])
            return True
    user.password, user._password = seen, None
    return False


def send_reset(email: str) -> None:
    """A mail with a link to the person at this address, if they may sign in with a password.

    For everybody else it is the same work: one query, one mail written. Neither the answer nor its time tells who is here.
    """
    person = User.objects.filter(email=email).first()
    receives = person is not None and may_reset(person)
    if person is None or not receives:
        person = User(email=email)
    path = reverse(
        "password_reset_confirm",
        args=[urlsafe_base64_encode(force_bytes(person.pk)), default_token_generator.make_token(person)],
    )
    mails.send("password_reset", person, path=path, deliver=receives)


def may_reset(user: User) -> bool:
    """A blocked person stays out, and who has no password was given none."""
    return user.is_active and user.has_usable_password()


@receiver(post_save, sender=User)
def _after_save(*, instance: User, created: bool, **_: Any) -> None:
    # Signing in and the upgrade of a hash leave it empty.
    if created or instance._password is None:
        return
    by, now, request = _who(instance), timezone.now(), instance.changed_in
    log.write(
        action=actions.SESSION_PASSWORD_CHANGED,
        mode=log.Mode.MANUAL,
        actor=by,
        resource_type="user",
        resource_uuid=str(instance.pk),
        target=instance.email,
        request_id=getattr(request, "request_id", ""),
        ip=None if request is None else address.of(request),
    )
    if instance.live_session_uuid is None:
        sessions.end_all(instance, reason=sessions.Reason.PASSWORD_RESET, by=by, now=now, request=request)
    else:
        keep = instance.live_session_uuid
        sessions.end_others(
            instance, keep=keep, reason=sessions.Reason.PASSWORD_CHANGED, by=by, now=now, request=request
        )


def _who(user: User) -> log.Actor:
    """Nobody but the person changes a password and keeps one of their sessions."""
    if user.changed_by is None and user.live_session_uuid is not None:
        return sessions.actor(user)
    return sessions.changer(user)[0]
