"""The gate. Module authors import from here, and only these names."""

from apps.api.previews import fingerprint, preview, row
from apps.api.tool import Context, Module, ToolError

__all__ = ["Context", "Module", "ToolError", "fingerprint", "preview", "row"]
