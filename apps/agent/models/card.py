"""A write that the assistant proposed and its person decides on (TU-3)."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.agent.models.conversation import Conversation
from apps.agent.models.message import Message
from apps.agent.models.turn import Turn


class Card(models.Model):
    """What the confirmation row of the gate does not keep: the stored call that the card is drawn from, never the model's words.

    `uuid` is the gate's confirmation. Its state is the gate's too, and copied here when it ends, with what became of it.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        USED = "used", _("confirmed")
        REJECTED = "rejected", _("rejected")
        EXPIRED = "expired", _("expired")

    uuid = models.UUIDField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="cards")
    turn = models.ForeignKey(Turn, models.SET_NULL, related_name="cards", null=True)
    # The tool's message that says it is held.
    message = models.ForeignKey(Message, models.CASCADE, related_name="cards")
    tool = models.CharField(_("tool"), max_length=64)
    arguments = models.JSONField()
    preview = models.JSONField()
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.WAITING)
    # Of a confirmed write: the problem's code, empty when it ran.
    code = models.CharField(_("code"), max_length=64, blank=True)
    # The values changed: the card that asks again.
    replaced_by = models.OneToOneField("self", models.SET_NULL, related_name="replaces", null=True)
    created_at = models.DateTimeField(_("created at"))
    expires_at = models.DateTimeField(_("expires at"))
    decided_at = models.DateTimeField(_("decided at"), null=True)
    # The turn in which the model was told; what it was told stands in the note, a message of the chat.
    told_in = models.ForeignKey(Turn, models.SET_NULL, related_name="+", null=True)

    class Meta:
        verbose_name = _("proposed write")
        verbose_name_plural = _("proposed writes")
        ordering = ("created_at", "pk")
        indexes = [
            models.Index(fields=["conversation", "created_at"], name="agent_card_of_conversation"),
            models.Index(fields=["expires_at"], name="agent_card_waiting", condition=models.Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return str(self.uuid)
