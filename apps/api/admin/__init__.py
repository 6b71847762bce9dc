"""The gate in the admin site: keys, settings, approvals, held calls and idempotency records. Importing this registers them."""

from apps.api.admin.approvals import ApprovalAdmin
from apps.api.admin.confirmations import ConfirmationAdmin
from apps.api.admin.idempotency import IdempotencyRecordAdmin
from apps.api.admin.keys import ApiKeyAdmin
from apps.api.admin.settings import SettingAdmin

__all__ = ["ApiKeyAdmin", "ApprovalAdmin", "ConfirmationAdmin", "IdempotencyRecordAdmin", "SettingAdmin"]
