"""A write that a rollback does not undo (MT-2): spending and claim commit before the run, entry and answer after it."""

from apps.api import audit, effect, handlers, outcomes
from apps.api.call import Answer, Call, Outcome
from apps.api.effect import Prompt
from apps.api.tool import Tool


def run(call: Call, tool: Tool) -> Outcome:
    """Run the handler once, outside any transaction, or answer its prompt. What ends it in an undeclared way is never repeated."""
    admitted = effect.commit(call, tool, lambda: effect.admit(call, tool) or _ADMITTED, owed=False)
    if isinstance(admitted, Prompt):
        return effect.prompt(call, tool, admitted)
    call.ran_outside = True
    ctx = handlers.context(call)
    outcome: Outcome
    try:
        outcome = outcomes.with_headers(call, handlers.run(call, tool, ctx))
    except handlers.Declared as problem:
        outcome = outcomes.declared(call, problem)

    def record() -> Outcome:
        if isinstance(outcome, Answer):
            audit.write_log_lines(call, tool, ctx)
        return outcome

    found = effect.commit(call, tool, record, repeatable=False)
    assert not isinstance(found, Prompt)  # noqa: S101 - `record` gives an outcome
    return found


# Stands for "go on" where a transaction's work has to give an outcome.
_ADMITTED = Answer(result={}, body=b"{}")
