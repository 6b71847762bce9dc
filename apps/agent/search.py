"""Finding a chat by its title or by what its person wrote in it: never by what the assistant said or a tool returned.

PostgreSQL searches by words, of which the last may be a beginning, and by an index; SQLite, for one process, by a plain match of parts.
"""

from django.db import connection
from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, Value

from apps.agent.models import Message
from apps.agent.models.conversation import Conversations

MOST_CHARS = 200
# Of a longer text on PostgreSQL, the rest is not searched.
WORDS_OF_CHARS = 50_000


def matching(chats: Conversations, text: str) -> Conversations:
    """Those of the chats whose title, or one text of the person, holds all the words. A text without a word finds nothing."""
    words = text.replace("\x00", " ").split()
    if not words:
        return chats.none()
    own = Message.objects.filter(conversation=OuterRef("pk"), role=Message.Role.USER)
    if connection.vendor == "postgresql":
        wanted = " ".join(words)
        return chats.filter(Q(_holds("title", wanted)) | Exists(own.filter(_holds("content", wanted))))
    titled = Q()
    for word in words:
        own, titled = own.filter(content__icontains=word), titled & Q(title__icontains=word)
    return chats.filter(titled | Exists(own))


def _holds(field: str, text: str) -> Func:
    """The left side is the expression of the index in the migration `words_of_chats`. No word at all is NULL, which holds nothing."""
    words = Func(F(field), template=f"to_tsvector('simple', left(%(expressions)s, {WORDS_OF_CHARS}))")
    query = Func(
        Value(text), template="(NULLIF(plainto_tsquery('simple', %(expressions)s)::text, '') || ':*')::tsquery"
    )
    return Func(words, query, template="%(expressions)s", arg_joiner=" @@ ", output_field=BooleanField())
