"""No key outlives the session that wanted it: one that ended or was narrowed while the request waited makes and rotates nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts import passwords, roles, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import SessionRef
from apps.api import own_keys
from apps.api.key_fields import GraceForm
from apps.api.models import ApiKey
from tests.accounts.factories import make_group
from tests.api import factories, probe
from tests.api.test_admin_keys import ADD
from tests.api.test_admin_keys import filled as operators_form
from tests.api.test_own_keys import NEW, filled, rotate_page

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tools")]


@pytest.fixture
def person(client: Client) -> Any:
    factories.set_setting("api_own_keys", True)
    person = factories.make_owner(permissions=[probe.VIEW, own_keys.PERMISSION])
    client.force_login(person)
    return person


def end_all(person: User) -> None:
    sessions.end_all(person, reason=sessions.Reason.ENDED_BY_OWNER, by=sessions.SYSTEM, now=timezone.now())


def narrow(person: User) -> None:
    role = make_group(permissions=[probe.VIEW])
    person.groups.add(role)
    factories.set_setting("accounts_act_as_role", True)
    row = LiveSession.objects.get(user=person, ended_at=None)
    roles.choose(SessionRef(row.pk, person.pk), role.pk, now=timezone.now())


def reset(person: User) -> None:
    assert passwords.change(User.objects.get(pk=person.pk), "a whole new password", keep=None)


MEANWHILE = [end_all, narrow, reset]


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_no_key_is_made(
    client: Client, person: Any, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[User], None]
) -> None:
    real = own_keys.create

    def create(*arguments: Any, **options: Any) -> Any:
        meanwhile(User.objects.get(pk=person.pk))
        return real(*arguments, **options)

    monkeypatch.setattr(own_keys, "create", create)
    client.post(NEW, filled())
    assert not ApiKey.objects.filter(owner=person).exists()


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_no_key_is_rotated(
    client: Client, person: Any, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[User], None]
) -> None:
    key, _ = factories.make_key(owner=person, scopes=[probe.READ])
    real = GraceForm.chosen

    def chosen(form: GraceForm) -> Any:
        meanwhile(User.objects.get(pk=person.pk))
        return real(form)

    monkeypatch.setattr(GraceForm, "chosen", chosen)
    client.post(rotate_page(key), {"grace": "0"})
    assert ApiKey.objects.filter(owner=person).count() == 1


def test_an_operator_who_acts_as_a_role_makes_no_key_in_the_admin_site_either(client: Client) -> None:
    operator = factories.make_owner(superuser=True)
    client.force_login(operator)
    data = operators_form(client, ADD, name="x", scopes=[probe.READ, probe.WRITE])
    role = make_group(permissions=[probe.VIEW])
    operator.groups.add(role)
    LiveSession.objects.filter(user=operator).update(acting_role=role)
    assert client.post(ADD, data).status_code == 403
    assert not ApiKey.objects.filter(owner=operator).exists()


def test_a_key_has_at_most_a_hundred_networks(client: Client, person: Any) -> None:
    networks = "\n".join(f"2001:db8:{number:x}::/48" for number in range(101))
    assert "at most 100 networks" in client.post(NEW, filled(networks=networks)).content.decode()
    assert not ApiKey.objects.filter(owner=person).exists()
