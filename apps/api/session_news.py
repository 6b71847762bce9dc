"""Tells the sockets of a live session, in this and other processes, to ask at once whether it still lives.

It is a hint and no more: what counts is what the database says then. The name of the group is made from the session's reference and does
not give it away.
"""

import hashlib

from apps.api import broadcast

EVENT = "session.changed"


def changed(ref: object) -> None:
    """It ended, or its person may do less. Called after the commit, from any thread."""
    name = group(ref)
    broadcast.post(name, {"type": EVENT}, about=EVENT)


def group(ref: object) -> str:
    """Where the sockets of the session listen. Two references that are equal read alike."""
    return f"session.{hashlib.sha256(repr(ref).encode()).hexdigest()[:32]}"
