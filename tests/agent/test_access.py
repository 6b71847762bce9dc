"""Checks 1 to 4 before every function of the assistant, in their order, and what each of them refuses with (CH-1)."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import SessionRef
from apps.agent import access
from apps.agent.models import AgentSetting, Conversation
from apps.api.problems import Problem
from tests.accounts.factories import make_expired_session, make_group, make_live_session, make_user, switch_on
from tests.agent.factories import make_chat, make_person
from tests.api.factories import grant, revoke, set_setting

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def refused(ref: object, **options: Any) -> tuple[int, str, Any]:
    """Status, code and reason of the refusal."""
    with pytest.raises(Problem) as caught:
        access.authorize(ref, **{"impersonated": False, **options})
    problem = caught.value
    return problem.kind.status, problem.code, problem.context.get("reason")


def test_a_person_with_the_permission_in_a_live_session_may_use_the_assistant() -> None:
    person = make_person()
    found = access.authorize(person.ref, impersonated=False)
    assert found.person == person.user.pk
    assert found.scope.can(access.PERMISSION)
    assert found.options.agent_enabled


def test_an_impersonated_session_is_refused_without_one_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    person = make_person()
    with django_assert_num_queries(0):
        assert refused(person.ref, impersonated=True) == (403, "impersonated", None)
        assert refused("no reference", impersonated=True) == (403, "impersonated", None)


def test_who_forgets_to_say_whether_it_is_impersonated_is_not_let_in() -> None:
    with pytest.raises(TypeError):
        access.authorize(make_person().ref)  # type: ignore[call-arg]


@pytest.mark.parametrize("odd", [None, 0, 1, "", "false"])
def test_what_is_no_bool_says_nothing_about_an_impersonation(
    odd: Any, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ref = make_person().ref
    with django_assert_num_queries(0), pytest.raises(TypeError):
        access.authorize(ref, impersonated=odd)


def test_the_sessions_own_row_says_that_it_is_impersonated_whatever_the_caller_says() -> None:
    person, operator = make_person(), make_user(is_superuser=True, is_staff=True)
    looking = make_live_session(person.user, impersonator=operator)
    assert refused(SessionRef(looking.pk, person.user.pk)) == (403, "impersonated", None)


@pytest.mark.parametrize("odd", [None, "", "session", 7, ("a", "b"), SessionRef("x", "y")])  # type: ignore[arg-type]
def test_what_is_no_reference_stands_for_no_session(odd: object) -> None:
    assert refused(odd) == (401, "unauthorized", "session_gone")


def test_a_session_that_ended_ran_out_or_never_was_is_gone() -> None:
    person = make_person()
    LiveSession.objects.filter(pk=person.session.pk).update(ended_at=timezone.now(), end_reason="signed_out")
    gone = (401, "unauthorized", "session_gone")
    assert refused(person.ref) == gone
    assert refused(SessionRef(make_expired_session(person.user).pk, person.user.pk)) == gone
    assert refused(SessionRef(uuid4(), person.user.pk)) == gone


def test_a_session_of_another_person_is_a_mismatch() -> None:
    assert refused(SessionRef(make_person().session.pk, make_person().user.pk)) == (401, "unauthorized", "mismatch")


def test_a_blocked_person_is_refused() -> None:
    person = make_person()
    User.objects.filter(pk=person.user.pk).update(is_active=False)
    assert refused(person.ref) == (401, "unauthorized", "inactive")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("accounts_email_required", "unconfirmed"), ("accounts_referral_required", "referral_required")],
)
def test_a_person_behind_a_gate_is_refused(setting: str, reason: str) -> None:
    person = make_person()
    switch_on(setting)
    assert refused(person.ref) == (401, "unauthorized", reason)


def test_a_log_out_takes_effect_on_the_next_call() -> None:
    person = make_person()
    access.authorize(person.ref, impersonated=False)
    LiveSession.objects.filter(pk=person.session.pk).update(ended_at=timezone.now(), end_reason="signed_out")
    assert refused(person.ref)[2] == "session_gone"


FORBIDDEN = (403, "forbidden", None)


def test_without_the_permission_the_assistant_is_closed_from_the_next_call_on() -> None:
    person = make_person()
    revoke(person.user, access.PERMISSION)
    assert refused(person.ref) == FORBIDDEN
    grant(person.user, access.PERMISSION)
    access.authorize(person.ref, impersonated=False)


def test_a_session_that_acts_as_a_role_needs_the_permission_of_that_role() -> None:
    person, without = make_person(), make_group()
    with_it = make_group(permissions=[access.PERMISSION])
    person.user.groups.set([without, with_it])
    narrowed = make_live_session(person.user, acting_role=without)
    assert refused(SessionRef(narrowed.pk, person.user.pk)) == FORBIDDEN
    wide = make_live_session(person.user, acting_role=with_it)
    access.authorize(SessionRef(wide.pk, person.user.pk), impersonated=False)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("agent_enabled", False),
        ("agent_enabled", "yes"),
        ("disabled_modules", ["agent"]),
        ("disabled_modules", "unreadable"),
    ],
)
def test_the_assistant_that_is_off_is_off_for_owners_too(setting: str, value: Any) -> None:
    owner = make_person(is_superuser=True)
    set_setting(setting, value)
    assert refused(owner.ref) == FORBIDDEN


def test_another_module_that_is_off_closes_nothing() -> None:
    set_setting("disabled_modules", ["catalogue"])
    access.authorize(make_person().ref, impersonated=False)


def test_the_switch_of_one_person_closes_it_for_them_alone() -> None:
    person, other = make_person(is_superuser=True), make_person()
    AgentSetting.objects.create(user=person.user, is_enabled=False)
    AgentSetting.objects.create(user=other.user, is_enabled=True)
    assert refused(person.ref) == FORBIDDEN
    access.authorize(other.ref, impersonated=False)


def test_the_session_comes_before_the_permission_and_the_impersonation_before_both() -> None:
    stranger = make_person()
    revoke(stranger.user, access.PERMISSION)
    LiveSession.objects.filter(pk=stranger.session.pk).update(ended_at=timezone.now(), end_reason="revoked")
    set_setting("agent_enabled", False)
    assert refused(stranger.ref, impersonated=True)[1] == "impersonated"
    assert refused(stranger.ref)[1] == "unauthorized"


@pytest.mark.usefixtures("_prepared")
def test_the_checks_cost_three_queries(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    person = make_person()
    with django_assert_num_queries(3):
        access.authorize(person.ref, impersonated=False)


# --- The chat -------------------------------------------------------------------------------------------------------------------------


def test_ones_own_chat_is_found_archived_or_not() -> None:
    person = make_person()
    found = access.authorize(person.ref, impersonated=False)
    for status in (Conversation.Status.ACTIVE, Conversation.Status.ARCHIVED):
        chat = make_chat(person.user, status=status)
        assert access.own_chat(found, str(chat.pk)) == access.own_chat(found, chat.pk) == chat


def test_anothers_a_deleted_an_unknown_and_a_malformed_one_are_one_answer() -> None:
    person = make_person(is_superuser=True)
    found = access.authorize(person.ref, impersonated=False)
    theirs = make_chat(make_person().user).pk
    deleted = make_chat(person.user, status=Conversation.Status.DELETED).pk
    answers = {_document(found, odd) for odd in (theirs, deleted, uuid4(), "x", "", None, 7, f"{{{uuid4()}}}", b"x")}
    assert len(answers) == 1
    assert answers.pop()[:2] == ("not_found", 404)


def _document(found: access.Access, uuid: object) -> tuple[str, int, str, str]:
    with pytest.raises(Problem) as caught:
        access.own_chat(found, uuid)
    problem = caught.value
    return problem.code, problem.kind.status, problem.detail, str((problem.context, problem.headers, problem.retry))


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("0fcaf422-c63f-47f4-9638-bac18d164b06", True),
        ("0FCAF422-C63F-47F4-9638-BAC18D164B06", True),
        (UUID("0fcaf422-c63f-47f4-9638-bac18d164b06"), True),
        ("0fcaf422c63f47f49638bac18d164b06", False),
        ("{0fcaf422-c63f-47f4-9638-bac18d164b06}", False),
        ("urn:uuid:0fcaf422-c63f-47f4-9638-bac18d164b06", False),
        (" 0fcaf422-c63f-47f4-9638-bac18d164b06", False),
        (4, False),
        (None, False),
        ("None", False),
    ],
)
def test_a_uuid_has_one_spelling(value: object, known: bool) -> None:
    assert (access.known(value) is not None) is known
