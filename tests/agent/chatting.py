"""A person who chats: sends texts, has the queued turns run, and reads what the chat holds."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connections

from apps.agent import cards, conversations, loop, sweeps, turns
from apps.agent.models import Card, Conversation, Message, Turn
from apps.api.problems import Problem
from tests.agent import factories
from tests.api.person import Person

# Names of tasks that were sent, with their arguments: nobody runs them but the test.
sent: list[tuple[str, ...]] = []


def keep_task(name: str, *arguments: str) -> None:
    """What API_SEND_TASK names, where the test itself is the worker."""
    sent.append((name, *arguments))


@dataclass(kw_only=True)
class Chatter:
    """One person and one chat of theirs."""

    person: Person
    chat: Conversation
    options: dict[str, Any] = field(default_factory=lambda: {"impersonated": False})

    def send(self, text: str = "Hello.", **attrs: Any) -> UUID:
        """The turn that will answer it."""
        found = turns.send(self.person.ref, self.chat.pk, {"content": text, **attrs}, **self.options)
        assert found["turn"] is not None
        return found["turn"]["uuid"]

    def ask(self, text: str = "Hello.") -> Turn:
        """Send it and have it answered: the turn as it ended."""
        return run(self.send(text))

    def stop(self) -> Any:
        return turns.stop(self.person.ref, self.chat.pk, **self.options)

    def retry(self) -> UUID:
        return turns.retry(self.person.ref, self.chat.pk, **self.options)["uuid"]

    def confirm(self, card: Card | UUID) -> cards.Decided:
        uuid = card.pk if isinstance(card, Card) else card
        return cards.confirm(self.person.ref, self.chat.pk, uuid, **self.options)

    def reject(self, card: Card | UUID) -> cards.Decided:
        uuid = card.pk if isinstance(card, Card) else card
        return cards.reject(self.person.ref, self.chat.pk, uuid, **self.options)

    def cards(self) -> list[Card]:
        return list(Card.objects.filter(conversation=self.chat).order_by("created_at", "pk"))

    def messages(self) -> list[Message]:
        return list(Message.objects.filter(conversation=self.chat).order_by("number"))

    def told(self) -> list[tuple[str, str]]:
        """Role and text of each line, a tool's outcome in place of its text, a notice's code."""
        return [(row.role, _text(row)) for row in self.messages()]

    def last(self) -> Turn:
        found = Turn.objects.filter(conversation=self.chat).order_by("-created_at", "-pk").first()
        assert found is not None
        return found

    def delete(self) -> None:
        conversations.delete_conversation(self.person.ref, self.chat.pk, **self.options)


def _text(row: Message) -> str:
    if row.role == Message.Role.NOTICE:
        return row.code
    return str((row.tool_summary or {}).get("outcome")) if row.role == Message.Role.TOOL else row.content


def make_chatter(**fields: Any) -> Chatter:
    person = factories.make_person(**fields)
    return Chatter(person=person, chat=factories.make_chat(person.user))


def run(turn: UUID) -> Turn:
    """Be its worker."""
    loop.run(turn)
    return Turn.objects.get(pk=turn)


def run_queued() -> list[Turn]:
    """Be the worker of all that wait, until none does."""
    done = []
    while (turn := Turn.objects.filter(state=Turn.State.QUEUED).order_by("created_at").first()) is not None:
        done.append(run(turn.pk))
    return done


def sweep() -> sweeps.Swept:
    return sweeps.sweep_turns(is_server=True)


def refused(call: Any) -> tuple[str, Any]:
    """The code and the reason that a door refuses with."""
    try:
        call()
    except Problem as problem:
        return problem.code, problem.context.get("reason")
    raise AssertionError("It was not refused.")


def close_connections() -> None:
    connections.close_all()
