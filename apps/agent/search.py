"""Finding a chat by its title or by what its person wrote in it: never by what the assistant said or a tool returned.

PostgreSQL searches by words, of which the last may be a beginning, and by an index; SQLite, for one process, by a plain match of parts.
"""

from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, F, Func, Q, Value

from apps.agent.models import Conversation, Message
from apps.agent.models.conversation import Conversations

MOST_CHARS = 200
# Of a longer text on PostgreSQL, the rest is not searched.
WORDS_OF_CHARS = 50_000


def matching(person: UUID, text: str) -> Conversations:
    """The person's chats whose title, or one text of the person, holds all the words. A text without a word finds nothing."""
    chats, words = Conversation.objects.of(person), _readable(text).split()
    if not words:
        return chats.none()
    titled, said = Q(), Message.objects.filter(conversation__user=person, role=Message.Role.USER)
    if connection.vendor == "postgresql":
        wanted = " ".join(words)
        titled, said = Q(_holds("title", wanted)), said.filter(_holds("content", wanted))
    else:
        for word in words:
            titled, said = titled & Q(title__icontains=word), said.filter(content__icontains=word)
    return chats.filter(titled | Q(pk__in=said.values("conversation")))


def _readable(text: str) -> str:
    """Without what no stored text holds."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()


def _holds(field: str, text: str) -> Func:
    """The left side is the expression of the index in the migration `words_of_chats`. No word at all is NULL, which holds nothing."""
    words = Func(F(field), template=f"to_tsvector('simple', left(%(expressions)s, {WORDS_OF_CHARS}))")
    query = Func(
        Value(text), template="(NULLIF(plainto_tsquery('simple', %(expressions)s)::text, '') || ':*')::tsquery"
    )
    return Func(words, query, template="%(expressions)s", arg_joiner=" @@ ", output_field=BooleanField())
