"""The rows of the limiter's database store; only `apps.api.ratelimit.database` touches them, by SQL of its own."""

from django.db import models


class Bucket(models.Model):
    """The live slots of one bucket, on the clock of the database."""

    name = models.CharField(max_length=200, primary_key=True)
    # Slot (a whole second since 1970, as text) to units.
    slots = models.JSONField()
    # The minute since 1970 by which every slot has left and the row may go.
    dead_minute = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["dead_minute"], name="api_bucket_dead_minute")]

    def __str__(self) -> str:
        return self.name
