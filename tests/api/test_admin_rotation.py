"""Rotating a key in the admin site: who may, what the form asks, the one page with the text, and what both keys' pages say."""

import itertools
import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.test import Client
from django.utils import timezone

from apps.activity.models import Entry
from apps.api import key_text, keys
from apps.api.models import ApiKey
from tests.api import factories, probe
from tests.api.test_admin_keys import LIST, change_page, entries, make_staff, page, signed_in, together

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]


@pytest.fixture
def person() -> Any:
    return factories.make_owner(superuser=True)


@pytest.fixture
def operator(client: Client, person: Any) -> Client:
    """A signed-in superuser."""
    client.force_login(person)
    return client


def rotate_page(key: ApiKey) -> str:
    return f"{LIST}{key.pk}/rotate/"


def rotate(client: Client, key: ApiKey, *, grace: int = 24, **extra: Any) -> Any:
    return client.post(rotate_page(key), {"grace": str(grace)}, **extra)


def test_the_form_offers_four_graces_and_a_day_is_chosen(operator: Client) -> None:
    key, _ = factories.make_key(name="Nightly prices")
    shown = page(operator, rotate_page(key))
    assert re.findall(r'name="grace" value="(\d+)"[^>]*?(checked)?>', shown) == [
        ("0", ""), ("1", ""), ("24", "checked"), ("168", ""),
    ]  # fmt: skip
    assert "Nightly prices" in shown
    assert not entries("api.key_rotated")


@pytest.mark.parametrize("hours", [0, 1, 24, 168])
def test_the_successor_has_the_grant_and_the_old_key_the_grace(operator: Client, person: Any, hours: int) -> None:
    key, _ = factories.make_key(scopes=[probe.READ], budget=50, owner=factories.make_owner())
    before = timezone.now()
    answer = rotate(operator, key, grace=hours)

    old = ApiKey.objects.get(pk=key.pk)
    (text,) = set(key_text.PATTERN.findall(answer.content.decode()))
    successor = old.successor
    assert successor is not None
    assert old.expires_at is not None
    assert key_text.public_id(text) == successor.public_id
    assert keys.grant_of(successor) == keys.grant_of(key)
    assert (successor.owner, successor.family_id, successor.created_by) == (key.owner, key.family_id, person)
    assert timedelta(0) <= old.expires_at - before - timedelta(hours=hours) < timedelta(minutes=1)
    assert ("opens nothing any more" in answer.content.decode()) == (hours == 0)
    assert "no-store" in answer["Cache-Control"]


def test_rotating_leaves_one_entry_of_the_person(operator: Client, person: Any) -> None:
    key, _ = factories.make_key()
    rotate(operator, key, headers={"X-Request-ID": "the-request"}, REMOTE_ADDR="192.0.2.7")
    (entry,) = entries("api.key_rotated")
    assert (entry.mode, entry.actor_kind, entry.actor_uuid) == ("manual", "user", str(person.pk))
    assert (entry.request_id, entry.ip, entry.resource_uuid) == ("the-request", "192.0.2.7", str(key.pk))
    assert entry.metadata["grace_seconds"] == 24 * 3600


def test_the_text_of_the_successor_is_kept_nowhere(operator: Client, capfd: pytest.CaptureFixture[str]) -> None:
    key, _ = factories.make_key()
    (text,) = set(key_text.PATTERN.findall(rotate(operator, key).content.decode()))
    secret = text.split("_")[3]

    stored = [str(row) for model in apps.get_models() for row in model._default_manager.values()]
    successor = ApiKey.objects.get(public_id=key_text.public_id(text))
    later = [page(operator, address) for address in (LIST, change_page(key), change_page(successor), "/admin/")]

    assert not [row for row in stored if secret in row]
    assert not [shown for shown in later if secret in shown]
    assert secret not in f"{capfd.readouterr()}{operator.cookies}{dict(operator.session)}"


def test_a_reload_makes_no_second_successor_and_says_so(operator: Client) -> None:
    key, _ = factories.make_key()
    rotate(operator, key)
    answer = operator.post(rotate_page(key), {"grace": "24"}, follow=True)
    assert answer.redirect_chain == [(change_page(key), 302)]
    assert "This key was rotated already." in answer.content.decode()
    assert not key_text.PATTERN.search(answer.content.decode())
    assert (ApiKey.objects.count(), len(entries("api.key_rotated"))) == (2, 1)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"revoked_at": timezone.now()}, "This key was revoked"),
        ({"expires_at": timezone.now() - timedelta(hours=1)}, "This key has expired"),
    ],
)
def test_a_key_that_has_ended_is_not_rotated(operator: Client, fields: dict[str, Any], said: str) -> None:
    key, _ = factories.make_key()
    ApiKey.objects.filter(pk=key.pk).update(**fields)
    assert rotate_page(key) not in page(operator, change_page(key))
    for answer in (operator.get(rotate_page(key), follow=True), operator.post(rotate_page(key), follow=True)):
        assert said in answer.content.decode()
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize("grace", ["", "2", "odd", "-1", "8760"])
def test_an_odd_grace_rotates_nothing(operator: Client, grace: str) -> None:
    key, _ = factories.make_key()
    assert 'class="errorlist"' in operator.post(rotate_page(key), {"grace": grace}).content.decode()
    assert ApiKey.objects.count() == 1


def test_a_key_that_there_is_not_leads_to_the_list(operator: Client) -> None:
    answer = operator.get(f"{LIST}00000000-0000-4000-8000-000000000000/rotate/")
    assert answer["Location"] == LIST


def test_both_pages_lead_to_each_other_and_say_until_when_both_work(operator: Client) -> None:
    key, _ = factories.make_key()
    rotate(operator, key, grace=1)
    successor = ApiKey.objects.get(predecessor=key)
    old, new = page(operator, change_page(key)), page(operator, change_page(successor))
    assert change_page(successor) in old
    assert change_page(key) in new
    assert re.search(r"Until [^<]+ both work; revoke this one", old)
    assert re.search(r"Until [^<]+ both work\.", new)
    with time_machine.travel(timezone.now() + timedelta(minutes=61), tick=True):
        assert re.search(r"Since [^<]+ only the successor works", page(operator, change_page(key)))
        assert re.search(r"Since [^<]+ it opens nothing any more", page(operator, change_page(successor)))
    operator.post(f"{LIST}{key.pk}/revoke/", {"post": "yes"})
    assert "Only the successor works." in page(operator, change_page(key))
    assert "It was revoked on" in page(operator, change_page(successor))


def test_a_rotated_key_whose_end_was_taken_away_says_how_it_ends(operator: Client) -> None:
    key, _ = factories.make_key()
    rotate(operator, key)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=None)
    assert "Both work until this one is revoked." in page(operator, change_page(key))
    assert "Both work until that one is revoked." in page(operator, change_page(ApiKey.objects.get(predecessor=key)))
    assert ">in grace<" in page(operator, LIST)


def test_the_list_says_until_when_the_grace_is(operator: Client) -> None:
    key, _ = factories.make_key()
    rotate(operator, key)
    assert re.search(r'th-grace">in grace</span> <span class="th-quiet">until \d', page(operator, LIST))


def test_the_action_takes_one_key_to_its_form(operator: Client) -> None:
    made = [factories.make_key()[0] for _ in range(2)]
    data = {"action": "rotate_key", "_selected_action": [str(made[0].pk)]}
    assert operator.post(LIST, data)["Location"] == rotate_page(made[0])
    both = {**data, "_selected_action": [str(key.pk) for key in made]}
    assert "Choose one key" in operator.post(LIST, both, follow=True).content.decode()
    assert ApiKey.objects.count() == 2


def test_a_successor_can_be_rotated_again(operator: Client) -> None:
    key, _ = factories.make_key()
    rotate(operator, key)
    rotate(operator, ApiKey.objects.get(predecessor=key))
    assert ApiKey.objects.filter(family=key.family_id).count() == 3


def test_only_a_superuser_rotates_the_key_of_a_superuser() -> None:
    key, _ = factories.make_key()
    client = signed_in(make_staff("api.view_apikey", "api.change_apikey"))
    answer = client.post(rotate_page(key), {"grace": "0"}, follow=True)
    assert "Only a superuser can make a key for a superuser." in answer.content.decode()
    assert not key_text.PATTERN.search(answer.content.decode())
    assert (ApiKey.objects.count(), Entry.objects.filter(action="api.key_rotated").count()) == (1, 0)


def test_keys_are_rotated_by_those_who_may(client: Client) -> None:
    key, _ = factories.make_key(owner=factories.make_owner())
    assert client.post(rotate_page(key), {"grace": "0"})["Location"].startswith("/admin/login/")
    assert signed_in(factories.make_owner()).post(rotate_page(key), {"grace": "0"}).status_code == 302
    for staff in (make_staff(), make_staff("api.view_apikey", "api.add_apikey")):
        visitor = signed_in(staff)
        assert visitor.get(rotate_page(key)).status_code == 403
        assert visitor.post(rotate_page(key), {"grace": "0"}).status_code == 403
        visitor.post(LIST, {"action": "rotate_key", "_selected_action": [str(key.pk)]})
    assert rotate_page(key) not in page(signed_in(make_staff("api.view_apikey")), change_page(key))
    assert ApiKey.objects.count() == 1
    assert rotate(signed_in(make_staff("api.change_apikey")), key).status_code == 200
    assert ApiKey.objects.count() == 2


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_two_parallel_rotations_one_makes_a_successor(person: Any) -> None:
    key, _ = factories.make_key()
    clients = itertools.cycle([signed_in(person) for _ in range(2)])
    data = {"grace": "1"}
    answers = together(2, lambda: next(clients).post(rotate_page(key), data))
    shown = [answer for answer in answers if key_text.PATTERN.search(answer.content.decode())]
    assert sorted(answer.status_code for answer in answers) == [200, 302]
    assert len(shown) == 1
    assert (ApiKey.objects.count(), len(entries("api.key_rotated"))) == (2, 1)
