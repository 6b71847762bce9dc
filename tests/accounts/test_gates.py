"""The account gates as a table (PS-3)."""

import pytest

from apps.accounts.gates import Refusal, Standing, refusal


@pytest.mark.parametrize(
    ("active", "confirmed", "referred", "email_required", "referral_required", "expected"),
    [
        (True, True, True, True, True, None),
        (True, False, False, False, False, None),
        (False, True, True, False, False, Refusal.INACTIVE),
        (True, False, True, True, False, Refusal.UNCONFIRMED),
        (True, False, True, False, True, None),
        (True, True, False, False, True, Refusal.REFERRAL_REQUIRED),
        (True, True, False, True, False, None),
        (True, False, False, True, True, Refusal.UNCONFIRMED),
        (False, False, False, True, True, Refusal.INACTIVE),
    ],
)
def test_the_first_shut_gate_is_the_reason(
    active: bool,
    confirmed: bool,
    referred: bool,
    email_required: bool,
    referral_required: bool,
    expected: Refusal | None,
) -> None:
    person = Standing(is_active=active, email_confirmed=confirmed, referral_given=referred)
    assert refusal(person, email_required=email_required, referral_required=referral_required) == expected
