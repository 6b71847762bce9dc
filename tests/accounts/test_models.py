"""What the database itself refuses, and addresses without case."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from apps.accounts.models import LiveSession, User
from tests.accounts.factories import make_group, make_live_session, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def test_an_address_is_one_person_in_any_case() -> None:
    user = make_user(email="Member.L@Example.ORG")
    assert user.email == "member.l@example.org"
    assert User.objects.get_by_natural_key("MEMBER.L@example.org") == user
    with pytest.raises(IntegrityError):
        make_user(email="member.L@example.org")


def test_the_form_of_a_taken_address_says_so_in_any_case() -> None:
    make_user(email="member@example.org")
    with pytest.raises(ValidationError, match="already exists"):
        User(email="MEMBER@example.org", password="x").full_clean()


def test_no_statement_stores_an_address_with_capitals() -> None:
    user = make_user()
    with pytest.raises(IntegrityError, match="accounts_user_email_in_lower_case"), connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_user SET email = 'Member@example.org' WHERE email = %s", [user.email])


def test_a_person_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an e-mail"):
        User.objects.create_user("")


def test_a_superuser_is_staff_and_confirmed() -> None:
    owner = User.objects.create_superuser("owner@example.org", "a long password")
    assert (owner.is_staff, owner.is_superuser, owner.email_confirmed_at is not None) == (True, True, True)


def test_a_person_is_called_by_name_else_by_address() -> None:
    assert make_user(name="Member").get_full_name() == "Member"
    assert make_user(email="b@example.org").get_full_name() == "b@example.org"


@pytest.mark.parametrize("fields", [{"ended_at": timezone.now()}, {"end_reason": LiveSession.EndReason.EXPIRED}])
def test_an_end_has_a_time_and_a_reason(fields: dict[str, Any]) -> None:
    user = make_user()
    with pytest.raises(IntegrityError, match="end_has_a_reason"):
        make_live_session(user, **fields)


def test_a_session_does_not_end_before_it_starts() -> None:
    user = make_user()
    with pytest.raises(IntegrityError, match="expires_after_start"):
        LiveSession.objects.create(user=user, expires_at=timezone.now() - timedelta(seconds=1))


def test_nobody_impersonates_themselves() -> None:
    user = make_user()
    with pytest.raises(IntegrityError, match="impersonates_another"):
        make_live_session(user, impersonator=user)


def test_a_session_ceases_with_its_impersonator() -> None:
    impersonator = make_user()
    make_live_session(make_user(), impersonator=impersonator)
    impersonator.delete()
    assert not LiveSession.objects.exists()


def test_the_database_forgets_no_role_that_a_session_names() -> None:
    role = make_group()
    make_live_session(make_user(), acting_role=role)
    with pytest.raises(IntegrityError), transaction.atomic():
        Group.objects.filter(pk=role.pk)._raw_delete("default")
        connection.check_constraints()
