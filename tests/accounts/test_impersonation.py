"""An operator looks at the site as another person (PS-6): who may, what is recorded, and that all of it happens or nothing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier
from typing import Any, cast
from uuid import uuid4

import pytest
from django.contrib.auth import user_logged_in
from django.contrib.sessions.models import Session as BrowserSession
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.dispatch import Signal
from django.test import Client
from django.utils import timezone
from hijack.signals import hijack_ended, hijack_started

from apps.accounts import impersonation, passwords, people, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import Reason, SessionRef
from apps.activity.models import Entry
from apps.api import credentials, switches
from apps.api import people as gate
from apps.api.models import Setting
from tests.accounts.factories import PASSWORD, make_group, make_live_session, make_owner, make_permissions, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

START, END = "/impersonate/", "/impersonate/end/"
SEES_PEOPLE = "accounts.view_user"


def make_operator(**fields: Any) -> User:
    """May impersonate, and sees people in the admin site."""
    return make_user(is_staff=True, permissions=[impersonation.PERMISSION, SEES_PEOPLE], **fields)


@pytest.fixture
def operator(client: Client) -> User:
    operator = make_operator(name="The Operator")
    client.force_login(operator)
    return operator


@pytest.fixture
def person() -> User:
    return make_user(name="Some Person")


@pytest.fixture
def looking(client: Client, operator: User, person: User) -> LiveSession:
    """The row of the operator who looks at the site as the person."""
    _start(client, person)
    return _row(client)


def _row(client: Client) -> LiveSession:
    """The row that the client's signed session carries."""
    return LiveSession.objects.get(pk=client.session[sessions.CARRIED_AS])


def _start(client: Client, person: User | str) -> Any:
    return client.post(START, {"user_pk": person.pk if isinstance(person, User) else person})


def _who(client: Client) -> str:
    return str(client.get("/").json()["user"])


def _scope(row: LiveSession) -> Any:
    return people.session(SessionRef(row.pk, row.user_id), switches.parse(credentials.read(None).settings))


# Beginning and ending


def test_the_operator_is_shown_the_site_as_the_person(client: Client, operator: User, person: User) -> None:
    answer = _start(client, person)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account/sessions/")
    assert _who(client) == person.email


def test_the_row_names_the_impersonator_and_what_the_operator_left_behind_is_over(
    client: Client, operator: User, person: User
) -> None:
    left = _row(client)
    _start(client, person)
    left.refresh_from_db()
    assert (_row(client).user, _row(client).impersonator) == (person, operator)
    assert left.end_reason == Reason.IMPERSONATING
    assert LiveSession.objects.filter(ended_at=None).get() == _row(client)


def test_no_browser_session_of_the_operator_is_left(client: Client, operator: User, person: User) -> None:
    before = client.session.session_key
    _start(client, person)
    assert not BrowserSession.objects.filter(pk=before).exists()


def test_ending_makes_the_operator_themselves_again(client: Client, operator: User, looking: LiveSession) -> None:
    answer = client.post(END)
    looking.refresh_from_db()
    assert answer.headers["Location"] == f"/admin/accounts/user/{looking.user_id}/change/"
    assert (_who(client), _row(client).impersonator) == (operator.email, None)
    assert looking.end_reason == Reason.IMPERSONATION_ENDED


def test_who_does_not_see_people_in_the_admin_site_ends_at_home(client: Client, person: User) -> None:
    client.force_login(make_user(permissions=[impersonation.PERMISSION]))
    _start(client, person)
    assert client.post(END).headers["Location"] == "/"


def test_nobodys_fortnight_grows_by_it(client: Client, operator: User, person: User) -> None:
    until = timezone.now() + timedelta(hours=3)
    LiveSession.objects.update(expires_at=until)
    _start(client, person)
    during = _row(client).expires_at
    client.post(END)
    assert (during, _row(client).expires_at) == (until, until)


def test_all_that_is_recorded_names_the_operator(client: Client, operator: User, person: User) -> None:
    before = Entry.objects.count()
    _start(client, person)
    client.post(END)
    entries = Entry.objects.order_by("created_at")[before:]
    assert [(entry.action, entry.metadata.get("reason")) for entry in entries] == [
        ("session.started", None),
        ("session.ended", "impersonating"),
        ("session.impersonated", None),
        ("session.started", None),
        ("session.ended", "impersonation_ended"),
    ]
    assert {(entry.actor_uuid, entry.mode) for entry in entries} == {(str(operator.pk), "manual")}


def test_the_entries_name_the_person_the_session_and_the_impersonator(
    client: Client, operator: User, looking: LiveSession
) -> None:
    began = Entry.objects.get(action="session.impersonated")
    client.post(END)
    ended = Entry.objects.get(action="session.ended", resource_uuid=str(looking.pk))
    assert (began.resource_type, began.resource_uuid) == ("user", str(looking.user_id))
    assert (began.target, began.metadata) == (looking.user.email, {"session": str(looking.pk)})
    assert (ended.target, ended.metadata["impersonator"]) == (looking.user.email, str(operator.pk))


def test_nobody_counts_as_having_been_here(client: Client, operator: User, person: User) -> None:
    before = dict(User.objects.values_list("pk", "last_login"))
    _start(client, person)
    client.post(END)
    assert dict(User.objects.values_list("pk", "last_login")) == before


# Who may


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    "make",
    [
        lambda: str(uuid4()),
        lambda: "no uuid",
        lambda: "\x00",
        lambda: "",
        lambda: make_user(is_active=False),
        make_owner,
        lambda: make_user(permissions=["accounts.delete_user"]),
        lambda: make_user(groups=[make_group(permissions=["accounts.delete_user"])]),
    ],
    ids=["unknown", "malformed", "nul", "empty", "blocked", "owner", "more rights", "more rights by a role"],
)
def test_who_may_not_be_impersonated_is_as_unknown_as_who_is_not_there(
    client: Client, make: Callable[[], User | str]
) -> None:
    unknown, answer = _start(client, str(uuid4())), _start(client, make())
    assert (answer.status_code, answer.content) == (404, unknown.content)
    assert _headers(answer) == _headers(unknown)
    assert not Entry.objects.filter(action="session.impersonated").exists()


def _headers(answer: Any) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name != "X-Request-ID"}


def test_nobody_impersonates_themselves(client: Client, operator: User) -> None:
    assert _start(client, operator).status_code == 404
    assert _who(client) == operator.email


@pytest.mark.parametrize(
    "make",
    [make_user, lambda: make_user(is_staff=True, permissions=[SEES_PEOPLE])],
    ids=["a person", "staff"],
)
def test_without_the_permission_everybody_is_unknown(client: Client, person: User, make: Callable[[], User]) -> None:
    client.force_login(make())
    assert _start(client, person).status_code == 404


def test_staff_is_for_staff(client: Client) -> None:
    client.force_login(make_user(permissions=[impersonation.PERMISSION]))
    assert _start(client, make_user(is_staff=True)).status_code == 404


def test_an_owner_may_look_as_another_owner(client: Client) -> None:
    client.force_login(make_owner())
    other = make_owner()
    _start(client, other)
    assert _who(client) == other.email


def test_nobody_may_from_within_an_impersonation(client: Client) -> None:
    client.force_login(make_owner())
    other, third = make_owner(), make_user()
    _start(client, other)
    assert _start(client, third).status_code == 403
    assert not impersonation.may_start(hijacker=_present(client), hijacked=third)


def test_nobody_may_while_they_act_as_one_role(client: Client, operator: User, person: User) -> None:
    role = make_group(permissions=[impersonation.PERMISSION])
    operator.groups.add(role)
    LiveSession.objects.update(acting_role=role)
    assert _start(client, person).status_code == 404
    assert _who(client) == operator.email


def _present(client: Client) -> User:
    return cast(User, client.get("/").wsgi_request.user)


def test_a_visitor_signs_in_first(client: Client, person: User) -> None:
    for path in (START, END):
        answer = client.post(path, {"user_pk": person.pk}, follow=True)
        assert answer.redirect_chain == [("/sign-in/", 302)] or path == END
    assert not LiveSession.objects.exists()


@pytest.mark.usefixtures("operator")
def test_both_ways_are_posts_with_a_token(person: User, operator: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    assert [client.get(path).status_code for path in (START, END)] == [405, 405]
    assert _start(client, person).status_code == 403
    assert _who(client) == operator.email


def test_there_is_nothing_to_end_where_nobody_is_impersonated(client: Client, operator: User) -> None:
    row = _row(client)
    assert client.post(END).headers["Location"] == "/"
    assert _row(client) == row


# What an impersonation may


@pytest.mark.usefixtures("looking")
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
@pytest.mark.parametrize("path", ["/", "/idle/", "/admin/", "/account/sessions/end-others/", "/sign-in/", START])
def test_it_changes_nothing_on_any_page(client: Client, method: str, path: str) -> None:
    answer = getattr(client, method)(path)
    assert (answer.status_code, "You may only look" in answer.content.decode()) == (403, True)


def test_it_looks_at_the_admin_site_and_changes_nothing_there(client: Client, operator: User) -> None:
    client.force_login(make_owner())
    other = make_owner(name="Some Person")
    _start(client, other)
    page = f"/admin/accounts/user/{operator.pk}/change/"
    assert client.get(page).status_code == 200
    assert client.post(page, {"email": operator.email, "name": "Another"}).status_code == 403
    operator.refresh_from_db()
    assert operator.name == "The Operator"


@pytest.mark.usefixtures("looking")
def test_the_calls_of_machines_know_nothing_of_it(client: Client, settings: Any) -> None:
    settings.MACHINE_PATHS = ("/idle/",)
    assert client.post("/idle/").status_code == 200


@pytest.mark.parametrize("path", ["/sign-out/", "/admin/logout/"])
def test_signing_out_leads_to_nobody_and_is_the_operators_act(client: Client, operator: User, path: str) -> None:
    _start(client, make_user(is_staff=True))  # the admin site's way out is for staff
    looking = _row(client)
    client.post(path)
    looking.refresh_from_db()
    assert (_who(client), looking.end_reason) == ("AnonymousUser", Reason.SIGNED_OUT)
    assert Entry.objects.get(action="session.ended", resource_uuid=str(looking.pk)).actor_uuid == str(operator.pk)
    assert not LiveSession.objects.filter(ended_at=None).exists()


def test_every_page_says_so(client: Client, looking: LiveSession) -> None:
    for path in ("/account/sessions/", "/sign-in/?next=/", "/admin/login/?next=/"):
        text = client.get(path, follow=True).content.decode()
        assert ("You look at the site as <strong>Some Person</strong>." in text, f'action="{END}"' in text) == (
            True,
            True,
        )


def test_the_admin_site_says_so_in_pop_ups_too(client: Client) -> None:
    client.force_login(make_owner())
    _start(client, make_owner(name="Some Person"))
    for path in ("/admin/", "/admin/auth/group/add/?_popup=1"):
        assert client.get(path).content.decode().count("You look at the site as <strong>Some Person</strong>.") == 1


def test_nothing_of_it_is_shown_to_everybody_else(client: Client, operator: User) -> None:
    assert "impersonation.css" not in client.get("/account/sessions/").content.decode()
    assert "impersonation.css" not in client.get("/admin/").content.decode()


def test_the_gate_knows_that_it_is_one(looking: LiveSession) -> None:
    scope = _scope(looking)
    assert isinstance(scope, gate.Session)
    assert (scope.is_impersonated, scope.scope.person_id) == (True, str(looking.user_id))


def test_a_gate_that_is_shut_for_the_person_lets_the_operator_out(
    client: Client, operator: User, looking: LiveSession
) -> None:
    operator.email_confirmed_at = timezone.now()
    operator.save(update_fields=["email_confirmed_at"])
    Setting.objects.create(name="accounts_email_required", value=True)
    assert client.get("/account/sessions/").headers["Location"].startswith("/account/e-mail/")
    client.post(END)
    assert client.get("/account/sessions/").wsgi_request.user == operator


# The button


@pytest.mark.parametrize(
    ("make", "shown"),
    [(make_user, True), (make_owner, False), (lambda: make_user(is_active=False), False)],
    ids=["a person", "an owner", "a blocked person"],
)
@pytest.mark.usefixtures("operator")
def test_the_button_is_shown_where_it_works(client: Client, make: Callable[[], User], shown: bool) -> None:
    person = make()
    text = client.get(f"/admin/accounts/user/{person.pk}/change/").content.decode()
    assert (f'action="{START}"' in text, f'name="user_pk" value="{person.pk}"' in text) == (shown, shown)
    assert (_start(client, person).status_code == 302) is shown


def test_the_button_is_on_no_page_of_an_impersonation_nor_of_a_person_to_be(client: Client, person: User) -> None:
    client.force_login(make_owner())
    assert START not in client.get("/admin/accounts/user/add/").content.decode()
    _start(client, make_owner())
    assert f'action="{START}"' not in client.get(f"/admin/accounts/user/{person.pk}/change/").content.decode()


# How long


def _block(operator: User, person: object) -> None:
    operator.is_active = False
    operator.save()


def _block_behind_our_back(operator: User, person: User) -> None:
    User.objects.filter(pk=operator.pk).update(is_active=False)


def _demote(operator: User, person: User) -> None:
    operator.user_permissions.remove(*make_permissions([impersonation.PERMISSION]))


def _promote_the_person(operator: User, person: User) -> None:
    person.user_permissions.set(make_permissions(["accounts.delete_user"]))


def _make_the_person_owner(operator: User, person: User) -> None:
    User.objects.filter(pk=person.pk).update(is_superuser=True)


@pytest.mark.parametrize(
    "change", [_block, _block_behind_our_back, _demote, _promote_the_person, _make_the_person_owner]
)
def test_it_is_over_with_the_right_to_it(
    client: Client, operator: User, person: User, looking: LiveSession, change: Callable[[User, User], None]
) -> None:
    change(operator, person)
    assert _scope(looking) == "session_gone"
    assert _who(client) == "AnonymousUser"
    looking.refresh_from_db()
    assert looking.ended_at is not None
    assert client.post(END, follow=True).wsgi_request.user.is_anonymous


def test_one_that_lost_its_right_does_not_come_back_with_it(
    client: Client, operator: User, person: User, looking: LiveSession
) -> None:
    _demote(operator, person)
    client.get("/")
    operator.user_permissions.add(*make_permissions([impersonation.PERMISSION]))
    assert (_who(client), _scope(looking)) == ("AnonymousUser", "session_gone")
    looking.refresh_from_db()
    assert looking.end_reason == Reason.IMPERSONATION_ENDED


def _new_password(operator: User, kept: LiveSession) -> None:
    passwords.change(operator, PASSWORD, keep=kept.pk)


def _reset(operator: User, kept: LiveSession) -> None:
    passwords.change(operator, PASSWORD, keep=None)


def _set_by_somebody_else(operator: User, kept: object) -> None:
    operator.set_password(PASSWORD)
    operator.save()


def _end_the_others(operator: User, kept: LiveSession) -> None:
    by, now = sessions.actor(operator), timezone.now()
    sessions.end_others(operator, keep=kept.pk, reason=Reason.REVOKED, by=by, now=now)


@pytest.mark.parametrize("change", [_new_password, _reset, _set_by_somebody_else, _end_the_others])
def test_a_new_password_of_the_operator_ends_it_wherever_it_was_set(
    client: Client, operator: User, looking: LiveSession, change: Callable[[User, LiveSession], None]
) -> None:
    change(User.objects.get(pk=operator.pk), make_live_session(operator))
    looking.refresh_from_db()
    assert (looking.ended_at is not None, _who(client)) == (True, "AnonymousUser")


def test_signing_out_of_another_browser_leaves_it_alone(client: Client, operator: User, looking: LiveSession) -> None:
    other = Client()
    other.force_login(operator)
    other.post("/sign-out/")
    assert _who(client) == looking.user.email


def test_the_person_ends_it_from_their_own_page(client: Client, looking: LiveSession) -> None:
    other = Client()
    other.force_login(looking.user)
    other.post(f"/account/sessions/{looking.pk}/end/")
    looking.refresh_from_db()
    assert (looking.end_reason, _who(client)) == (Reason.ENDED_BY_OWNER, "AnonymousUser")


def test_it_is_over_when_the_person_changes_their_password(client: Client, looking: LiveSession) -> None:
    passwords.change(User.objects.get(pk=looking.user_id), PASSWORD, keep=None)
    assert _who(client) == "AnonymousUser"


# All or nothing


@contextmanager
def _failing(signal: Signal) -> Iterator[None]:
    """A receiver, the last one, that raises as a database or a killed worker would."""

    def fail(**_: Any) -> None:
        raise RuntimeError("as if killed here")

    signal.connect(fail)
    try:
        yield
    finally:
        signal.disconnect(fail)


def _all() -> Any:
    return (
        list(LiveSession.objects.order_by("pk").values()),
        list(User.objects.order_by("pk").values()),
        list(BrowserSession.objects.order_by("pk").values()),
        Entry.objects.count(),
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("signal", [user_logged_in, hijack_started], ids=["log-in", "stamp"])
def test_a_beginning_that_fails_changes_nothing(operator: User, person: User, signal: Signal) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(operator)
    before, cookies = _all(), client.cookies.output()
    with _failing(signal):
        assert _start(client, person).status_code == 500
    assert (_all(), client.cookies.output()) == (before, cookies)
    assert _who(client) == operator.email


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("signal", [user_logged_in, hijack_ended], ids=["log-in", "end"])
def test_an_end_that_fails_changes_nothing(client: Client, looking: LiveSession, signal: Signal) -> None:
    client.raise_request_exception = False
    before, cookies = _all(), client.cookies.output()
    with _failing(signal):
        assert client.post(END).status_code == 500
    assert (_all(), client.cookies.output()) == (before, cookies)
    assert _who(client) == looking.user.email


@pytest.mark.django_db(transaction=True)
def test_signing_in_is_noted_as_before_after_a_beginning_that_failed(operator: User, person: User) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(operator)
    with _failing(user_logged_in):
        _start(client, person)
    User.objects.update(last_login=None)
    Client().force_login(person)
    assert User.objects.get(pk=person.pk).last_login is not None


def test_a_page_of_before_can_be_sent_again_after_a_failure(operator: User, person: User) -> None:
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    client.force_login(operator)
    client.get(f"/admin/accounts/user/{person.pk}/change/")
    form = {"user_pk": person.pk, "csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    with _failing(hijack_started):
        assert client.post(START, form).status_code == 500
    assert client.post(START, form).status_code == 302


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.update(ended_at=timezone.now(), end_reason=Reason.REVOKED),
        lambda rows: rows.update(acting_role=make_group()),
        lambda rows: rows.update(created_at=F("created_at") - timedelta(1), expires_at=timezone.now()),
    ],
    ids=["ended", "narrowed to a role", "expired"],
)
def test_a_session_that_is_not_the_same_any_more_begins_none(
    client: Client, operator: User, person: User, change: Callable[[QuerySet[LiveSession]], object]
) -> None:
    def change_it(**_: Any) -> None:
        change(LiveSession.objects.filter(user=operator))

    user_logged_in.connect(change_it)
    try:
        answer = _start(client, person)
    finally:
        user_logged_in.disconnect(change_it)
    assert (answer.status_code, answer.headers["Location"], dict(answer.cookies)) == (302, "/", {})
    assert not LiveSession.objects.filter(user=person).exists()


@pytest.mark.django_db(transaction=True)
def test_no_other_process_ever_sees_the_session_without_its_stamp(client: Client, operator: User, person: User) -> None:
    seen: list[int] = []

    def look(**_: Any) -> None:
        with ThreadPoolExecutor(1) as elsewhere:
            seen.append(elsewhere.submit(_elsewhere, person).result())

    hijack_started.connect(look)
    try:
        _start(client, person)
    finally:
        hijack_started.disconnect(look)
    assert seen == [0]
    assert _elsewhere(person) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", [hijack_started, hijack_ended], ids=["begun", "ended"])
def test_the_browsers_session_is_stored_with_the_row(client: Client, operator: User, person: User, way: Signal) -> None:
    stored: list[list[str]] = []

    def look(**_: Any) -> None:
        transaction.on_commit(lambda: stored.append([row.get_decoded()[sessions.CARRIED_AS] for row in rows]))

    rows = BrowserSession.objects.all()
    way.connect(look)
    try:
        _start(client, person)
        client.post(END)
    finally:
        way.disconnect(look)
    began = {hijack_started: Reason.IMPERSONATION_ENDED, hijack_ended: ""}[way]
    assert stored == [[str(LiveSession.objects.get(end_reason=began).pk)]]


def _elsewhere(person: User) -> int:
    try:
        return LiveSession.objects.filter(user=person).count()
    finally:
        connection.close()


def _copy(client: Client) -> Client:
    """Another tab of the same browser."""
    tab = Client()
    tab.cookies.load(client.cookies.output(header=""))
    return tab


def _at_once(*calls: Callable[[], Any]) -> list[Any]:
    start = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait()
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_many_tabs_that_begin_at_once_one_does(client: Client, operator: User, person: User) -> None:
    tabs = [_copy(client) for _ in range(6)]
    answers = _at_once(*(lambda tab=tab: _start(tab, person) for tab in tabs))
    assert sorted(answer.headers["Location"] for answer in answers) == ["/"] * 5 + ["/account/sessions/"]
    assert LiveSession.objects.get(ended_at=None).impersonator == operator
    assert Entry.objects.filter(action="session.impersonated").count() == 1
    assert sum("sessionid" in answer.cookies for answer in answers) == 1


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_many_tabs_that_end_at_once_one_does(client: Client, operator: User, looking: LiveSession) -> None:
    tabs = [_copy(client) for _ in range(6)]
    answers = _at_once(*(lambda tab=tab: tab.post(END) for tab in tabs))
    assert {answer.status_code for answer in answers} == {302}
    assert LiveSession.objects.get(ended_at=None).user == operator
    assert sum("sessionid" in answer.cookies for answer in answers) == 1


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_two_owners_who_begin_to_look_as_each_other_wait_and_do_not_fail() -> None:
    owners = [make_owner(), make_owner()]
    for _ in range(5):
        clients = [Client(), Client()]
        for client, owner in zip(clients, owners, strict=True):
            client.force_login(owner)
        first, second = clients
        answers = _at_once(lambda: _start(first, owners[1]), lambda: _start(second, owners[0]))  # noqa: B023
        assert [answer.headers["Location"] for answer in answers] == ["/account/sessions/"] * 2


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_a_block_or_a_new_password_at_the_same_time_leaves_no_impersonation(person: User) -> None:
    for number in range(10):
        operator, client = make_operator(), Client()
        client.force_login(operator)
        change = _set_by_somebody_else if number % 2 else _block
        changed = User.objects.get(pk=operator.pk)
        _at_once(lambda: _start(client, person), lambda: change(changed, person))  # noqa: B023
        assert not LiveSession.objects.filter(impersonator=operator, ended_at=None).exists()
        assert _who(client) == "AnonymousUser"
