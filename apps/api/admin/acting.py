"""Stands in for `apps.api.acting` until the last page of the admin imports that."""

from apps.api.acting import Acting, of

__all__ = ["Acting", "of"]
