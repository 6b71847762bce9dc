"""What the host may listen to: one signal for each call that ended, sent after everything else of it."""

import time

from django.dispatch import Signal

from apps.api.call import Call, Outcome

# Arguments: `call`, `outcome`, `seconds` (since the call came to the door). `call.tool` is None where none was found. A receiver
# reads and is quick: the caller waits for it. One that fails is logged by Django and changes no answer.
call_ended = Signal(use_caching=True)


def ended(call: Call, outcome: Outcome) -> Outcome:
    """Tell the receivers, and give the outcome back."""
    call_ended.send_robust(Call, call=call, outcome=outcome, seconds=time.perf_counter() - call.started)
    return outcome
