"""Signs of life of work that runs (ID-3): on a table of their own, because the work's transaction must not hold their rows."""

from django.db import models


class Lifesign(models.Model):
    """The last heartbeat of one attempt of one piece of work, and its last progress, on the database's clock."""

    kind = models.CharField(max_length=16)
    uuid = models.UUIDField()
    attempt = models.PositiveIntegerField()
    seen_at = models.DateTimeField()
    # What the work reported last, and when: `Context.progress`.
    partial = models.JSONField(null=True)
    progress_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "uuid"], name="api_lifesign_one_a_work")]
        indexes = [models.Index(fields=["seen_at"], name="api_lifesign_seen")]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid} ({self.attempt})"
