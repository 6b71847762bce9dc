"""A write of a key that requires approval is filed for a person instead of run (AP-1)."""

from typing import Any

from django.utils import timezone

from apps.api import approvals, effect, guard, handlers, outcomes, problems
from apps.api.call import REPLAYED, Answer, Call, Outcome
from apps.api.effect import Prompt
from apps.api.models import Approval, IdempotencyRecord
from apps.api.tool import Tool


def run(call: Call, tool: Tool) -> Outcome:
    """Preview the write and file it, or answer the approval that it waits for already."""
    with guard.read_only():
        shown, mark = handlers.preview(call, tool, handlers.context(call, dry_run=True))
    given = {name: part for name, part in call.input.items() if name not in call.control}
    arguments = tool.form.plain(call.typed, {**tool.defaults, **given})

    def file() -> Answer:
        approval, is_new = approvals.file(call, tool, shown=shown, mark=mark, arguments=arguments)
        call.confirmation_uuid, call.queued = approval.pk, approval
        if call.claim is not None:
            IdempotencyRecord.objects.filter(pk=call.claim.uuid, attempt=call.claim.attempt).update(approval=approval)
        return outcomes.with_headers(call, _answer(approval, is_new=is_new))

    found = effect.commit(call, tool, file, repeatable=False)
    assert not isinstance(found, Prompt)  # noqa: S101 - `file` answers
    return found


def _answer(approval: Approval, *, is_new: bool) -> Answer:
    """The pending answer. A repeat gets the same approval, marked as a replay; what is shown is the preview that waits."""
    left = approval.expires_at - timezone.now()
    pending: dict[str, Any] = {
        "status": "pending_approval",
        "approval_id": approval.pk,
        "preview": approval.preview,
        "expires_at": approval.expires_at,
        "expires_in_seconds": max(0, int(left.total_seconds())),
        "url": problems.page_url(f"/approvals/{approval.pk}/"),
        "approvals_needed": approval.approvals_needed,
    }
    found = handlers.answer(pending, outcome="pending_approval")
    if is_new:
        return found
    return Answer(result=found.result, body=found.body, outcome=found.outcome, replayed=True, headers=dict(REPLAYED))
