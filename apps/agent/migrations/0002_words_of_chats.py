"""PostgreSQL finds a person's texts by their words. SQLite has no such index and searches by a plain match.

Only so much of a text: the words of one row take at most a megabyte, and a longer one could not be stored at all.
"""

from django.db import migrations

ADD = """
CREATE INDEX agent_message_words ON agent_message USING gin (to_tsvector('simple', left(content, 50000))) WHERE role = 'user'
"""
DROP = "DROP INDEX IF EXISTS agent_message_words"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(ADD)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("agent", "0001_chats_and_turns")]

    operations = [migrations.RunPython(add, drop, elidable=False)]
