"""What the bare host's tools are about."""

from typing import ClassVar

from django.db import models


class Book(models.Model):
    title = models.CharField(max_length=100, unique=True)
    copies = models.IntegerField(default=0)

    objects: ClassVar[models.Manager["Book"]] = models.Manager()

    def __str__(self) -> str:
        return self.title
