"""The toll: units are taken from buckets in one atomic step, never more than the budget in any minute (section 8)."""

from collections.abc import Iterable, Sequence

from apps.api.ratelimit import stores
from apps.api.ratelimit.bucket import Bucket, Level, Reading, Verdict

__all__ = ["Bucket", "Level", "Verdict", "charge", "headers", "levels"]


def charge(buckets: Sequence[tuple[Bucket, int]]) -> Verdict:
    """Take the units from every bucket, or from none (RL-4). Each bucket is named once; 0 units only read.

    With the database as store this is a transaction of its own, and a RuntimeError inside another.
    """
    if any(units < 0 for _, units in buckets) or len({bucket.name for bucket, _ in buckets}) < len(buckets):
        raise ValueError("A step charges each bucket once, with 0 units or more.")
    if any(units > bucket.budget for bucket, units in buckets):
        return Verdict(admitted=False, levels=levels([bucket for bucket, _ in buckets]), retry_after=None)
    readings = stores.current().take(buckets)
    wait = max((reading.wait for reading in readings), default=0)
    return Verdict(
        admitted=not wait, levels=_levels([bucket for bucket, _ in buckets], readings), retry_after=wait or None
    )


def levels(buckets: Sequence[Bucket]) -> tuple[Level, ...]:
    """How the buckets stand; charges nothing."""
    return _levels(buckets, stores.current().look([(bucket, 0) for bucket in buckets]))


def headers(levels: Iterable[Level]) -> dict[str, str]:
    """RL-5: the two fields of the IETF draft (version 10), as structured fields.

    A bucket that was charged in two steps is told once, as it stood last.
    """
    told = {level.bucket.name: level for level in levels}.values()
    if not told:
        return {}
    policies = [f'"{level.bucket.policy}";q={level.bucket.budget};w={level.bucket.seconds}' for level in told]
    limits = [f'"{level.bucket.policy}";r={level.remaining};t={level.reset_seconds}' for level in told]
    return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(limits)}


def _levels(buckets: Sequence[Bucket], readings: Sequence[Reading]) -> tuple[Level, ...]:
    return tuple(
        Level(bucket=bucket, remaining=max(0, bucket.budget - reading.used), reset_seconds=reading.reset)
        for bucket, reading in zip(buckets, readings, strict=True)
    )
