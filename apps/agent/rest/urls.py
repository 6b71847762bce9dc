"""The paths under `/api/agent/`, with and without the last slash, without a redirect.

What is no uuid leads to the view as well: it is nobody's, and that is the same answer.
"""

from django.urls import re_path

from apps.agent import cards, conversations
from apps.agent.rest.confirmations import ConfirmationsView, DecisionView
from apps.agent.rest.conversations import ChangeView, ConversationsView, ConversationView
from apps.agent.rest.messages import MessagesView, MessageView
from apps.agent.rest.turns import RetryView, StopView, TurnView

_CHAT = r"^conversations/(?P<uuid>[^/]+)"
_CARD = rf"{_CHAT}/confirmations/(?P<confirmation>[^/]+)"

urlpatterns = [
    re_path(r"^conversations/?\Z", ConversationsView.as_view(), name="agent_conversations"),
    re_path(rf"{_CHAT}/?\Z", ConversationView.as_view(), name="agent_conversation"),
    re_path(
        rf"{_CHAT}/archive/?\Z", ChangeView.as_view(change=conversations.archive_conversation), name="agent_archive"
    ),
    re_path(
        rf"{_CHAT}/unarchive/?\Z",
        ChangeView.as_view(change=conversations.unarchive_conversation),
        name="agent_unarchive",
    ),
    re_path(
        rf"{_CHAT}/restore/?\Z", ChangeView.as_view(change=conversations.restore_conversation), name="agent_restore"
    ),
    re_path(rf"{_CHAT}/messages/?\Z", MessagesView.as_view(), name="agent_messages"),
    re_path(rf"{_CHAT}/messages/(?P<message>[^/]+)/?\Z", MessageView.as_view(), name="agent_message"),
    re_path(rf"{_CHAT}/turn/?\Z", TurnView.as_view(), name="agent_turn"),
    re_path(rf"{_CHAT}/turn/stop/?\Z", StopView.as_view(), name="agent_turn_stop"),
    re_path(rf"{_CHAT}/turn/retry/?\Z", RetryView.as_view(), name="agent_turn_retry"),
    re_path(rf"{_CHAT}/confirmations/?\Z", ConfirmationsView.as_view(), name="agent_confirmations"),
    re_path(rf"{_CARD}/confirm/?\Z", DecisionView.as_view(decide=cards.confirm), name="agent_confirm"),
    re_path(rf"{_CARD}/reject/?\Z", DecisionView.as_view(decide=cards.reject), name="agent_reject"),
]
