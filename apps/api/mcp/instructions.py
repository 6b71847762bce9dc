"""What a model is told about this server before its first call: how previews, codes and approvals work here."""

_ALL = """\
Every call passes one gate and costs units of a budget per minute.

Reads answer at once. Every write also takes three fields beside its own:
- dry_run: true answers a preview of what would change, and changes nothing.
- confirm_token: the second word for a write that was held (see below).
- idempotency_key: a text of your own, up to 255 ASCII characters. A repeat with the same key and arguments answers what the first call
  answered and never runs twice. Send one with every write that you might have to repeat.

Look at "status" in the answer of a write:
- "preview": nothing was changed.
- "confirmation_required": nothing was changed yet. Show the preview to the person you work for. Only if they agree, call the same tool
  again with exactly the same arguments and confirm_token, before expires_at. The code works once and for these arguments alone. With
  "reason": "changed" the values changed since the preview: show the new one and ask again.
- no such status: it was done.

A refusal has isError and its text is a problem as JSON. "retry" says what to do: same_key (repeat the same call later), later (wait),
new_key (a new idempotency_key), never (change something first). "errors" lists wrong fields by JSON Pointer.
"""

_ADMIN = """
- "pending_approval": nothing was changed yet. Another person has to approve it on the page "url"; you can't. Tell the person you work for,
  and do not repeat the write. Ask system_get_approval with approval_id later what became of it; system_cancel_approval takes it back.

system_whoami tells what this key may do and what is left of its budget; system_problems explains each code.
"""


def of(audience: str) -> str:
    """The text for the audience."""
    return _ALL + _ADMIN if audience == "admin" else _ALL
