"""The address without a path."""

import pytest
from django.test import Client

from tests.accounts.factories import make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


@pytest.mark.parametrize(("staff", "page"), [(True, "/admin/"), (False, "/account/sessions/")])
def test_the_front_door_leads_everybody_to_what_they_may_open(client: Client, staff: bool, page: str) -> None:
    assert client.get("/").headers["Location"] == "/sign-in/?next=/"
    client.force_login(make_user(is_staff=staff))
    assert client.get("/").headers["Location"] == page
