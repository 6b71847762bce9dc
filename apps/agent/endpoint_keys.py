"""The key of an endpoint's row: put in, taken out for a call, sealed again. It is never shown."""

from dataclasses import dataclass, field

from apps.agent import sealing
from apps.agent.models import ModelEndpoint
from apps.agent.providers.protocol import Failure
from apps.agent.sealing import Unopened


def put(row: ModelEndpoint, key: str) -> None:
    """Seal the key for the row's provider and address as they are now; the row is not saved. An empty text takes it away."""
    row.key_encrypted = sealing.seal(key, about=about(row)) if key else ""


def take(row: ModelEndpoint) -> str:
    """The key, or an empty text where the endpoint has none. Raises Failure for one that can't be opened."""
    if not row.key_encrypted:
        return ""
    try:
        return sealing.open_(row.key_encrypted, about=about(row))
    except Unopened:
        raise Failure("key_unreadable", f"The key of {row.name} can't be opened with MODEL_KEY_SECRETS.") from None


def about(row: ModelEndpoint) -> str:
    """Where the key may be sent to. Who changes that has to know the key."""
    return f"{row.pk} {row.provider} {row.base_url}"


@dataclass(kw_only=True)
class Rotated:
    """How many keys were sealed again, how many needed not, and the names of those that can't be opened."""

    sealed: int = 0
    current: int = 0
    unopened: list[str] = field(default_factory=list)


def rotate() -> Rotated:
    """Seal every key under the current secret. A key that changes meanwhile is left to who changed it."""
    rotated = Rotated()
    for row in ModelEndpoint.objects.exclude(key_encrypted="").order_by("name"):
        before = row.key_encrypted
        try:
            put(row, take(row))
        except Failure:
            rotated.unopened.append(row.name)
            continue
        if sealing.is_current(before):
            rotated.current += 1
        else:
            rotated.sealed += ModelEndpoint.objects.filter(pk=row.pk, key_encrypted=before).update(
                key_encrypted=row.key_encrypted
            )
    return rotated
