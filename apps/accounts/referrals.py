"""Giving a referral code: one conditional update of the code and one of the person, together or not at all (PS-1, PS-3)."""

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.http import HttpRequest

from apps.accounts import address, sessions
from apps.accounts.models import ReferralCode, User
from apps.activity import actions, log


def redeem(user: User, text: str, *, now: datetime, request: HttpRequest | None = None) -> bool:
    """Uses the code up by one and notes it with the person. False when it is unknown, switched off, used up or expired.

    True without a use when the person has given one already: they may go on.
    """
    try:
        return _redeemed(user, text, now=now, request=request)
    except _AlreadyGiven:
        return True


class _AlreadyGiven(Exception):
    """Undoes the use of the code."""


@transaction.atomic
def _redeemed(user: User, text: str, *, now: datetime, request: HttpRequest | None) -> bool:
    code = ReferralCode.objects.filter(code=ReferralCode.spelled(text)).first()
    if code is None or not ReferralCode.objects.usable(now).filter(pk=code.pk).update(uses=F("uses") + 1):
        return False
    if not User.objects.filter(pk=user.pk, referral_code="").update(referral_code=code.code):
        raise _AlreadyGiven
    log.write(
        action=actions.ACCOUNT_REFERRAL_GIVEN,
        mode=log.Mode.MANUAL,
        actor=sessions.actor(user),
        resource_type="user",
        resource_uuid=str(user.pk),
        target=user.email,
        request_id=getattr(request, "request_id", ""),
        ip=None if request is None else address.of(request),
        metadata={"code": str(code.pk)},
    )
    return True
