"""The gate of an unconfirmed address: what it lets see, the mail, and the link that confirms (PS-1, PS-3)."""

import re
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from apps.accounts import confirming, doors
from apps.accounts.models import LiveSession, User
from apps.activity.models import Entry
from apps.api.models import Setting
from tests.accounts import mailbox
from tests.accounts.factories import PASSWORD, make_owner, make_user, switch_on

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

GATE = "/account/e-mail/"
NOON = "2030-01-01T12:00:00Z"


@pytest.fixture
def required() -> None:
    """The operator wants confirmed addresses."""
    switch_on("accounts_email_required")


@pytest.fixture
def user(client: Client) -> User:
    """Somebody unconfirmed, signed in."""
    user = make_user(email="member@example.org", password=PASSWORD)
    client.force_login(user)
    return user


def _link(user: User) -> str:
    return f"{GATE}{confirming.token(user)}/"


def _confirmed(user: User) -> bool:
    user.refresh_from_db()
    return user.email_confirmed_at is not None


def _entries() -> int:
    return Entry.objects.filter(action="account.email_confirmed").count()


@pytest.mark.usefixtures("required", "user")
@pytest.mark.parametrize("path", ["/", "/password/change/", "/account/sessions/", "/account/referral/", "/who-async/"])
def test_every_page_leads_to_the_one_that_mends_it(client: Client, path: str) -> None:
    assert client.get(path).headers["Location"] == f"{GATE}?next={path}"
    page = client.get(GATE)
    assert (page.status_code, "member@example.org" in page.content.decode()) == (200, True)


@pytest.mark.usefixtures("required")
def test_the_admin_site_is_shut_for_its_staff_too(client: Client) -> None:
    owner = make_owner()
    client.force_login(owner)
    assert client.get("/admin/").headers["Location"] == f"{GATE}?next=/admin/"
    assert client.post("/admin/accounts/user/add/", {"email": "bea@example.org"}).headers["Location"] == GATE
    User.objects.filter(pk=owner.pk).update(email_confirmed_at=timezone.now())
    assert client.get("/admin/").status_code == 200
    assert client.get(f"{GATE}?next=/admin/").headers["Location"] == "/admin/"


@pytest.mark.usefixtures("required", "user")
def test_nothing_is_done_by_a_post_to_a_shut_page(client: Client) -> None:
    data = {
        "old_password": PASSWORD,
        "new_password1": "another quiet password",
        "new_password2": "another quiet password",
    }
    assert client.post("/password/change/", data).headers["Location"] == GATE
    assert not Entry.objects.filter(action="session.password_changed").exists()


@pytest.mark.usefixtures("required", "user")
@pytest.mark.parametrize("path", ["/idle/", "/sign-in/?next=/", "/password/reset/"])
def test_what_is_open_to_everybody_stays_open(client: Client, path: str) -> None:
    assert client.get(path).status_code == 200


@pytest.mark.usefixtures("required", "user")
def test_signing_out_stays_open(client: Client) -> None:
    assert client.post("/sign-out/").headers["Location"] == "/sign-in/"


@pytest.mark.usefixtures("required")
def test_the_right_password_signs_in_to_the_gate(client: Client) -> None:
    make_user(email="bea@example.org", password=PASSWORD)
    answer = client.post("/sign-in/", {"username": "bea@example.org", "password": PASSWORD}, follow=True)
    assert (answer.status_code, answer.request["PATH_INFO"]) == (200, GATE)


@pytest.mark.usefixtures("required")
def test_a_visitor_meets_no_gate(client: Client) -> None:
    assert client.get("/").status_code == 200
    assert client.get(GATE).headers["Location"] == f"/sign-in/?next={GATE}"


@pytest.mark.usefixtures("user")
def test_while_it_is_off_nobody_is_stopped(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(4):  # the browser session, the person, the row, the settings
        assert client.get("/").status_code == 200


@pytest.mark.usefixtures("user")
def test_a_setting_that_cannot_be_read_shuts_the_gate(client: Client) -> None:
    Setting.objects.create(name="accounts_email_required", value="perhaps")
    assert client.get("/").headers["Location"] == f"{GATE}?next=/"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("required", "user")
def test_machines_are_not_led_to_pages(client: Client, settings: Settings) -> None:
    settings.ROOT_URLCONF = "config.urls"
    assert client.get("/api/v1/tools").status_code == 401


@pytest.mark.usefixtures("required")
def test_a_blocked_person_is_signed_out_before_any_gate(client: Client, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert client.get("/").json()["user"] == "AnonymousUser"


@pytest.mark.usefixtures("required")
def test_the_button_sends_a_mail_whose_link_confirms(client: Client, user: User) -> None:
    page = client.post(f"{GATE}?next=/who-async/", follow=True)
    assert "A mail is on its way to member@example.org" in page.content.decode()
    (mail,) = mailbox.sent()
    assert (mail.to, "http://testserver/account/e-mail/" in mail.body) == (["member@example.org"], True)
    assert client.post(mailbox.link()).headers["Location"] == "/"
    assert (_confirmed(user), client.get(f"{GATE}?next=/who-async/").headers["Location"]) == (True, "/who-async/")


def test_the_link_confirms_by_a_click_on_its_page_alone(client: Client, user: User) -> None:
    page = client.get(_link(user))
    assert ("<button" in page.content.decode(), page.status_code, _confirmed(user)) == (True, 200, False)
    assert "no-store" in page.headers["Cache-Control"]
    client.post(_link(user))
    entry = Entry.objects.get(action="account.email_confirmed")
    assert (_confirmed(user), entry.actor_uuid, entry.target) == (True, str(user.pk), "member@example.org")


def test_the_link_works_in_a_browser_that_is_not_signed_in(user: User) -> None:
    answer = Client().post(_link(user), follow=True)
    assert (answer.request["PATH_INFO"], "is confirmed" in answer.content.decode()) == ("/sign-in/", True)
    assert _confirmed(user)


def test_a_link_that_was_used_says_that_all_is_well(client: Client, user: User) -> None:
    link = _link(user)
    client.post(link)
    for page in (client.get(link), client.post(link)):
        assert (page.status_code, "is confirmed" in page.content.decode()) == (200, True)
    assert _entries() == 1


@pytest.mark.parametrize(
    "change", [{"email": "bea@example.org"}, {"is_active": False}], ids=["another address", "blocked"]
)
def test_a_link_is_good_for_its_address_and_an_active_person(user: User, change: dict[str, Any]) -> None:
    link = _link(user)
    User.objects.filter(pk=user.pk).update(**change)
    page = Client().post(link)
    assert (page.status_code, "no longer good" in page.content.decode(), _entries()) == (404, True, 0)


def test_a_link_is_good_for_three_days(user: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        link = _link(user)
        clock.shift(confirming.VALID.total_seconds())
        assert Client().get(link).status_code == 200
        clock.shift(2)
        assert Client().get(link).status_code == 404


@pytest.mark.parametrize("token", ["x", ":", "a:b:c", "0" * 5000, "%00", "{pk}", "{pk}:1tY3Q0:forged", "{other}"])
def test_a_link_that_is_none_of_ours_is_a_page_and_no_error(client: Client, user: User, token: str) -> None:
    other = confirming.token(make_user())
    sent = token.format(pk=user.pk, other=f"{user.pk}:{other.partition(':')[2]}")
    assert client.post(f"{GATE}{sent}/").status_code == 404
    assert not _confirmed(user)


def test_somebody_is_written_to_so_often_and_no_more(client: Client) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        client.force_login(make_user())
        for _ in range(doors.EMAIL.account.attempts):
            assert client.post(GATE).status_code == 302
        client.defaults["REMOTE_ADDR"] = "192.0.2.9"
        refused = client.post(GATE)
        assert (refused.status_code, 'role="alert"' in refused.content.decode()) == (429, True)
        assert 1 <= int(refused.headers["Retry-After"]) <= 900
        clock.shift(901)
        assert client.post(GATE).status_code == 302
    assert len(mailbox.sent()) == doors.EMAIL.account.attempts + 1


def test_a_confirmed_person_is_sent_no_mail(client: Client) -> None:
    client.force_login(make_user(email_confirmed_at=timezone.now()))
    assert client.post(GATE).status_code == 302
    assert mailbox.sent() == []


@pytest.mark.usefixtures("required")
def test_who_looks_as_somebody_else_sees_the_gate_and_does_nothing(client: Client, user: User) -> None:
    LiveSession.objects.update(impersonator=make_owner(email_confirmed_at=timezone.now()))
    assert client.get("/").headers["Location"] == f"{GATE}?next=/"
    page = client.get(GATE).content.decode()
    assert ("as somebody else" in page, "Send the mail" in page) == (True, False)
    assert (client.post(GATE).status_code, client.post(_link(user)).status_code) == (403, 403)
    assert (mailbox.sent(), _confirmed(user)) == ([], False)


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_two_clicks_at_once_one_confirms() -> None:
    user = make_user()
    link = _link(user)
    acts = [lambda: Client().post(link).status_code for _ in range(4)]
    assert sorted(mailbox.at_once(acts)) == [200, 200, 200, 302]
    assert _entries() == 1


@pytest.mark.parametrize(
    ("email", "set_anew", "confirmed"),
    [
        ("bea@example.org", False, False),
        ("bea@example.org", True, True),
        ("MEMBER@example.org", False, True),
        ("member@example.org", False, True),
    ],
    ids=["another address", "vouched for", "another spelling", "the same"],
)
def test_an_operator_who_changes_the_address_makes_it_unconfirmed(
    client: Client, email: str, set_anew: bool, confirmed: bool
) -> None:
    user = make_user(email="member@example.org", email_confirmed_at=timezone.now())
    client.force_login(make_owner())
    data = _shown(client, user) | {"email": email}
    if set_anew:
        data["email_confirmed_at_0"] = "2030-01-01"
    assert client.post(f"/admin/accounts/user/{user.pk}/change/", data).status_code == 302
    assert (_confirmed(user), user.email) == (confirmed, email.lower())


def test_a_page_of_an_operator_does_not_undo_what_the_person_did_meanwhile(client: Client) -> None:
    user = make_user()
    client.force_login(make_owner())
    data = _shown(client, user) | {"name": "Member"}
    confirming.confirm(user, now=timezone.now())
    User.objects.filter(pk=user.pk).update(referral_code="SPRING2026")
    assert client.post(f"/admin/accounts/user/{user.pk}/change/", data).status_code == 302
    assert (_confirmed(user), user.referral_code, user.name) == (True, "SPRING2026", "Member")


def test_an_operator_can_take_a_confirmation_and_a_code_back(client: Client) -> None:
    user = make_user(email_confirmed_at=timezone.now(), referral_code="SPRING2026")
    client.force_login(make_owner())
    data = _shown(client, user) | {"email_confirmed_at_0": "", "email_confirmed_at_1": "", "referral_code": ""}
    assert client.post(f"/admin/accounts/user/{user.pk}/change/", data).status_code == 302
    assert (_confirmed(user), user.referral_code) == (False, "")


def _shown(client: Client, user: User) -> dict[str, str]:
    """What the browser would send from the person's admin page as it is now."""
    page = client.get(f"/admin/accounts/user/{user.pk}/change/").content.decode()
    sent = {}
    for tag in re.findall(r"<input[^>]*>", page):
        found = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if "name" in found and (found.get("type") != "checkbox" or " checked" in tag):
            sent[found["name"]] = found.get("value", "on" if found.get("type") == "checkbox" else "")
    return {name: text for name, text in sent.items() if not name.startswith("_")}
