"""Referral codes: the gate, giving one, what refuses one, and their admin pages (PS-1, PS-3)."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from apps.accounts import doors, referrals
from apps.accounts.models import LiveSession, ReferralCode, User
from apps.activity.models import Entry
from tests.accounts import mailbox
from tests.accounts.factories import make_owner, make_referral_code, make_user, switch_on

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

GATE, CODES = "/account/referral/", "/admin/accounts/referralcode/"
NOON = "2030-01-01T12:00:00Z"


@pytest.fixture
def user(client: Client) -> User:
    """Somebody without a code, signed in where one is required."""
    switch_on("accounts_referral_required")
    user = make_user(email="member@example.org")
    client.force_login(user)
    return user


def _give(client: Client, code: str) -> Any:
    return client.post(GATE, {"code": code})


def _given(user: User) -> str:
    user.refresh_from_db()
    return str(user.referral_code)


@pytest.mark.usefixtures("user")
def test_every_page_leads_to_the_one_that_mends_it(client: Client) -> None:
    assert client.get("/password/change/").headers["Location"] == f"{GATE}?next=/password/change/"
    assert client.get("/account/e-mail/").headers["Location"] == f"{GATE}?next=/account/e-mail/"
    assert client.get(GATE).status_code == 200


def test_the_address_is_confirmed_first(client: Client, user: User) -> None:
    switch_on("accounts_email_required")
    code = make_referral_code()
    assert _give(client, code.code).headers["Location"] == "/account/e-mail/"
    User.objects.filter(pk=user.pk).update(email_confirmed_at=timezone.now())
    assert client.get("/account/e-mail/").headers["Location"] == f"{GATE}?next=/account/e-mail/"
    assert _give(client, code.code).headers["Location"] == "/"


def test_a_good_code_opens_the_gate_and_is_recorded(client: Client, user: User) -> None:
    code = make_referral_code(most_uses=3)
    answer = client.post(f"{GATE}?next=/who-async/", {"code": code.code})
    assert (answer.headers["Location"], client.get("/").status_code) == ("/who-async/", 200)
    code.refresh_from_db()
    entry = Entry.objects.get(action="account.referral_given")
    assert (_given(user), code.uses) == (code.code, 1)
    assert (entry.actor_uuid, entry.metadata) == (str(user.pk), {"code": str(code.pk)})


@pytest.mark.parametrize("typed", ["spring2026", " Spring 2026 ", "SPRING-2026", "spring\u00a02026"])
def test_case_spaces_and_hyphens_do_not_matter(client: Client, user: User, typed: str) -> None:
    make_referral_code(code="SPRING2026")
    assert _give(client, typed).status_code == 302
    assert _given(user) == "SPRING2026"


def test_every_code_that_is_not_good_reads_the_same(client: Client, user: User) -> None:
    past = timezone.now() - timedelta(seconds=1)
    codes = [
        make_referral_code(most_uses=2, uses=2).code,
        make_referral_code(expires_at=past).code,
        make_referral_code(is_active=False).code,
        "UNKNOWN",
        "x" * 101,
        "-",
    ]
    answers = set()
    for code in codes:
        page = _give(client, code)
        text = page.content.decode().replace(f'value="{code}"', "…").replace(str(page.context["csrf_token"]), "…")
        answers.add((page.status_code, text))
    assert len(answers) == 1
    assert ("This code is not valid" in answers.pop()[1], _given(user)) == (True, "")
    assert not Entry.objects.filter(action="account.referral_given").exists()


def test_codes_are_tried_so_often_and_no_more(client: Client) -> None:
    code = make_referral_code()
    with time_machine.travel(NOON, tick=False) as clock:
        client.force_login(make_user())
        for number in range(doors.REFERRAL.account.attempts):
            client.defaults["REMOTE_ADDR"] = f"192.0.2.{number}"
            assert _give(client, "UNKNOWN").status_code == 200
        refused = _give(client, code.code)
        assert (refused.status_code, "Too many attempts" in refused.content.decode()) == (429, True)
        assert 1 <= int(refused.headers["Retry-After"]) <= 300
        clock.shift(301)
        assert _give(client, code.code).status_code == 302


def test_a_network_tries_so_often_and_no_more() -> None:
    with time_machine.travel(NOON, tick=False):
        answers = []
        for _ in range(4):
            client = Client()
            client.force_login(make_user())
            answers += [_give(client, "UNKNOWN").status_code for _ in range(8)]
    assert doors.REFERRAL.network is not None
    assert answers.count(200) == doors.REFERRAL.network.attempts


def test_who_has_given_one_is_led_on_and_uses_up_no_other(client: Client, user: User) -> None:
    first, second = make_referral_code(), make_referral_code()
    _give(client, first.code)
    assert client.get(GATE).headers["Location"] == "/"
    assert _give(client, second.code).headers["Location"] == "/"
    second.refresh_from_db()
    assert (_given(user), second.uses) == (first.code, 0)


def test_who_looks_as_somebody_else_sees_the_gate_and_does_nothing(client: Client, user: User) -> None:
    LiveSession.objects.update(impersonator=make_owner(referral_code="A CODE"))
    page = client.get(GATE).content.decode()
    assert ("as somebody else" in page, 'name="code"' in page) == (True, False)
    assert (_give(client, make_referral_code().code).status_code, _given(user)) == (403, "")


def test_who_runs_the_server_is_shut_out_by_no_gate(client: Client) -> None:
    switch_on("accounts_email_required", "accounts_referral_required")
    client.force_login(User.objects.create_superuser("owner@example.org"))
    assert client.get("/admin/").status_code == 200


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_the_last_use_goes_to_one_of_two_people() -> None:
    code, people = make_referral_code(most_uses=2, uses=1), [make_user(), make_user()]
    now = timezone.now()
    acts = [partial(referrals.redeem, user, code.code, now=now) for user in people]
    assert sorted(mailbox.at_once(acts)) == [False, True]
    code.refresh_from_db()
    assert (code.uses, User.objects.filter(referral_code=code.code).count()) == (2, 1)


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_one_person_who_sends_several_at_once_uses_up_one() -> None:
    codes, user, now = [make_referral_code() for _ in range(2)], make_user(), timezone.now()
    acts = [partial(referrals.redeem, user, code.code, now=now) for code in codes * 2]
    assert list(mailbox.at_once(acts)) == [True] * 4
    assert sum(ReferralCode.objects.values_list("uses", flat=True)) == 1
    assert Entry.objects.filter(action="account.referral_given").count() == 1


@pytest.mark.parametrize("code", ["abc1", "ABC", "AB C1", "ÄBC1", ""])
def test_a_code_is_kept_in_one_spelling(code: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_referral_code(code=code)


def test_a_code_that_nobody_chose_can_not_be_guessed() -> None:
    codes = {make_referral_code().code for _ in range(50)}
    assert len(codes) == 50
    assert {len(code) for code in codes} == {12}


@pytest.fixture
def owner(client: Client) -> User:
    """Who uses the admin site in these tests."""
    owner = make_owner()
    client.force_login(owner)
    return owner


def test_an_operator_makes_a_code(client: Client, owner: User) -> None:
    page = client.get(f"{CODES}add/")
    assert "people" not in page.context["adminform"].form.fields
    data = {"code": "spring-2026", "note": "Fair", "most_uses": "3", "is_active": "on"}
    assert client.post(f"{CODES}add/", data).status_code == 302
    code = ReferralCode.objects.get()
    entry = Entry.objects.get(action="account.referral_code_created")
    assert (code.code, code.most_uses, code.created_by) == ("SPRING2026", 3, owner)
    assert (entry.actor_uuid, entry.target, "SPRING" in str(entry.metadata)) == (str(owner.pk), "Fair", False)


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("code", ["abc", "spring!", "spring 2026"])
def test_a_code_that_is_misspelled_or_taken_is_refused_with_a_reason(client: Client, code: str) -> None:
    make_referral_code(code="SPRING2026")
    page = client.post(f"{CODES}add/", {"code": code, "is_active": "on"})
    assert (page.status_code, "errorlist" in page.content.decode()) == (200, True)


@pytest.mark.usefixtures("owner")
def test_an_edit_does_not_undo_uses_made_meanwhile(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    code = make_referral_code()
    saved = ReferralCode.save

    def be_overtaken(code: ReferralCode, **options: Any) -> None:
        ReferralCode.objects.update(uses=5)
        saved(code, **options)

    monkeypatch.setattr(ReferralCode, "save", be_overtaken)
    client.post(f"{CODES}{code.pk}/change/", {"note": "Over", "code": "OTHER1"})
    code.refresh_from_db()
    assert (code.is_active, code.note, code.uses, code.code != "OTHER1") == (False, "Over", 5, True)
    assert Entry.objects.get(action="account.referral_code_changed").metadata == {"changed": ["note", "is_active"]}


@pytest.mark.usefixtures("owner")
def test_codes_are_listed_by_state_and_lead_to_their_people(client: Client) -> None:
    past = timezone.now() - timedelta(seconds=1)
    used = make_referral_code(code="USEDUP", most_uses=1, uses=1)
    make_referral_code(code="EXPIRED", expires_at=past)
    make_referral_code(code="SWITCHED", is_active=False)
    make_referral_code(code="GOODONE")
    everything = client.get(CODES).content.decode()
    assert all(state in everything for state in ("used up", "expired", "switched off", "good", "1 / 1"))
    over, good = client.get(f"{CODES}?state=over").content.decode(), client.get(f"{CODES}?state=good").content.decode()
    assert ("USEDUP" in over, "EXPIRED" in over, "SWITCHED" in over, "GOODONE" in over) == (True, True, True, False)
    assert ("USEDUP" in good, "GOODONE" in good) == (False, True)
    assert "/admin/accounts/user/?q=USEDUP" in client.get(f"{CODES}{used.pk}/change/").content.decode()


@pytest.mark.usefixtures("owner")
def test_codes_are_never_deleted(client: Client) -> None:
    assert client.post(f"{CODES}{make_referral_code().pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_stranger_sees_no_codes(client: Client) -> None:
    client.force_login(make_user(is_staff=True))
    assert client.get(CODES).status_code == 403
