"""The account gates (PS-3): why a known person may not act now. Pure; keys and sessions ask the same function."""

from dataclasses import dataclass
from enum import StrEnum


class Refusal(StrEnum):
    """Each value is one of the gate's reasons (`apps.api.people.Refused`)."""

    INACTIVE = "inactive"
    UNCONFIRMED = "unconfirmed"
    REFERRAL_REQUIRED = "referral_required"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What the gates know of a person."""

    is_active: bool
    email_confirmed: bool
    referral_given: bool


def refusal(person: Standing, *, email_required: bool, referral_required: bool) -> Refusal | None:
    """The first gate that is shut, or None when the person may act."""
    if not person.is_active:
        return Refusal.INACTIVE
    if email_required and not person.email_confirmed:
        return Refusal.UNCONFIRMED
    if referral_required and not person.referral_given:
        return Refusal.REFERRAL_REQUIRED
    return None
