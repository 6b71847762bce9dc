"""Settings → Agent in an operator's words, section by section."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from apps.agent import options
from apps.api.admin.setting_words import Vocabulary, Words

ACCESS: Mapping[str, Words] = {
    "agent_enabled": Words(
        label=_("The assistant is on"),
        help=_("Off: nobody can open a chat or send anything, and a turn that runs makes no further call."),
    ),
    "agent_purge_deleted_after_days": Words(
        label=_("Deleted chats are gone for good after"), help=_("0: never."), unit=_("days")
    ),
}
TURN: Mapping[str, Words] = {
    "agent_turn_seconds": Words(label=_("A turn takes at most"), help=_("Then it is ended."), unit=_("seconds")),
    "agent_rounds": Words(
        label=_("Requests to the model in one turn"),
        help=_("After each the model gets the results of the tools that it called."),
        unit=_("requests"),
    ),
    "agent_calls": Words(label=_("Calls of tools in one turn"), help=_("0: it can only talk."), unit=_("calls")),
    "agent_repeats": Words(
        label=_("The very same call in one turn"),
        help=_("The same tool with the same input: more often, and the turn is ended."),
        unit=_("times"),
    ),
    "agent_result_chars": Words(
        label=_("Of a tool's result the model gets"),
        help=_("The rest is cut off, and it is told."),
        unit=_("characters"),
    ),
    "agent_history_chars": Words(
        label=_("Of the chat the model gets"),
        help=_("The newest part. One text of a person is never longer either."),
        unit=_("characters"),
    ),
}
_DOLLARS = _("US dollars")
MONEY: Mapping[str, Words] = {
    "agent_turn_tokens": Words(label=_("Tokens of one turn"), help=_("Input and output together."), unit=_("tokens")),
    "agent_turn_cost": Words(
        label=_("Cost of one turn"), help=_("A model without a known price costs nothing here."), unit=_DOLLARS
    ),
    "agent_daily_tokens": Words(
        label=_("Tokens of a person a day"), help=_("Over all their chats, from midnight UTC."), unit=_("tokens")
    ),
    "agent_daily_cost": Words(
        label=_("Cost of a person a day"), help=_("Over all their chats, from midnight UTC."), unit=_DOLLARS
    ),
    "agent_turns_at_once": Words(
        label=_("Turns of a person at the same time"), help=_("Over all their chats."), unit=_("turns")
    ),
}
TASK: Mapping[str, Words] = {
    "agent_prompt_addition": Words(
        label=_("Added to what the model is told"),
        help=_("Rules and facts of yours, for every chat. No secrets: whoever asks the model may read them."),
    ),
}
VOCABULARY = Vocabulary(words={**ACCESS, **TURN, **MONEY, **TASK}, rules=options.RULES)
SECTIONS = (
    ("access", _("Access"), ACCESS),
    ("turn", _("One turn"), TURN),
    ("money", _("Tokens and money"), MONEY),
    ("task", _("The model's task"), TASK),
)
