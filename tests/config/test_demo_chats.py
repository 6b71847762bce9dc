"""The member's example chats, and that an empty chat proposes what works on the demo's shop (TU-8)."""

from uuid import UUID

import pytest
from django.conf import settings as project
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import LiveSession, User
from apps.agent import turn_state
from apps.agent.models import Card, Conversation, Message, ModelEndpoint, Turn
from apps.catalogue import demo as shop
from apps.catalogue.models import Change
from config import demo, demo_chats
from tests.agent import factories
from tests.agent.chatting import Chatter
from tests.api.factories import set_setting

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

RIGHTS = ["agent.use_assistant", *(f"catalogue.{verb}_product" for verb in ("view", "change", "add", "delete"))]


@pytest.fixture(autouse=True)
def _nobody_else_works(settings: Settings) -> None:
    settings.DEBUG = True
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def _member() -> User:
    return User.objects.get(email="member@example.org")


def test_the_member_finds_two_chats_that_are_over_and_nobody_else_has_one() -> None:
    demo.fill()
    chats = list(Conversation.objects.order_by("-last_message_at").values_list("user", "title"))
    assert chats == [(_member().pk, demo_chats.LOOKED_UP[0]), (_member().pk, demo_chats.PROPOSED[0])]
    assert set(Turn.objects.values_list("state", flat=True)) == {"done"}
    assert list(Card.objects.values_list("state", flat=True)) == ["rejected"]
    assert Change.objects.count() == 0
    assert not LiveSession.objects.filter(ended_at=None).exists()


def test_they_are_seen_on_the_page() -> None:
    demo.fill()
    client = factories.sign_in(_member())
    looked_up, proposed = Conversation.objects.order_by("-last_message_at")
    page = client.get(f"/chat/{looked_up.pk}/").content.decode()
    assert page.count("List products") == 1
    assert "<table>" in page
    assert demo_chats.PROPOSED[0] in page
    page = client.get(f"/chat/{proposed.pk}/").content.decode()
    assert 'data-state="rejected"' in page
    assert "data-decide" not in page


def test_a_second_run_adds_none_and_one_that_was_deleted_stays_away() -> None:
    demo.fill()
    Conversation.objects.update(status="deleted", deleted_at=timezone.now(), status_before="active")
    demo.fill()
    assert (Conversation.objects.count(), Message.objects.filter(role="user").count()) == (2, 3)


def test_a_model_of_the_operators_is_not_asked() -> None:
    ModelEndpoint.objects.create(
        name="Paid", provider="openai", base_url="https://models.example.org/v1", model="m", is_default=True
    )
    demo.fill()
    assert Conversation.objects.count() == 0


def dying_worker(name: str, *arguments: str) -> None:
    """It takes each turn of an answer before anybody else, and is never heard of again."""
    turn_state.claim(UUID(arguments[0]), at_once=10)


def test_chats_that_do_not_come_to_their_end_are_not_left_half_done(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_SEND_TASK = "tests.config.test_demo_chats.dying_worker"
    monkeypatch.setattr(demo_chats, "LONGEST", 0.2)
    demo.fill()
    assert (Conversation.objects.count(), Turn.objects.count(), Card.objects.count()) == (0, 0, 0)
    assert not LiveSession.objects.filter(ended_at=None).exists()


def test_with_the_assistant_switched_off_the_demo_is_made_without_chats() -> None:
    set_setting("agent_enabled", False)
    report = demo.fill()
    assert set(report["people"]) == {"operator", "approver", "member"}
    assert Conversation.objects.count() == 0
    assert not LiveSession.objects.filter(ended_at=None).exists()


@pytest.mark.parametrize(
    ("text", "outcomes", "cards"),
    list(zip(project.AGENT_SUGGESTIONS, (["ok"], ["confirmation_required"], ["ok"]), (0, 1, 0), strict=True)),
)
def test_what_an_empty_chat_proposes_works_on_the_shop(text: str, outcomes: list[str], cards: int) -> None:
    shop.fill()
    set_setting("api_session_write_modules", ["catalogue"])
    person = factories.make_person(permissions=RIGHTS[1:])
    chatter = Chatter(person=person, chat=factories.make_chat(person.user))
    assert chatter.ask(text).state == Turn.State.DONE
    told = [message.tool_summary for message in chatter.messages() if message.role == "tool"]
    assert [one["outcome"] for one in told if one is not None][-1:] == outcomes
    assert len(chatter.cards()) == cards
    assert all(one is not None and (one["count"] is None or one["count"] > 0) for one in told)
