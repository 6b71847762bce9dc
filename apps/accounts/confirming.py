"""The confirmation of an e-mail address: a mail with a signed link, and one conditional update (PS-1)."""

from datetime import datetime, timedelta

from django.core import signing
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse

from apps.accounts import address, mails, sessions
from apps.accounts.models import User
from apps.activity import actions, log

VALID = timedelta(days=3)


def send(user: User) -> None:
    """A mail with a link that confirms the address which it was sent to."""
    mails.send("email", user, path=reverse("email_link", args=[token(user)]))


def token(user: User) -> str:
    """Names the person, and is signed for their address of this moment: with another address it is no good."""
    return _signer(user).sign(str(user.pk))


def person(token: str) -> User | None:
    """Whose link it is; None when it is none of ours, too old, for a former address, or for somebody who is blocked."""
    try:
        user = User.objects.filter(pk=token.partition(":")[0], is_active=True).first()
        if user is not None:
            _signer(user).unsign(token, max_age=VALID)
    except (ValidationError, signing.BadSignature):
        return None
    return user


@transaction.atomic
def confirm(user: User, *, now: datetime, request: HttpRequest | None = None) -> bool:
    """The address that `user` was loaded with is confirmed. False when it is another one now, or was confirmed already."""
    unconfirmed = User.objects.filter(pk=user.pk, email=user.email, is_active=True, email_confirmed_at=None)
    if not unconfirmed.update(email_confirmed_at=now):
        return False
    log.write(
        action=actions.ACCOUNT_EMAIL_CONFIRMED,
        mode=log.Mode.MANUAL,
        actor=sessions.actor(user),
        resource_type="user",
        resource_uuid=str(user.pk),
        target=user.email,
        request_id=getattr(request, "request_id", ""),
        ip=None if request is None else address.of(request),
    )
    return True


def _signer(user: User) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"accounts.email:{user.email}")
