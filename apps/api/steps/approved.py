"""The door of an approved run (AP-4): everything is looked at again as of now, and nothing is paid twice."""

from functools import partial

from apps.api import approvals, credentials, deciding
from apps.api.call import Actor, Call, Outcome, Refusal
from apps.api.models import Approval
from apps.api.problems import Problem


def reopen(call: Call) -> None:
    """The key that asked, as it is now, with what its owner may now. The run's end is owed from here on."""
    approval, now = call.approval, call.switches
    assert approval is not None and now is not None  # noqa: PT018, S101 - `runs.run` set both
    call.afterwards.append(partial(_give_up, call, approval))
    call.confirmation_uuid = approval.pk
    key = credentials.reopened(approval.key, now)
    if key is None:
        raise Problem("unauthorized", "The key that asked may not call any more.")
    call.actor = Actor(kind="key", caller=str(key.family), ip="", key=key, scope=key.owner)


def owe_the_end(call: Call) -> None:
    """Inside the run's transaction the approval is finished with the effect. Before it the votes are looked at once more."""
    approval, now = call.approval, call.switches
    assert approval is not None and now is not None  # noqa: PT018, S101 - `runs.run` set both
    call.asked_uuid = approval.pk
    call.before_commit.insert(0, partial(approvals.finish, approval))
    call.approvers = tuple(str(vote.voter_id) for vote in deciding.counting(approval, now))


def _give_up(call: Call, approval: Approval, outcome: Outcome) -> None:
    """A run that ended without a commit of its own: failed with its code. What may have been committed is left to the sweep."""
    if call.settled or call.unknown or not isinstance(outcome, Refusal):
        return
    code = "interrupted" if call.ran_outside else outcome.problem.code
    approvals.fail(approval, code, outcome=outcome)
