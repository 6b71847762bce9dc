"""A turn from its claim to its end (TU-1 to TU-6): rounds of one request to the model and the calls that it asks for, until it answers.

Everything that a turn may do is asked anew before each round and each call: the session, the rights, the boxes, the chat, the limits. It
writes only under `turn_state.held`, so a turn that was stopped, taken for lost or deleted writes nothing more, wherever it stood.
"""

import traceback
from datetime import datetime
from uuid import UUID

import structlog
from django.db.models import F
from django.utils import timezone

from apps.agent import (
    access,
    asking,
    calls,
    card_rows,
    endpoints,
    history,
    journal,
    leases,
    limits,
    notices,
    offers,
    options,
    results,
    turn_state,
    writing,
)
from apps.agent.asking import Heard, Watch
from apps.agent.calls import Asked, Done
from apps.agent.drafts import Draft
from apps.agent.history import History
from apps.agent.limits import Limits, Reached
from apps.agent.models import Message, Turn
from apps.agent.options import Options
from apps.agent.providers.listener import Listener
from apps.agent.providers.protocol import Ask, Chosen, Failure, ToolOffer
from apps.agent.turn_state import Attempt, Lost
from apps.api import executor
from apps.api.call import Refusal
from apps.api.problems import Problem

log = structlog.get_logger(__name__)

State = Turn.State

# A tool that hangs keeps its turn so long past its time.
GRACE_SECONDS = 30


class Ended(Exception):
    """The turn fails for a reason that its person reads. `code` is the notice's."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def run(uuid: UUID) -> None:
    """The task: run the turn if it is queued. Delivered twice, or late, it does nothing."""
    turn = Turn.objects.select_related("conversation", "follows").filter(pk=uuid, state=State.QUEUED).first()
    if turn is None:
        return
    now = options.current()
    allowed = limits.of(turn.conversation.user_id, now)
    attempt = turn_state.claim(uuid, at_once=allowed.at_once)
    if attempt is None:
        return
    leases.keep(attempt, seconds=allowed.seconds + GRACE_SECONDS)
    try:
        _Run(turn, attempt, allowed, now).to_its_end()
    except Lost:
        turn_state.let_go_of_deleted(attempt)
    finally:
        leases.let_go(attempt)


class _Run:
    """The one attempt of a turn, on its way."""

    def __init__(self, turn: Turn, attempt: Attempt, allowed: Limits, now: Options) -> None:
        self.turn, self.attempt, self.limits, self.options = turn, attempt, allowed, now
        self.person: UUID = turn.conversation.user_id
        self.ref = calls.session(turn.session_uuid, self.person)
        self.context = calls.context_of(turn.request_context)
        self.made = limits.calls_so_far(turn)
        self.watch = Watch(attempt, seconds=allowed.seconds)
        self.noted: set[str] = set()
        self.most_chars, self.is_halved = allowed.history_chars, False

    def to_its_end(self) -> None:
        """Whatever happens, the turn ends with a reason; only who lost it leaves it to whoever has it. Raises Lost."""
        try:
            self._answer()
        except Lost:
            raise
        except Ended as end:
            turn_state.finish(self.attempt, State.FAILED, end.code)
        except Reached as reached:
            turn_state.finish(self.attempt, State.FAILED, reached.code, limit=reached.limit)
        except Failure as failure:
            log.warning("model_failed", code=failure.code, detail=failure.detail, turn=str(self.turn.pk))
            turn_state.finish(self.attempt, State.FAILED, failure.code)
        except Exception as error:
            # Its place, and not its text, in which something of a tool's result may stand.
            place = "".join(traceback.format_tb(error.__traceback__))
            log.error("turn_failed", turn=str(self.turn.pk), error=type(error).__name__, place=place)
            turn_state.finish(self.attempt, State.FAILED, "internal_error")

    def _answer(self) -> None:
        self._must_be_allowed()
        chosen = endpoints.choose(str(self.person))
        self.most_chars = min(self.limits.history_chars, chosen.context_chars or self.limits.history_chars)
        with Listener(chosen.model) as listener:
            while asked := self._round_that_fits(chosen, listener):
                self._make_all(asked)
        turn_state.finish(self.attempt, State.DONE)

    # --- One round ----------------------------------------------------------------------------------------------------

    def _round_that_fits(self, chosen: Chosen, listener: Listener) -> list[Asked]:
        """A model whose window is smaller than the operator thought is asked once more, with half of the chat."""
        try:
            return self._round(chosen, listener)
        except Failure as failure:
            if failure.code != "context_overflow" or self.is_halved:
                raise
            self.is_halved, self.most_chars = True, self.most_chars // 2
            return self._round(chosen, listener)

    def _round(self, chosen: Chosen, listener: Listener) -> list[Asked]:
        """One answer of the model, stored; the calls that it asks for."""
        self._must_be_allowed()
        limits.check_round(self.limits, self.turn, person=self.person)
        tools = self._tools()
        found = self._begin_round()
        ask = Ask(
            instructions=offers.instructions(self.options.agent_prompt_addition),
            history=found.lines,
            tools=tools,
            max_output_tokens=chosen.max_output_tokens,
        )
        return self._listen(chosen, listener, ask)

    def _begin_round(self) -> History:
        """Count the round and read what the model is sent, in one moment: a card that is decided now is told now, or in the next one."""
        with turn_state.held(self.attempt) as chat:
            try:
                found = history.of(chat.pk, most_chars=self.most_chars)
            except history.TooLong:
                raise Reached("limit_history", self.most_chars) from None
            Turn.objects.filter(pk=self.turn.pk).update(rounds=F("rounds") + 1)
            card_rows.mark_told(chat, self.turn)
            self.turn.rounds += 1
            if found.is_cut and not _has_notice(chat.pk, "history_cut"):
                self._notice("history_cut")
        return found

    def _listen(self, chosen: Chosen, listener: Listener, ask: Ask) -> list[Asked]:
        heard, began, code = Heard(Draft(self.attempt)), timezone.now(), journal.STOPPED
        try:
            asking.listen(listener, ask, heard, self.watch)
            code = ""
        except (Failure, Reached) as end:
            code = end.code if isinstance(end, Failure) else code
            heard.draft.save(live=False)
            raise
        finally:
            self._pay(chosen, ask, heard, code, began)
        heard.draft.save(live=False, calls=heard.asked)
        _must_be_whole(heard)
        return heard.asked

    def _pay(self, chosen: Chosen, ask: Ask, heard: Heard, code: str, began: datetime) -> None:
        """What the request took. The journal counts it whoever has the turn now: the provider was asked."""
        number, rounds = self.attempt.number, self.turn.rounds
        where = journal.Where(person_id=str(self.person), turn=self.turn.pk, attempt=number, round=rounds)
        asked = journal.Asked(ask=ask, text=heard.text)
        row = journal.note(chosen, where, started_at=began, usage=heard.usage, asked=asked, code=code)
        tokens, cost = row.input_tokens + row.output_tokens, row.cost or 0
        self.turn.tokens = min(self.turn.tokens + tokens, journal.MOST_TOKENS)
        self.turn.cost = min(self.turn.cost + cost, journal.MOST_COST)
        turn_state.current(self.attempt).update(tokens=self.turn.tokens, cost=self.turn.cost)

    def _tools(self) -> list[ToolOffer]:
        found = executor.visible_for(self.ref, "admin", impersonated=False, allow="all")
        if isinstance(found, Refusal):
            raise _ended(found.problem)
        return [offers.of(tool) for tool in found.tools]

    # --- The calls of a round -----------------------------------------------------------------------------------------

    def _make_all(self, asked: list[Asked]) -> None:
        """Each gets its result, also those that a limit keeps from being made. Raises Reached and Ended after the last one."""
        over: Reached | Ended | None = None
        for call in asked:
            done = None if over is not None else self._unless_limited(call)
            if isinstance(done, Reached):
                over = done
            if not isinstance(done, Done):
                done = Done(result=results.fault(call.tool, "not_called", "A limit of this turn was reached before."))
            self._store(call, done)
            over = over or _lost_session(done)
        if over is not None:
            raise over

    def _unless_limited(self, call: Asked) -> Done | Reached:
        self._must_be_allowed()
        if self.turn.calls >= self.limits.calls:
            return Reached("limit_calls", self.limits.calls)
        if self.made[call.key] >= self.limits.repeats:
            return Reached("limit_repeats", self.limits.repeats)
        self.made[call.key] += 1
        self.turn.calls += 1
        return calls.made(call, self.ref, context=self.context, most_chars=self.limits.result_chars)

    def _store(self, call: Asked, done: Done) -> None:
        """The result of the call, and the card of a held one, in one transaction. Raises Lost."""
        with turn_state.held(self.attempt) as chat:
            now = timezone.now()
            message = writing.append(
                chat.pk,
                role=Message.Role.TOOL,
                now=now,
                turn_id=self.turn.pk,
                tool_call_id=call.id,
                tool_result={"text": done.result.told},
                tool_summary=done.result.summary,
            )
            assert message is not None  # noqa: S101 - its row is held, and was not deleted
            Turn.objects.filter(pk=self.turn.pk).update(calls=self.turn.calls)
            if done.outcome is not None and results.is_held(done.outcome):
                card_rows.add(message, self.turn, call.tool, done)
            if done.result.summary["truncated"] and "result_truncated" not in self.noted:
                self._notice("result_truncated", limit=self.limits.result_chars)

    # --- What must hold -----------------------------------------------------------------------------------------------

    def _must_be_allowed(self) -> None:
        """The session, its rights and the assistant's switches as they are now, and the turn still ours. Raises Ended, Reached, Lost."""
        self.watch.look()
        try:
            access.authorize(self.ref, impersonated=False)
        except Problem as problem:
            raise _ended(problem) from None

    def _notice(self, code: str, **values: object) -> None:
        self.noted.add(code)
        text = notices.text(code, **values)
        turn, chat = self.turn.pk, self.attempt.conversation
        writing.append(chat, role=Message.Role.NOTICE, now=timezone.now(), content=text, code=code, turn_id=turn)


def _must_be_whole(heard: Heard) -> None:
    if heard.asked:
        return
    if heard.usage is not None and heard.usage.is_cut:
        raise Ended("answer_cut")
    if heard.draft.is_empty:
        raise Ended("answer_empty")


def _has_notice(chat: UUID, code: str) -> bool:
    return Message.objects.filter(conversation=chat, role=Message.Role.NOTICE, code=code).exists()


def _lost_session(done: Done) -> Ended | None:
    """Who lost the session in the middle of a call has nobody left to act for."""
    if isinstance(done.outcome, Refusal) and done.outcome.problem.code in ("unauthorized", "impersonated"):
        return _ended(done.outcome.problem)
    return None


def _ended(problem: Problem) -> Ended:
    """By the reason that the gate gives, where it has one that a person reads."""
    reason = problem.context.get("reason")
    return Ended(reason if problem.code == "unauthorized" and reason in notices.TEXTS else problem.code)
