"""The paths under `/api/agent/`, with and without the last slash, without a redirect.

What is no uuid leads to the view as well: it is nobody's, and that is the same answer.
"""

from django.urls import re_path

from apps.agent import conversations
from apps.agent.rest.conversations import ChangeView, ConversationsView, ConversationView
from apps.agent.rest.messages import MessagesView, MessageView

_CHAT = r"^conversations/(?P<uuid>[^/]+)"

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
]
