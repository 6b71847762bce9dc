"""The tables of the gate."""

from apps.api.models.bucket import Bucket
from apps.api.models.key import ApiKey, KeyFamily
from apps.api.models.setting import Setting

__all__ = ["ApiKey", "Bucket", "KeyFamily", "Setting"]
