"""The person's page in the admin site: nobody gets more rights by it than they have, and nothing is undone by an open page."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from tests.accounts.factories import PASSWORD, make_group, make_owner, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

NEW = "a new and secret password"
CHANGES = ["accounts.change_user", "accounts.view_user", "accounts.delete_user"]


def page(person: User) -> str:
    return f"/admin/accounts/user/{person.pk}/change/"


def filled(client: Client, person: User) -> dict[str, Any]:
    """The page's form as a browser sends it back."""
    found: dict[str, Any] = {}
    for bound in client.get(page(person)).context["adminform"].form:
        if bound.name == "password":
            continue
        value, widget = bound.value(), bound.field.widget
        if isinstance(value, bool):
            found |= {bound.name: "on"} if value else {}
        elif hasattr(widget, "widgets"):
            found |= {f"{bound.name}_{at}": part or "" for at, part in enumerate(widget.decompress(value))}
        elif isinstance(value, list):
            found[bound.name] = [str(getattr(part, "pk", part)) for part in value]
        else:
            found[bound.name] = "" if value is None else str(value)
        if bound.field.show_hidden_initial:
            if hasattr(widget, "widgets"):
                parts = enumerate(widget.decompress(value))
                found |= {f"initial-{bound.name}_{at}": part or "" for at, part in parts}
            else:
                found[f"initial-{bound.name}"] = "" if value is None else str(value)
    return found


def test_an_open_page_does_not_give_back_what_another_operator_took(client: Client) -> None:
    person = make_user(is_superuser=True, is_staff=True)
    client.force_login(make_owner())
    data = filled(client, person)
    other = User.objects.get(pk=person.pk)
    other.is_active = other.is_superuser = other.is_staff = False
    other.save()
    assert client.post(page(person), {**data, "name": "Renamed"}).status_code == 302
    person.refresh_from_db()
    assert (person.name, person.is_active, person.is_superuser, person.is_staff) == ("Renamed", False, False, False)


@pytest.mark.parametrize("spell", [lambda pk: str(pk).upper(), lambda pk: pk.hex, lambda pk: f"{{{pk}}}"])
def test_ones_own_password_asks_for_the_old_one_however_the_page_is_spelled(
    client: Client, spell: Callable[[Any], str]
) -> None:
    owner = make_owner(password=PASSWORD)
    client.force_login(owner)
    data = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    client.post(f"/admin/accounts/user/{spell(owner.pk)}/password/", data)
    assert User.objects.get(pk=owner.pk).check_password(PASSWORD)


def test_staff_set_no_owners_password_and_change_and_delete_no_owner(client: Client) -> None:
    owner = make_owner(password=PASSWORD)
    client.force_login(make_user(is_staff=True, permissions=CHANGES))
    data = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    assert client.post(f"/admin/accounts/user/{owner.pk}/password/", data).status_code == 403
    assert client.post(page(owner), {"email": "other@example.org"}).status_code == 403
    assert client.post(f"/admin/accounts/user/{owner.pk}/delete/", {"post": "yes"}).status_code == 403
    assert User.objects.get(pk=owner.pk).check_password(PASSWORD)


def test_staff_give_nobody_rights_themselves_neither(client: Client) -> None:
    staff, role = make_user(is_staff=True, permissions=CHANGES), make_group(permissions=["api.change_setting"])
    client.force_login(staff)
    data = {**filled(client, staff), "name": "Renamed", "is_superuser": "on", "groups": [str(role.pk)]}
    assert client.post(page(staff), data).status_code == 302
    staff.refresh_from_db()
    assert (staff.name, staff.is_superuser, staff.groups.count()) == ("Renamed", False, 0)
