"""The doors of a turn (TU-1, TU-5): send a text and have it answered, stop, try again, look.

Each acts for a live session and raises Problem as `conversations` does, `turn_running` too.
"""

from collections.abc import Mapping
from typing import Any, TypedDict
from uuid import UUID

from django.utils import timezone

from apps.accounts.sessions import SessionRef
from apps.agent import access, conversations, follow_ups, refusals, shapes, turn_state, writing
from apps.agent.models import Conversation, Message, Turn
from apps.agent.shapes import MessageShape, TurnShape
from apps.api.problems import Problem


class Sent(TypedDict):
    """The stored text and the turn that answers it."""

    message: MessageShape
    turn: TurnShape | None


def send(
    ref: SessionRef,
    conversation_uuid: object,
    attrs: Mapping[str, Any],
    *,
    impersonated: bool,
    context: Mapping[str, Any] | None = None,
) -> Sent:
    """Store the person's text and queue the turn that answers it, both or neither.

    Only `content` and `client_uuid` are taken from `attrs`; a second send of the same client uuid is answered with the first. `context`
    is what the tools are told of the request, as `executor.execute_as` takes it.
    """
    allowed = access.authorize(ref, impersonated=impersonated)
    found = access.own_chat(allowed, conversation_uuid)
    content = writing.checked_content(attrs.get("content"), max_chars=allowed.options.agent_history_chars)
    client_uuid = conversations.checked_client_uuid(attrs.get("client_uuid"))
    now = timezone.now()
    with turn_state.brief_transaction():
        chat = _locked(found, allowed.person)
        first = _sent(chat, client_uuid)
        if first is not None:
            return {"message": shapes.message(first), "turn": None if first.turn is None else shapes.turn(first.turn)}
        _must_be_free(chat)
        written = writing.person_text(chat.pk, allowed.person, content, client_uuid=client_uuid, now=now)
        turn = _queued(chat, ref, context)
        Message.objects.filter(pk=written.message.pk).update(turn=turn)
    return {"message": shapes.message(written.message), "turn": shapes.turn(turn)}


def stop(ref: SessionRef, conversation_uuid: object, *, impersonated: bool) -> TurnShape | None:
    """End the turn that is queued or runs, from any tab, whatever its worker is at; the last turn where none is live."""
    allowed = access.authorize(ref, impersonated=impersonated)
    found = access.own_chat(allowed, conversation_uuid)
    with turn_state.brief_transaction():
        chat = _locked(found, allowed.person)
        turn = follow_ups.live(chat.pk)
        if turn is not None:
            turn_state.stop(chat, turn)
    return _last(found.pk)


def retry(
    ref: SessionRef, conversation_uuid: object, *, impersonated: bool, context: Mapping[str, Any] | None = None
) -> TurnShape:
    """Another turn for what the last one did not answer, for the session that asks now; `conflict` when there is no such turn."""
    allowed = access.authorize(ref, impersonated=impersonated)
    found = access.own_chat(allowed, conversation_uuid)
    with turn_state.brief_transaction():
        chat = _locked(found, allowed.person)
        _must_be_free(chat)
        last = Turn.objects.filter(conversation=chat).order_by("-created_at", "-pk").first()
        if last is None or last.state == Turn.State.DONE:
            detail = "The last turn came to its end, or there is none."
            raise Problem("conflict", detail, retry="never", reason="nothing_to_retry")
        turn = _queued(chat, ref, context)
    return shapes.turn(turn)


def get_turn(ref: SessionRef, conversation_uuid: object, *, impersonated: bool) -> TurnShape | None:
    """The chat's last turn; None before the first one."""
    allowed = access.authorize(ref, impersonated=impersonated)
    return _last(access.own_chat(allowed, conversation_uuid).pk)


def _locked(found: Conversation, person: UUID) -> Conversation:
    """The chat as it is now, held to the end of the transaction: it may have been deleted since it was found."""
    chat = turn_state.locked_chat(found.pk)
    if chat is None or chat.user_id != person or chat.status == Conversation.Status.DELETED:
        raise refusals.not_found()
    return chat


def _sent(chat: Conversation, client_uuid: UUID | None) -> Message | None:
    if client_uuid is None:
        return None
    return Message.objects.select_related("turn").filter(conversation=chat, client_uuid=client_uuid).first()


def _must_be_free(chat: Conversation) -> None:
    """One turn at a time; one whose worker is gone is ended here, so that nobody waits for the sweep."""
    turn = follow_ups.live(chat.pk)
    if turn is not None and not turn_state.end_lost(chat, turn):
        raise refusals.turn_running()


def _queued(chat: Conversation, ref: SessionRef, context: Mapping[str, Any] | None) -> Turn:
    now = timezone.now()
    turn = follow_ups.queue(chat, session=ref.session_uuid, context=dict(context or {}), now=now)
    assert turn is not None  # noqa: S101 - the chat is held, and was found free
    return turn


def _last(conversation: UUID) -> TurnShape | None:
    turn = Turn.objects.filter(conversation=conversation).order_by("-created_at", "-pk").first()
    return None if turn is None else shapes.turn(turn)
