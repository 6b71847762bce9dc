"""Two example chats of the demo's member: asked, answered and decided by the same functions as any other, so they show what is true.

The member's session that they are written in is ended afterwards; what they propose is rejected, so the shop stays as it is.
"""

import time
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from apps.accounts import sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import SessionRef
from apps.activity import log
from apps.agent import cards, conversations, endpoints, loop, turns
from apps.agent.models import Conversation, Turn
from apps.api.problems import Problem

ACTOR = log.Actor(kind="system", name="demo")

LOOKED_UP = ("Lamps that are out of stock", ("Which lamps are out of stock?", "/catalogue.get_product sku=LMP-0002"))
PROPOSED = ("A price that stayed", ("Raise the price of LMP-0002 by 5 %",))

# Seconds that the two chats may take before they are given up.
LONGEST = 20


def fill(email: str) -> None:
    """The chats of this person, where there are none yet. A model endpoint of the operator's is not asked for them: it costs."""
    person = User.objects.filter(email=email, is_active=True).first()
    if person is None or Conversation.objects.filter(user=person).exists() or not endpoints.is_demo():
        return
    now = timezone.now()
    session = LiveSession.objects.create(
        user=person, created_at=now, expires_at=now + timedelta(minutes=5), user_agent="Tollhouse demo"
    )
    is_whole = False
    try:
        is_whole = _write(SessionRef(session.pk, person.pk))
    except Problem:
        # The assistant is off, say; a demo is no reason not to start.
        pass
    finally:
        rows = LiveSession.objects.filter(pk=session.pk)
        sessions.end(rows, reason=LiveSession.EndReason.ENDED_BY_OWNER, by=ACTOR, now=timezone.now())
        if not is_whole:
            # Both or none; a worker that still has a turn of theirs writes nothing more.
            Conversation.objects.filter(user=person).delete()


def _write(ref: SessionRef) -> bool:
    """Whether all of it came to its end in time."""
    until = time.monotonic() + LONGEST
    proposed = _chat(ref, *PROPOSED, until=until)
    for card in cards.list_confirmations(ref, proposed, impersonated=False):
        cards.reject(ref, proposed, card["uuid"], impersonated=False)
        _finish(proposed, until=until)
    _chat(ref, *LOOKED_UP, until=until)
    return not Turn.objects.filter(session_uuid=ref.session_uuid).exclude(state=Turn.State.DONE).exists()


def _chat(ref: SessionRef, title: str, texts: tuple[str, ...], *, until: float) -> UUID:
    chat = conversations.create_conversation(ref, {"title": title}, impersonated=False)["uuid"]
    for text in texts:
        turns.send(ref, chat, {"content": text}, impersonated=False)
        _finish(chat, until=until)
    return chat


def _finish(chat: UUID, *, until: float) -> None:
    """The chat's turns have ended, run here or by the worker that was quicker."""
    live = Turn.objects.filter(conversation=chat, state__in=Turn.LIVE)
    for turn in live.values_list("pk", flat=True):
        loop.run(turn)
    while live.exists() and time.monotonic() < until:
        time.sleep(0.02)  # another worker has it
