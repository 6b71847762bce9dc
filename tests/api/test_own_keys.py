"""My keys: what a person sees of their own keys, rotates, revokes and may make, and that nobody else's are there."""

import html
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import LiveSession
from apps.activity.models import Entry
from apps.api import key_text, keys, own_keys
from apps.api.models import ApiKey
from apps.api.own_keys import Refused
from apps.api.pages import own_keys as pages
from tests.accounts.factories import make_group, make_live_session
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.test_admin_keys import signed_in, together

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]

LIST = "/account/keys/"
NEW = f"{LIST}new/"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def person() -> Any:
    """May read with the probe, and make keys of their own where that is on."""
    return factories.make_owner(permissions=[probe.VIEW, own_keys.PERMISSION])


@pytest.fixture
def owner(client: Client, person: Any) -> Client:
    """The person in a browser."""
    client.force_login(person)
    return client


@pytest.fixture
def maker(owner: Client) -> Client:
    """The same, where people may make keys of their own."""
    factories.set_setting("api_own_keys", True)
    return owner


def shown(client: Client, address: str = LIST, **query: Any) -> str:
    """The words of the page."""
    answer = client.get(address, query)
    assert answer.status_code == 200
    return words(answer)


def words(answer: Any) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def rotate_page(key: Any) -> str:
    return f"{LIST}{getattr(key, 'pk', key)}/rotate/"


def revoke_page(key: Any) -> str:
    return f"{LIST}{getattr(key, 'pk', key)}/revoke/"


def filled(**changes: Any) -> dict[str, Any]:
    """A form as a browser sends it; None leaves a field out."""
    data = {"name": "Nightly prices", "scopes": [probe.READ], "lifetime": "90", "networks": "", "budget": ""}
    return {name: value for name, value in {**data, "once": str(uuid4()), **changes}.items() if value is not None}


def texts(answer: Any) -> set[str]:
    return set(key_text.PATTERN.findall(answer.content.decode()))


def entries(action: str) -> list[Entry]:
    return list(Entry.objects.filter(action=action))


def request_of(person: Any, *, method: str = "post", **data: Any) -> Any:
    """A request of the person that no middleware has seen, in a live session of theirs."""
    request = getattr(RequestFactory(), method)(LIST, data)
    person.live_session = person.live_session or make_live_session(person)
    request.user = person
    request._dont_enforce_csrf_checks = True
    return request


def impersonate(person: Any) -> Any:
    """Somebody who may looks at the site as the person, in each of the person's sessions."""
    looker = factories.make_owner(superuser=True)
    LiveSession.objects.filter(user=person).update(impersonator=looker)
    return looker


def act_as_role(person: Any) -> None:
    role = make_group(permissions=[probe.VIEW])
    person.groups.add(role)
    LiveSession.objects.filter(user=person).update(acting_role=role)


# --- The list


def test_the_list_shows_what_a_key_is_and_never_its_text(owner: Client, person: Any) -> None:
    key, text = factories.make_key(
        owner=person,
        name="Nightly prices",
        scopes=[probe.READ],
        networks=["192.0.2.0/24"],
        budget=50,
        requires_approval=True,
        expires_at=timezone.now() + timedelta(days=10, minutes=5),
    )
    page = shown(owner)
    expected = [
        "Nightly prices", key.public_id, "probe:read", "Echo, Search", "never used", "192.0.2.0/24", "50 units a minute",
        "each write waits until somebody else has approved it", "in 1 week, 3 days", "by a command of the operator", "active",
    ]  # fmt: skip
    assert [words for words in expected if words not in page] == []
    assert text.split("_")[3] not in page
    assert key.digest not in owner.get(LIST).content.decode()


def test_a_key_without_limits_says_so(owner: Client, person: Any) -> None:
    factories.make_key(owner=person)
    page = shown(owner)
    expected = ["everywhere", "when it is revoked", "600 units a minute, as set for all keys", "not needed"]
    assert [words for words in expected if words not in page] == []


def test_the_list_has_nobody_elses_keys(owner: Client) -> None:
    factories.make_key(name="of somebody else", owner=factories.make_owner())
    assert "of somebody else" not in shown(owner)


@pytest.mark.parametrize(
    ("ago", "said"),
    [(0, "used just now"), (3, "last used 3 hours ago")],
)
def test_the_last_use_is_told_in_words(owner: Client, person: Any, ago: int, said: str) -> None:
    key, _ = factories.make_key(owner=person)
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=timezone.now() - timedelta(hours=ago))
    assert said in shown(owner)


def test_a_key_says_who_made_it(owner: Client, person: Any) -> None:
    operator = factories.make_owner(name="The operator")
    factories.make_key(owner=person)
    for maker in (person, operator):
        keys.create(keys.Grant(name="made", scopes=[]), owner=person, created_by=maker, actor=factories.SYSTEM)
    page = shown(owner)
    assert [who for who in ("by you", "by The operator", "by a command of the operator") if who not in page] == []


def test_a_scope_that_the_owner_does_not_hold_says_what_they_lack(owner: Client, person: Any) -> None:
    factories.make_key(owner=person, scopes=[probe.READ, probe.WRITE])
    page = shown(owner)
    assert page.count("Does not work") == 1
    assert "probe:write changes data: Act, Store, Weigh Does not work: you may not do all that it allows." in page
    assert "What you lack: Act, Store, Weigh." in page
    factories.grant(person, probe.CHANGE)
    assert "Does not work" not in shown(owner)


def test_a_scope_without_an_open_tool_says_so(owner: Client, person: Any) -> None:
    factories.make_key(owner=person, scopes=[probe.READ, "gone:read"])
    assert shown(owner).count("nothing that it allows is switched on") == 1
    factories.set_setting("api_disabled_modules", ["probe"])
    assert shown(owner).count("nothing that it allows is switched on") == 2


def test_hidden_tools_are_not_among_what_a_scope_does(owner: Client, person: Any) -> None:
    factories.make_key(owner=person, scopes=[probe.READ])
    factories.set_setting("api_disabled_tools", ["probe.echo"])
    page = shown(owner)
    assert "probe:read Search" in page
    assert "Echo" not in page


def test_an_owner_who_may_not_act_is_told_that_no_key_works(person: Any) -> None:
    # Our own site leads such people to the page where they can mend it; another one may not.
    key, _ = factories.make_key(owner=person, scopes=[probe.READ])
    factories.set_setting("accounts_email_required", True)
    answer = pages.listed(request_of(person, method="get"))
    assert "Your account may not act at the moment" in words(answer)
    assert "probe:read Echo, Search Does not work: your account may not act" in words(answer)
    assert rotate_page(key) not in answer.content.decode()
    assert revoke_page(key) in answer.content.decode()


@pytest.mark.parametrize(("setting", "value"), [("api_admin_enabled", False), ("maintenance_mode", True)])
def test_the_list_says_when_the_whole_api_is_off(owner: Client, setting: str, value: bool) -> None:
    assert "The API is switched off" not in shown(owner)
    factories.set_setting(setting, value)
    assert "The API is switched off" in shown(owner)


@pytest.mark.parametrize(
    ("fields", "state", "offered"),
    [
        ({}, "active", ["rotate", "revoke"]),
        ({"exposed_at": timezone.now()}, "exposed", ["rotate", "revoke"]),
        ({"expires_at": timezone.now() - timedelta(hours=1)}, "expired", []),
        ({"revoked_at": timezone.now()}, "revoked", []),
    ],
)
def test_a_key_says_its_state_and_offers_what_can_be_done(
    owner: Client, person: Any, fields: dict[str, Any], state: str, offered: list[str]
) -> None:
    key, _ = factories.make_key(owner=person)
    ApiKey.objects.filter(pk=key.pk).update(**fields)
    page = owner.get(LIST).content.decode()
    assert f'class="state {state}">{state}<' in page
    assert [act for act in ("rotate", "revoke") if f"{LIST}{key.pk}/{act}/" in page] == offered


def test_an_exposed_key_warns_and_says_what_to_do(owner: Client, person: Any) -> None:
    key, text = factories.make_key(owner=person)
    assert 'role="alert"' not in owner.get(LIST).content.decode()
    keys.mark_exposed(text, request_id="r", ip="192.0.2.1")
    page = owner.get(LIST).content.decode()
    assert 'role="alert"' in page
    assert "Somebody else may have this key." in page
    assert "rotate it, give its program the new text, then revoke this one" in page
    rotated(owner, key)
    assert "as soon as its program has another one, revoke it" in shown(owner)


def test_ended_keys_are_folded_in_below_those_that_last(owner: Client, person: Any) -> None:
    factories.make_key(owner=person, name="the lasting one")
    ended, _ = factories.make_key(owner=person, name="the ended one")
    keys.revoke(ended, by=None, actor=factories.SYSTEM)
    page = owner.get(LIST).content.decode()
    assert (
        page.index("the lasting one") < page.index("<details") < page.index("the ended one") < page.index("</details>")
    )


def test_an_exposed_key_stands_first_while_it_lasts(owner: Client, person: Any) -> None:
    made = {name: factories.make_key(owner=person, name=f"key {name}") for name in ("ended", "leaked", "fine")}
    for name in ("ended", "leaked"):
        keys.mark_exposed(made[name][1], request_id="r", ip="192.0.2.1")
    keys.revoke(made["ended"][0], by=None, actor=factories.SYSTEM)
    assert re.findall(r"<h2[^>]*>key (\w+)<", owner.get(LIST).content.decode()) == ["leaked", "fine", "ended"]


def test_keys_come_in_one_order_and_in_pages_of_fifty(owner: Client, person: Any) -> None:
    made = [factories.make_key(owner=person, name=f"key {number:03}")[0] for number in range(pages.A_PAGE + 3)]
    for key in made[-2:]:
        keys.revoke(key, by=None, actor=factories.SYSTEM)
    expected = [f"key {number:03}" for number in [*range(pages.A_PAGE, -1, -1), pages.A_PAGE + 2, pages.A_PAGE + 1]]
    found = [re.findall(r"<h2[^>]*>(key \d+)<", owner.get(LIST, {"page": page}).content.decode()) for page in (1, 2)]
    assert [len(names) for names in found] == [pages.A_PAGE, 3]
    assert [*found[0], *found[1]] == expected
    assert "Page 2 of 2" in shown(owner, page=99)
    assert "Page 1 of 2" in shown(owner, page="odd")


def test_the_list_asks_the_database_as_often_for_many_keys_as_for_one(owner: Client, person: Any) -> None:
    def asked() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            shown(owner)
        return len(queries)

    def fill(number: int) -> None:
        for _ in range(number):
            grant = keys.Grant(name="made", scopes=[probe.READ])
            key, _ = keys.create(grant, owner=person, created_by=factories.make_owner(), actor=factories.SYSTEM)
            keys.rotate(key, grace=timedelta(hours=1), by=factories.make_owner(), actor=factories.SYSTEM)

    fill(1)
    few = asked()
    fill(8)
    assert asked() == few


def test_without_keys_the_page_says_how_one_gets_one(owner: Client, person: Any) -> None:
    assert "An administrator can make one for you" in shown(owner)
    assert NEW not in owner.get(LIST).content.decode()
    factories.set_setting("api_own_keys", True)
    assert "Make your first key" in shown(owner)
    factories.revoke(person, own_keys.PERMISSION)
    assert "You may not make keys of your own." in shown(owner)
    assert NEW not in owner.get(LIST).content.decode()


def test_visitors_sign_in_first(client: Client) -> None:
    for address in (LIST, NEW, rotate_page(UNKNOWN), revoke_page(UNKNOWN)):
        for answer in (client.get(address), client.post(address)):
            assert (answer.status_code, answer["Location"]) == (302, f"/sign-in/?next={address}")


def test_no_page_is_kept_by_the_browser_and_none_loads_from_elsewhere(maker: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    for address in (LIST, NEW, rotate_page(key), revoke_page(key)):
        answer = maker.get(address)
        assert "no-store" in answer["Cache-Control"]
        assert "default-src 'none'" in answer["Content-Security-Policy"]


# --- Not one's own


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("address", [rotate_page, revoke_page])
def test_somebody_elses_an_unknown_and_a_malformed_uuid_get_the_same_bytes(
    owner: Client, method: str, address: Callable[[Any], str]
) -> None:
    foreign, _ = factories.make_key(owner=factories.make_owner())

    def seen(uuid: Any) -> tuple[int, bytes, dict[str, str]]:
        answer = getattr(owner, method)(address(uuid), {"grace": "1"}, headers={"X-Request-ID": "same"})
        return answer.status_code, answer.content, dict(answer.headers)

    with time_machine.travel(timezone.now(), tick=False):  # a header names the second
        expected = seen(UNKNOWN)
        assert expected[0] == 404
        assert [uuid for uuid in (foreign, "odd", "%00", "new", f"{foreign.pk}0") if seen(uuid) != expected] == []
    assert ApiKey.objects.filter(revoked_at=None, successor=None).count() == 1


def test_the_same_form_of_two_people_makes_two_keys(maker: Client) -> None:
    once = str(uuid4())
    other = signed_in(factories.make_owner(permissions=[probe.VIEW, own_keys.PERMISSION]))
    assert [len(texts(client.post(NEW, filled(once=once)))) for client in (maker, other)] == [1, 1]
    mine = ApiKey.objects.order_by("created_at")[0]
    assert len(texts(other.post(NEW, filled(once=str(mine.pk))))) == 1


# --- Rotating


def rotated(client: Client, key: ApiKey, *, grace: int = 24, **extra: Any) -> Any:
    return client.post(rotate_page(key), {"grace": str(grace)}, **extra)


def test_the_form_of_a_rotation_offers_four_graces_and_a_day_is_chosen(owner: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person, name="Nightly prices")
    page = owner.get(rotate_page(key)).content.decode()
    assert re.findall(r'name="grace" value="(\d+)"[^>]*?(checked)?>', page) == [
        ("0", ""), ("1", ""), ("24", "checked"), ("168", ""),
    ]  # fmt: skip
    assert "Nightly prices" in page
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize("hours", [0, 1, 24, 168])
def test_the_successor_has_the_grant_and_the_old_key_the_grace(owner: Client, person: Any, hours: int) -> None:
    key, _ = factories.make_key(owner=person, scopes=[probe.READ], budget=50)
    answer = rotated(owner, key, grace=hours, headers={"X-Request-ID": "the-request"}, REMOTE_ADDR="192.0.2.7")
    (text,) = texts(answer)
    old = ApiKey.objects.select_related("successor").get(pk=key.pk)
    assert old.successor is not None
    assert key_text.public_id(text) == old.successor.public_id
    assert keys.grant_of(old.successor) == keys.grant_of(key)
    assert (old.successor.owner, old.successor.created_by) == (person, person)
    assert ("opens nothing any more" in words(answer)) == (hours == 0)
    (entry,) = entries("api.key_rotated")
    assert (entry.mode, entry.actor_kind, entry.actor_uuid) == ("manual", "user", str(person.pk))
    assert (entry.request_id, entry.ip, entry.resource_uuid) == ("the-request", "192.0.2.7", str(key.pk))
    assert entry.metadata["grace_seconds"] == hours * 3600


def test_both_keys_say_how_they_belong_together(owner: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    rotated(owner, key, grace=1)
    page = shown(owner)
    assert "in grace" in page
    assert re.search(r"Rotated: \w{12} takes its place\. Until .* both work", page)
    assert rotate_page(key) not in owner.get(LIST).content.decode()
    with time_machine.travel(timezone.now() + timedelta(hours=2), tick=True):
        assert "Only the successor works." in shown(signed_in(person))


def test_an_odd_grace_rotates_nothing(owner: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    for grace in ("", "2", "odd", "-1", "8760"):
        assert 'class="errors"' in owner.post(rotate_page(key), {"grace": grace}).content.decode()
    assert ApiKey.objects.count() == 1


def test_a_rotation_sent_twice_makes_one_successor_and_says_so_calmly(owner: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    rotated(owner, key)
    answer = owner.post(rotate_page(key), {"grace": "24"}, follow=True)
    assert answer.redirect_chain == [(LIST, 302)]
    assert "was rotated already" in words(answer)
    assert not texts(answer)
    assert (ApiKey.objects.count(), len(entries("api.key_rotated"))) == (2, 1)


@pytest.mark.parametrize(
    "fields", [{"revoked_at": timezone.now()}, {"expires_at": timezone.now() - timedelta(hours=1)}]
)
def test_a_key_that_has_ended_is_not_rotated(owner: Client, person: Any, fields: dict[str, Any]) -> None:
    key, _ = factories.make_key(owner=person)
    ApiKey.objects.filter(pk=key.pk).update(**fields)
    for answer in (owner.get(rotate_page(key), follow=True), owner.post(rotate_page(key), {"grace": "1"}, follow=True)):
        assert "has ended: there is nothing to rotate" in words(answer)
    assert ApiKey.objects.count() == 1


def test_the_text_of_a_new_key_is_kept_nowhere(maker: Client, person: Any, capfd: pytest.CaptureFixture[str]) -> None:
    (made,) = texts(maker.post(NEW, filled()))
    (successor,) = texts(rotated(maker, ApiKey.objects.get()))
    stored = [str(row) for model in apps.get_models() for row in model._default_manager.values()]
    later = f"{maker.get(LIST).content.decode()}{capfd.readouterr()}{maker.cookies}{dict(maker.session)}"
    for secret in (made.split("_")[3], successor.split("_")[3]):
        assert not [row for row in stored if secret in row]
        assert secret not in later


# --- Revoking


def test_revoking_asks_first_and_leaves_one_entry_of_the_person(owner: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person, name="Nightly prices")
    assert "Revoke this key for good?" in shown(owner, revoke_page(key))
    assert ApiKey.objects.get().revoked_at is None

    answer = owner.post(revoke_page(key), follow=True, headers={"X-Request-ID": "the-request"}, REMOTE_ADDR="192.0.2.7")

    assert "Nightly prices is revoked" in words(answer)
    assert ApiKey.objects.get().revoked_by == person
    (entry,) = entries("api.key_revoked")
    assert (entry.mode, entry.actor_kind, entry.actor_uuid) == ("manual", "user", str(person.pk))
    assert (entry.request_id, entry.ip, entry.resource_uuid) == ("the-request", "192.0.2.7", str(key.pk))


def test_a_revocation_sent_twice_is_one_and_says_so_calmly(owner: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    for _ in range(2):
        answer = owner.post(revoke_page(key), follow=True)
    assert "had been revoked already" in words(answer)
    assert "had been revoked already" in words(owner.get(revoke_page(key), follow=True))
    assert len(entries("api.key_revoked")) == 1


@pytest.mark.parametrize("act", ["rotate", "revoke", "new"])
def test_a_form_without_its_token_changes_nothing(person: Any, act: str) -> None:
    factories.set_setting("api_own_keys", True)
    key, _ = factories.make_key(owner=person)
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    address = {"rotate": rotate_page(key), "revoke": revoke_page(key), "new": NEW}[act]
    assert client.post(address, filled(grace="1")).status_code == 403
    assert list(ApiKey.objects.filter(revoked_at=None, successor=None)) == [key]


# --- Making


def test_a_person_makes_a_key_for_themselves(maker: Client, person: Any) -> None:
    data = filled(networks="192.0.2.1\n127.0.0.0/8", budget="20", requires_approval="on", lifetime="30")
    before = timezone.now()
    answer = maker.post(NEW, data, headers={"X-Request-ID": "the-request"}, REMOTE_ADDR="192.0.2.7")

    (text,) = texts(answer)
    key = ApiKey.objects.get(public_id=key_text.public_id(text))
    assert "no-store" in answer["Cache-Control"]
    assert (key.owner, key.created_by) == (person, person)
    assert (key.name, key.scopes, key.requires_approval) == ("Nightly prices", [probe.READ], True)
    assert (key.networks, key.budget) == (["192.0.2.1/32", "127.0.0.0/8"], 20)
    assert key.expires_at is not None
    assert timedelta(0) <= key.expires_at - before - timedelta(days=30) < timedelta(minutes=1)
    (entry,) = entries("api.key_created")
    assert (entry.mode, entry.actor_kind, entry.actor_uuid) == ("manual", "user", str(person.pk))
    assert (entry.request_id, entry.ip, entry.resource_uuid) == ("the-request", "192.0.2.7", str(key.pk))


@pytest.mark.django_db(transaction=True)
def test_a_key_that_a_person_made_calls_the_api_until_they_revoke_it(maker: Client) -> None:
    (text,) = texts(maker.post(NEW, filled()))
    machine = Machine(text=text)
    assert [name for name in machine.tools() if not name.startswith("system.")] == ["probe.echo", "probe.search"]
    assert machine.call("probe.echo").status_code == 200
    maker.post(revoke_page(ApiKey.objects.get()))
    assert machine.call("probe.echo").status_code == 401


def test_the_form_offers_the_scopes_that_the_person_holds_and_ninety_days(maker: Client, person: Any) -> None:
    page = maker.get(NEW).content.decode()
    assert re.findall(r'name="scopes" value="([^"]+)"', page) == [probe.READ]
    assert re.findall(r'<option value="(\d+)" selected>', page) == ["90"]
    assert "Echo, Search" in page
    factories.grant(person, probe.CHANGE)
    assert re.findall(r'name="scopes" value="([^"]+)"', maker.get(NEW).content.decode()) == [probe.READ, probe.WRITE]


def test_whoever_holds_no_scope_is_told_so(maker: Client, person: Any) -> None:
    factories.revoke(person, probe.VIEW)
    assert "You hold no scope right now" in shown(maker, NEW)
    assert not texts(maker.post(NEW, filled()))


HOSTILE: dict[str, dict[str, Any]] = {
    "a scope that is not held": {"scopes": [probe.READ, probe.WRITE]},
    "a scope that there is not": {"scopes": ["root:all"]},
    "no scope": {"scopes": None},
    "somebody else as owner": {"owner": UNKNOWN},
    "themselves as owner": {"owner_id": "1"},
    "a maker": {"created_by": UNKNOWN},
    "fewer approvers": {"approvers_needed": "0"},
    "no name": {"name": " "},
    "a name that is too long": {"name": "n" * 101},
    "a name with a null": {"name": "a\x00b"},
    "no end": {"lifetime": ""},
    "an end in two years": {"lifetime": "730"},
    "a network that is none": {"networks": "somewhere"},
    "a budget above the setting": {"budget": "601"},
    "a budget below the least": {"budget": "19"},
    "a budget that is no number": {"budget": "1e9"},
    "no name of the form": {"once": None},
    "an odd name of the form": {"once": "odd"},
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE)
def test_a_form_that_asks_for_more_is_refused_with_an_error(maker: Client, changes: dict[str, Any]) -> None:
    answer = maker.post(NEW, filled(**changes))
    assert answer.status_code == 200
    assert "No key was made." in words(answer)
    assert ApiKey.objects.count() == 0


def test_the_budget_is_at_most_the_setting(maker: Client) -> None:
    factories.set_setting("api_key_budget", 30)
    assert "20 to 30" in shown(maker, NEW)
    assert not texts(maker.post(NEW, filled(budget="31")))
    assert len(texts(maker.post(NEW, filled(budget="30")))) == 1


def test_a_setting_below_the_least_budget_leaves_nothing_to_choose(maker: Client) -> None:
    factories.set_setting("api_key_budget", 10)
    assert 'name="budget"' not in maker.get(NEW).content.decode()
    assert not texts(maker.post(NEW, filled(budget="20")))
    assert len(texts(maker.post(NEW, filled(budget=None)))) == 1


def test_a_form_sent_twice_makes_one_key(maker: Client) -> None:
    data = filled()
    assert len(texts(maker.post(NEW, data))) == 1
    again = maker.post(NEW, data)
    assert (again.status_code, "This form was sent before" in words(again), texts(again)) == (409, True, set())
    assert (ApiKey.objects.count(), len(entries("api.key_created"))) == (1, 1)


@pytest.mark.parametrize("method", ["get", "post"])
def test_no_key_is_made_where_it_is_off_or_not_allowed(owner: Client, person: Any, method: str) -> None:
    answer = getattr(owner, method)(NEW, filled())
    assert (answer.status_code, "is switched off here" in words(answer)) == (403, True)
    factories.set_setting("api_own_keys", "odd")
    assert getattr(owner, method)(NEW, filled()).status_code == 403
    factories.set_setting("api_own_keys", True)
    factories.revoke(person, own_keys.PERMISSION)
    answer = getattr(owner, method)(NEW, filled())
    assert (answer.status_code, "You may not make keys" in words(answer)) == (403, True)
    assert ApiKey.objects.count() == 0


def test_a_form_opened_before_the_switch_went_off_makes_no_key(maker: Client) -> None:
    maker.get(NEW)
    factories.set_setting("api_own_keys", False)
    assert maker.post(NEW, filled()).status_code == 403
    assert ApiKey.objects.count() == 0


def grant(**changes: Any) -> keys.Grant:
    expires_at = timezone.now() + timedelta(days=1)
    return keys.Grant(**{"name": "made", "scopes": [probe.READ], "expires_at": expires_at, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"scopes": [probe.WRITE]},
        {"scopes": []},
        {"expires_at": None},
        {"expires_at": timezone.now() + timedelta(days=370)},
        {"budget": 601},
    ],
)
def test_what_the_form_let_through_is_looked_at_again(person: Any, changes: dict[str, Any]) -> None:
    factories.set_setting("api_own_keys", True)
    with pytest.raises(ValidationError):
        own_keys.create(request_of(person), grant(**changes), once=uuid4())
    assert ApiKey.objects.count() == 0


def test_a_person_has_at_most_so_many_keys_that_they_made(maker: Client, person: Any) -> None:
    factories.set_setting("api_own_keys", True)
    request = request_of(person)
    made = [own_keys.create(request, grant(), once=uuid4())[0] for _ in range(own_keys.LIMIT)]
    for answer in (maker.get(NEW), maker.post(NEW, filled())):
        assert (answer.status_code, "As many keys" in words(answer)) == (409, True)
    # A rotation makes no room and takes none; nor do keys that somebody else made for them.
    rotated(maker, made[0])
    assert maker.get(NEW).status_code == 409
    keys.revoke(ApiKey.objects.get(predecessor=made[0]), by=None, actor=factories.SYSTEM)
    assert maker.get(NEW).status_code == 409
    keys.revoke(made[0], by=None, actor=factories.SYSTEM)
    factories.make_key(owner=person)
    assert len(texts(maker.post(NEW, filled()))) == 1


# --- Sessions that are worth less than their person


def test_an_impersonated_session_may_look_and_nothing_else(maker: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person, name="Nightly prices")
    impersonate(person)
    page = maker.get(LIST).content.decode()
    assert "Nightly prices" in page
    assert [address for address in (NEW, rotate_page(key), revoke_page(key)) if address in page] == []
    for address in (NEW, rotate_page(key), revoke_page(key), rotate_page(UNKNOWN), revoke_page("odd")):
        answer = maker.get(address)
        assert (answer.status_code, "looking at the site as another person" in words(answer)) == (403, True)
        assert maker.post(address, filled(grace="1")).status_code == 403
    # The pages refuse by themselves too, whatever stands before them.
    request = request_in_session_of(person, **filled(grace="1"))
    answers = [pages.new(request), pages.rotate(request, str(key.pk)), pages.revoke(request, str(key.pk))]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert list(ApiKey.objects.filter(revoked_at=None, successor=None)) == [key]


def test_a_session_that_acts_as_a_role_gets_no_text_of_a_key_but_may_revoke(maker: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    act_as_role(person)
    page = maker.get(LIST).content.decode()
    assert [address for address in (NEW, rotate_page(key)) if address in page] == []
    for address in (NEW, rotate_page(key)):
        for answer in (maker.get(address), maker.post(address, filled(grace="1"))):
            assert (answer.status_code, "one of your roles" in words(answer)) == (403, True)
    with pytest.raises(Refused):
        own_keys.create(request_in_session_of(person), grant(), once=uuid4())
    assert ApiKey.objects.count() == 1
    maker.post(revoke_page(key))
    assert ApiKey.objects.exclude(revoked_at=None).count() == 1


def request_in_session_of(person: Any, **data: Any) -> Any:
    person.live_session = LiveSession.objects.select_related("acting_role", "impersonator").get(user=person)
    return request_of(person, **data)


def test_whoever_may_not_act_makes_and_rotates_nothing(person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    factories.set_setting("api_own_keys", True)
    factories.set_setting("accounts_referral_required", True)
    answers = [pages.new(request_of(person, **filled())), pages.rotate(request_of(person, grace="1"), str(key.pk))]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert ApiKey.objects.count() == 1


# --- Between the look and the lock


@contextmanager
def meanwhile(change: Callable[[], Any]) -> Iterator[None]:
    """Somebody changes something just before the first transaction that is opened inside."""
    pending = [change]

    def run(execute: Any, sql: str, *more: Any) -> Any:
        if sql.startswith("SAVEPOINT") and pending:
            pending.pop()()
        return execute(sql, *more)

    with connection.execute_wrapper(run):
        yield
    assert not pending


def test_a_budget_lowered_meanwhile_counts(maker: Client) -> None:
    with meanwhile(lambda: factories.set_setting("api_key_budget", 100)):
        answer = maker.post(NEW, filled(budget="600"))
    assert "at most the budget that is set for all keys" in words(answer)
    assert ApiKey.objects.count() == 0


def test_a_permission_lost_meanwhile_counts(maker: Client, person: Any) -> None:
    with meanwhile(lambda: factories.revoke(person, probe.VIEW)):
        answer = maker.post(NEW, filled())
    assert "scopes that you hold right now" in words(answer)
    assert ApiKey.objects.count() == 0


def test_a_switch_that_went_off_meanwhile_counts(maker: Client) -> None:
    with meanwhile(lambda: factories.set_setting("api_own_keys", False)):
        assert maker.post(NEW, filled()).status_code == 403
    assert ApiKey.objects.count() == 0


def test_a_key_that_was_revoked_meanwhile_is_not_rotated(owner: Client, person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    with meanwhile(lambda: ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())):
        answer = rotated(owner, key, follow=True)
    assert "has ended: there is nothing to rotate" in words(answer)
    assert ApiKey.objects.count() == 1


# --- Races


def race(person: Any, address: str, forms: list[dict[str, Any]]) -> list[Any]:
    """Each form from a browser of its own, at the same moment."""
    waiting = itertools.cycle([(signed_in(person), form) for form in forms])
    lock = threading.Lock()

    def send() -> Any:
        with lock:
            client, form = next(waiting)
        return client.post(address, form)

    return together(len(forms), send)


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_two_parallel_rotations_one_makes_a_successor(person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    answers = race(person, rotate_page(key), [{"grace": "1"}] * 2)
    assert sorted(answer.status_code for answer in answers) == [200, 302]
    assert (ApiKey.objects.count(), len(entries("api.key_rotated"))) == (2, 1)


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_two_parallel_revocations_one_counts(person: Any) -> None:
    key, _ = factories.make_key(owner=person)
    answers = race(person, revoke_page(key), [{}] * 2)
    assert [answer.status_code for answer in answers] == [302, 302]
    assert len(entries("api.key_revoked")) == 1


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_one_form_sent_four_times_at_once_makes_one_key(person: Any) -> None:
    factories.set_setting("api_own_keys", True)
    answers = race(person, NEW, [filled()] * 4)
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    assert (ApiKey.objects.count(), len(entries("api.key_created"))) == (1, 1)


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_parallel_forms_make_no_key_more_than_may_be(person: Any) -> None:
    factories.set_setting("api_own_keys", True)
    for _ in range(own_keys.LIMIT - 1):
        own_keys.create(request_of(person), grant(), once=uuid4())
    answers = race(person, NEW, [filled() for _ in range(4)])
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    assert ApiKey.objects.count() == own_keys.LIMIT
