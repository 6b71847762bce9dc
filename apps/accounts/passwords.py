"""New passwords. Whatever door sets one (page, admin, command), the person's other live sessions end with it (PS-2)."""

from typing import Any
from uuid import UUID

from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils import timezone

from apps.accounts import sessions
from apps.accounts.models import User
from apps.activity import actions, log


def change(user: User, new: str, *, keep: UUID | None) -> None:
    """Sets the password and ends the person's sessions but `keep`, the one that they change it from; None keeps none.

    The browser session of a kept one needs `update_session_auth_hash` as well: Django binds it to the password.
    """
    user.live_session_uuid = keep
    user.set_password(new)
    user.save(update_fields=["password"])


@receiver(post_save, sender=User)
def _after_save(*, instance: User, created: bool, **_: Any) -> None:
    # Signing in and the upgrade of a hash leave it empty.
    if created or instance._password is None:
        return
    by, now = _who(instance), timezone.now()
    log.write(
        action=actions.SESSION_PASSWORD_CHANGED,
        mode=log.Mode.MANUAL,
        actor=by,
        resource_type="user",
        resource_uuid=str(instance.pk),
        target=instance.email,
    )
    if instance.live_session_uuid is None:
        sessions.end_all(instance, reason=sessions.Reason.PASSWORD_RESET, by=by, now=now)
    else:
        keep = instance.live_session_uuid
        sessions.end_others(instance, keep=keep, reason=sessions.Reason.PASSWORD_CHANGED, by=by, now=now)


def _who(user: User) -> log.Actor:
    if user.changed_by is not None:
        return sessions.actor(user.changed_by)
    return sessions.actor(user) if user.live_session_uuid else sessions.SYSTEM
