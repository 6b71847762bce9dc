"""The tables of the gate."""

from apps.api.models.approval import Approval, Vote
from apps.api.models.bucket import Bucket
from apps.api.models.confirmation import Confirmation
from apps.api.models.idempotency import IdempotencyRecord
from apps.api.models.key import ApiKey, KeyFamily
from apps.api.models.lifesign import Lifesign
from apps.api.models.setting import Setting

__all__ = [
    "ApiKey",
    "Approval",
    "Bucket",
    "Confirmation",
    "IdempotencyRecord",
    "KeyFamily",
    "Lifesign",
    "Setting",
    "Vote",
]
