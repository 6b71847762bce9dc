"""Acting as one role (PS-4): who may choose what, what follows from a role that is lost, and from a block."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts import people, roles, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import Reason, SessionRef
from apps.activity.models import Entry
from apps.api import switches
from apps.api.models import Setting
from apps.api.people import Session
from tests.accounts.factories import make_expired_session, make_group, make_live_session, make_owner, make_user
from tests.api.held import wait_until, waiting_for_a_lock

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

PAGE, CHOOSE = "/account/sessions/", "/account/role/"


def _switch(*, on: bool) -> None:
    Setting.objects.update_or_create(name=roles.SETTING, defaults={"value": on})


@pytest.fixture
def packers() -> Group:
    _switch(on=True)
    return make_group(name="Packers", permissions=["accounts.view_user"])


@pytest.fixture
def user(client: Client, packers: Group) -> User:
    """Holds two roles and is signed in."""
    user = make_user(groups=[packers, make_group(name="Sellers", permissions=["accounts.view_livesession"])])
    client.force_login(user)
    return user


def _mine(client: Client) -> LiveSession:
    return LiveSession.objects.get(pk=client.session[sessions.CARRIED_AS])


def _choose(session: LiveSession, role: int | None) -> Group | None:
    return roles.choose(SessionRef(session.pk, session.user_id), role, now=timezone.now())


def _text(answer: Any) -> str:
    return " ".join(unescape(answer.content.decode()).split())


def _chosen() -> list[tuple[str | None, str | None]]:
    entries = Entry.objects.filter(action="session.role_chosen").order_by("created_at", "pk")
    return [(entry.metadata["old"], entry.metadata["new"]) for entry in entries]


def _scope(session: LiveSession) -> Any:
    found = people.session(SessionRef(session.pk, session.user_id), switches.parse("{}"))
    return found.scope if isinstance(found, Session) else found


def test_a_chosen_role_narrows_the_session_and_its_entry_says_so(client: Client, user: User, packers: Group) -> None:
    client.post(CHOOSE, {"role": packers.pk})
    row = _mine(client)
    entry = Entry.objects.get(action="session.role_chosen")
    assert (row.acting_role, _scope(row).permissions) == (packers, {"accounts.view_user"})
    assert (entry.actor_uuid, entry.resource_uuid, entry.mode) == (str(user.pk), str(row.pk), "manual")
    assert (entry.metadata["old"], entry.metadata["new"], entry.ip) == (None, "Packers", "127.0.0.1")


def test_all_roles_are_chosen_again_with_their_entry(client: Client, user: User, packers: Group) -> None:
    LiveSession.objects.update(acting_role=packers)
    client.post(CHOOSE, {"role": ""})
    assert _scope(_mine(client)).permissions == user.get_all_permissions()
    assert _chosen() == [("Packers", None)]


def test_an_owner_who_acts_as_a_group_is_none(packers: Group) -> None:
    row = make_live_session(make_owner(groups=[packers]))
    _choose(row, packers.pk)
    assert (_scope(row).is_superuser, _scope(row).permissions) == (False, {"accounts.view_user"})


def test_choosing_what_is_chosen_writes_nothing(client: Client, user: User, packers: Group) -> None:
    for role in ("", packers.pk, packers.pk):
        client.post(CHOOSE, {"role": role})
    assert _chosen() == [(None, "Packers")]


def test_a_choice_is_of_one_session_only(client: Client, user: User, packers: Group) -> None:
    other = make_live_session(user)
    client.post(CHOOSE, {"role": packers.pk})
    other.refresh_from_db()
    assert other.acting_role is None


@pytest.mark.parametrize("role", ["{theirs}", "0", "-1", "999999999999999999", "9" * 40, "x", "\u0661", " ", "1.0"])
def test_a_role_that_the_person_does_not_hold_and_none_at_all_are_one_answer(
    client: Client, user: User, role: str
) -> None:
    text = role.format(theirs=make_group().pk)
    answer = client.post(CHOOSE, {"role": text}, follow=True)
    assert "you do not hold that role" in _text(answer)
    assert (_mine(client).acting_role, _chosen()) == (None, [])


@pytest.mark.parametrize("value", [False, "yes", 1, {}])
def test_while_the_setting_is_not_on_only_the_way_back_is_open(
    client: Client, user: User, packers: Group, value: object
) -> None:
    Setting.objects.update(value=value)
    answer = client.post(CHOOSE, {"role": packers.pk}, follow=True)
    assert "acting as one role is switched off" in _text(answer)
    assert _mine(client).acting_role is None
    LiveSession.objects.update(acting_role=packers)
    client.post(CHOOSE, {"role": ""})
    assert _mine(client).acting_role is None


@pytest.mark.parametrize(
    "make", [make_expired_session, lambda user: make_live_session(user, impersonator=make_owner())]
)
def test_an_ended_session_and_an_impersonators_choose_nothing(packers: Group, make: Callable[[User], Any]) -> None:
    row = make(make_user(groups=[packers]))
    for role in (packers.pk, None):
        with pytest.raises(roles.SessionGone):
            _choose(row, role)
    assert _chosen() == []


def test_nobody_chooses_for_a_session_of_somebody_else(user: User, packers: Group) -> None:
    theirs = make_live_session(make_user(groups=[packers]))
    for session in (theirs.pk, uuid4()):
        with pytest.raises(roles.SessionGone):
            roles.choose(SessionRef(session, user.pk), packers.pk, now=timezone.now())


def test_a_visitor_is_sent_to_sign_in(client: Client) -> None:
    assert client.post(CHOOSE, {"role": ""}).headers["Location"] == f"/sign-in/?next={PAGE}"


def test_a_post_without_the_forms_token_chooses_nothing(user: User, packers: Group) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    assert client.post(CHOOSE, {"role": packers.pk}).status_code == 403
    assert _mine(client).acting_role is None


def test_a_get_chooses_nothing(client: Client, user: User, packers: Group) -> None:
    assert client.get(CHOOSE, {"role": packers.pk}).headers["Location"] == PAGE
    assert _mine(client).acting_role is None


def test_an_impersonator_is_told_why_they_choose_nothing(client: Client, user: User, packers: Group) -> None:
    LiveSession.objects.update(impersonator=make_owner())
    answer = client.post(CHOOSE, {"role": packers.pk})
    assert (answer.status_code, "You may only look" in _text(answer)) == (403, True)
    assert "Acting as" not in _text(client.get(PAGE))
    assert _mine(client).acting_role is None


@pytest.mark.parametrize(
    ("target", "leads_to"),
    [
        ("/account/sessions/?from=here", "/account/sessions/?from=here"),
        ("https://elsewhere.example.org/", PAGE),
        ("//elsewhere.example.org/", PAGE),
        ("javascript:alert(1)", PAGE),
        ("", PAGE),
    ],
)
def test_the_choice_leads_back_to_its_page_and_nowhere_else(
    client: Client, user: User, target: str, leads_to: str
) -> None:
    assert client.post(CHOOSE, {"role": "", "next": target}).headers["Location"] == leads_to


# The switch in the header


def _is_offered(client: Client) -> bool:
    return 'action="/account/role/"' in _text(client.get(PAGE))


def test_the_header_offers_the_roles_and_shows_the_chosen_one(client: Client, user: User, packers: Group) -> None:
    text = _text(client.get(PAGE))
    assert [f">{name}</option>" in text for name in ("All roles", "Packers", "Sellers")] == [True] * 3
    assert " selected" not in text
    client.post(CHOOSE, {"role": packers.pk})
    assert f'<option value="{packers.pk}" selected>Packers</option>' in _text(client.get(PAGE))


@pytest.mark.parametrize(("held", "is_owner", "offered"), [(0, False, False), (1, False, False), (2, False, True),
                                                           (0, True, False), (1, True, True)])  # fmt: skip
def test_the_switch_is_there_for_people_with_several_roles(
    client: Client, held: int, is_owner: bool, offered: bool
) -> None:
    _switch(on=True)
    client.force_login(make_user(is_superuser=is_owner, groups=[make_group() for _ in range(held)]))
    assert _is_offered(client) is offered


def test_while_the_setting_is_off_only_a_chosen_role_is_shown(client: Client, user: User, packers: Group) -> None:
    _switch(on=False)
    assert not _is_offered(client)
    LiveSession.objects.update(acting_role=packers)
    text = _text(client.get(PAGE))
    assert ("Packers</option>" in text, "Sellers</option>" in text, "All roles</option>" in text) == (True, False, True)


def test_the_admin_site_has_the_switch_too(client: Client, packers: Group) -> None:
    client.force_login(make_owner(groups=[packers]))
    assert 'action="/account/role/"' in _text(client.get("/admin/"))


def test_the_switch_costs_visitors_no_query_and_people_one(client: Client, user: User) -> None:
    with CaptureQueriesContext(connection) as asked:
        Client().get("/sign-in/")
    assert asked.captured_queries == []
    with CaptureQueriesContext(connection) as asked:
        client.get(PAGE)
    assert len([query for query in asked.captured_queries if query["sql"].startswith('SELECT "auth_group"')]) == 1


# A role that is lost


def _remove(user: User, role: Group) -> None:
    user.groups.remove(role)


def _clear(user: User, role: Group) -> None:
    user.groups.clear()


def _set(user: User, role: Group) -> None:
    user.groups.set([make_group()])


def _remove_person(user: User, role: Group) -> None:
    role.user_set.remove(user)


def _clear_people(user: User, role: Group) -> None:
    role.user_set.clear()


def _set_people(user: User, role: Group) -> None:
    role.user_set.set([make_user()])


def _delete(user: User, role: Group) -> None:
    role.delete()


def _delete_some(user: User, role: Group) -> None:
    Group.objects.filter(pk=role.pk).delete()


@pytest.mark.parametrize(
    "lose", [_remove, _clear, _set, _remove_person, _clear_people, _set_people, _delete, _delete_some]
)
def test_a_lost_role_ends_the_sessions_that_act_as_it_and_no_others(
    packers: Group, lose: Callable[[User, Group], None]
) -> None:
    user = make_user(groups=[packers, make_group()])
    acting, free = make_live_session(user, acting_role=packers), make_live_session(user)
    lose(user, packers)
    acting.refresh_from_db()
    (entry,) = Entry.objects.filter(action="session.ended")
    assert acting.end_reason == Reason.ROLE_REMOVED
    assert (entry.resource_uuid, entry.metadata["role"]) == (str(acting.pk), "Packers")
    assert LiveSession.objects.get(ended_at=None) == free


def test_a_deleted_role_leaves_the_ended_sessions_as_history(packers: Group) -> None:
    user = make_user(groups=[packers])
    over = make_live_session(user, acting_role=packers, ended_at=timezone.now(), end_reason=Reason.REVOKED)
    packers.delete()
    over.refresh_from_db()
    assert (over.acting_role, over.end_reason) == (None, Reason.REVOKED)


def test_another_persons_session_that_acts_as_the_role_goes_on(packers: Group) -> None:
    one, two = make_user(groups=[packers]), make_user(groups=[packers])
    theirs = make_live_session(two, acting_role=packers)
    one.groups.remove(packers)
    packers.user_set.remove(one)
    assert LiveSession.objects.get(ended_at=None) == theirs


def test_a_role_that_is_given_ends_nothing(packers: Group) -> None:
    user = make_user(groups=[packers])
    make_live_session(user, acting_role=packers)
    user.groups.add(make_group())
    user.groups.set([packers, make_group()])
    assert LiveSession.objects.filter(ended_at=None).exists()


def test_the_admin_form_that_takes_a_role_away_names_who_did_it(client: Client, packers: Group) -> None:
    user = make_user(groups=[packers])
    row = make_live_session(user, acting_role=packers)
    client.force_login(owner := make_owner())
    form = {"email": user.email, "name": "", "referral_code": "", "is_active": "on", "groups": []}
    assert client.post(f"/admin/accounts/user/{user.pk}/change/", form).status_code == 302
    row.refresh_from_db()
    entry = Entry.objects.get(action="session.ended")
    assert (row.end_reason, entry.actor_uuid, entry.ip) == (Reason.ROLE_REMOVED, str(owner.pk), "127.0.0.1")


@pytest.mark.parametrize("by_action", [True, False])
def test_the_admin_deletes_a_role_in_the_name_of_whoever_does_it(
    client: Client, packers: Group, by_action: bool
) -> None:
    row = make_live_session(make_user(groups=[packers]), acting_role=packers)
    client.force_login(owner := make_owner())
    chosen = {"action": "delete_selected", "_selected_action": [packers.pk]} if by_action else {}
    path = "/admin/auth/group/" if by_action else f"/admin/auth/group/{packers.pk}/delete/"
    assert client.post(path, {"post": "yes", **chosen}).status_code == 302
    row.refresh_from_db()
    entry = Entry.objects.get(action="session.ended")
    assert (row.end_reason, entry.actor_uuid) == (Reason.ROLE_REMOVED, str(owner.pk))
    assert not Group.objects.filter(pk=packers.pk).exists()


# A person who is blocked


def test_a_blocked_person_loses_their_sessions_and_those_in_which_they_look_as_others() -> None:
    blocked, other = make_owner(), make_user()
    own, looking = make_live_session(blocked), make_live_session(other, impersonator=blocked)
    free = make_live_session(other)
    blocked.is_active = False
    blocked.save(update_fields=["is_active"])
    for row in (own, looking):
        row.refresh_from_db()
    assert (own.end_reason, looking.end_reason) == (Reason.BLOCKED, Reason.BLOCKED)
    assert LiveSession.objects.get(ended_at=None) == free
    assert Entry.objects.filter(action="session.ended").count() == 2


def test_a_block_is_saved_with_what_follows_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    make_live_session(user := make_user())
    monkeypatch.setattr("apps.activity.actions.SESSION_ENDED", "not declared")
    user.is_active = False
    with pytest.raises(ValueError, match="declared"):
        user.save()
    user.refresh_from_db()
    assert user.is_active


def test_saving_another_field_of_a_blocked_person_asks_nothing() -> None:
    user = make_user(is_active=False)
    with CaptureQueriesContext(connection) as asked:
        user.save(update_fields=["name"])
    assert not [query for query in asked.captured_queries if "livesession" in query["sql"]]


def test_a_person_who_is_blocked_past_every_model_is_refused_when_read() -> None:
    row = make_live_session(user := make_user())
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert _scope(row) == "inactive"


def test_a_role_that_is_taken_past_every_signal_is_refused_when_read(packers: Group) -> None:
    row = make_live_session(make_user(groups=[packers]), acting_role=packers)
    roles.MEMBERSHIP.objects.all().delete()
    assert _scope(row) == "session_gone"


# Two at once


def _alone(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except roles.Refused as refusal:
        return type(refusal)
    finally:
        connection.close()


def _lost_and_live() -> list[LiveSession]:
    """Live sessions that act as a role which their person does not hold: there is never one."""
    acting = LiveSession.objects.filter(ended_at=None).exclude(acting_role=None)
    return [row for row in acting if not row.user.groups.filter(pk=row.acting_role_id).exists()]


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lose", [_remove, _clear_people, _delete])
def test_of_a_choice_and_a_removal_at_once_no_live_session_keeps_a_lost_role(
    lose: Callable[[User, Group], None],
) -> None:
    _switch(on=True)
    for _ in range(15):
        role = make_group()
        row = make_live_session(user := make_user(groups=[role, make_group()]))
        start = Barrier(2)

        def choose(row: LiveSession = row, role: int = role.pk, start: Barrier = start) -> Any:
            start.wait()
            return _choose(row, role)

        def take(user: User = user, role: Group = role, start: Barrier = start) -> None:
            start.wait()
            lose(user, role)

        with ThreadPoolExecutor(2) as pool:
            chosen, _ = pool.map(_alone, (choose, take))
        row.refresh_from_db()
        assert _lost_and_live() == []
        assert (chosen == roles.NotHeld) == (row.end_reason == "")


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lose", [_remove, _clear, _remove_person, _delete])
def test_a_removal_waits_for_the_choice_that_came_first_and_ends_its_session(
    lose: Callable[[User, Group], None],
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    _switch(on=True)
    role = make_group()
    row = make_live_session(user := make_user(groups=[role, make_group()]))
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            _choose(row, role.pk)
            taking = pool.submit(_alone, lambda: lose(user, role))
            wait_until(lambda: waiting_for_a_lock() == 1)
        taking.result(timeout=30)
    row.refresh_from_db()
    assert (row.end_reason, _chosen()) == (Reason.ROLE_REMOVED, [(None, role.name)])


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lose", [_remove, _clear_people, _delete])
def test_a_choice_waits_for_the_removal_that_came_first_and_is_refused(lose: Callable[[User, Group], None]) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    _switch(on=True)
    role = make_group()
    row = make_live_session(user := make_user(groups=[role, make_group()]))
    chosen = role.pk
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            lose(user, role)
            choosing = pool.submit(_alone, lambda: _choose(row, chosen))
            wait_until(lambda: waiting_for_a_lock() == 1)
        assert choosing.result(timeout=30) is roles.NotHeld
    row.refresh_from_db()
    assert (row.acting_role, row.ended_at, _chosen()) == (None, None, [])


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_many_equal_choices_at_once_one_writes_an_entry() -> None:
    _switch(on=True)
    role = make_group(name="Packers")
    row = make_live_session(make_user(groups=[role, make_group()]))
    start = Barrier(6)

    def choose() -> Any:
        start.wait()
        return _choose(row, role.pk)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(_alone, [choose] * 6)) == [role] * 6
    assert _chosen() == [(None, "Packers")]


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_different_choices_at_once_leave_a_chain_of_entries() -> None:
    _switch(on=True)
    held = [make_group(), make_group()]
    row = make_live_session(make_user(groups=held))
    start = Barrier(2)

    def choose(role: Group) -> Any:
        start.wait()
        return _choose(row, role.pk)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda role: _alone(lambda: choose(role)), held))
    first, second = sorted(_chosen(), key=lambda pair: pair[0] is not None)
    row.refresh_from_db()
    assert (first[0], first[1], second[1]) == (None, second[0], row.acting_role and row.acting_role.name)
