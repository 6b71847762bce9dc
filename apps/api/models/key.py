"""API keys and their families (KY-1, KY-4)."""

import uuid
from datetime import datetime
from ipaddress import ip_network
from typing import Any, assert_never

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

MIN_BUDGET = 20
MAX_NETWORKS = 100


def validate_names(value: Any) -> None:
    """A list of scopes."""
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ValidationError(_("Give a list of names."))


def validate_networks(value: Any) -> None:
    """Networks in CIDR form, without host bits."""
    networks = value if isinstance(value, list) else [value]
    # Each call with the key compares its address with all of them.
    if len(networks) > MAX_NETWORKS:
        raise ValidationError(_("Give at most %(limit)d networks."), params={"limit": MAX_NETWORKS})
    for network in networks:
        try:
            ip_network(network)
        except ValueError as error:
            raise ValidationError(_("%(network)s is no network in CIDR form."), params={"network": network}) from error


class KeyFamily(models.Model):
    """A key and its rotations: what budgets and records belong to (KY-4)."""

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("key family")
        verbose_name_plural = _("key families")

    def __str__(self) -> str:
        return str(self.uuid)


class KeyState(models.TextChoices):
    """What an operator needs to know first. A key in grace was rotated and works beside its successor for a while (KY-4); an exposed
    one works too, and its text was seen where it must not be (KY-5)."""

    ACTIVE = "active", _("active")
    GRACE = "grace", _("in grace")
    EXPOSED = "exposed", _("exposed")
    EXPIRED = "expired", _("expired")
    REVOKED = "revoked", _("revoked")


class KeyQuerySet(models.QuerySet["ApiKey"]):
    def in_state(self, state: KeyState, now: datetime) -> "KeyQuerySet":
        """The keys of which `ApiKey.state_at` says this."""
        match state:
            case KeyState.REVOKED:
                return self.exclude(revoked_at=None)
            case KeyState.EXPIRED:
                return self.filter(revoked_at=None, expires_at__lte=now)
            case KeyState.EXPOSED:
                return self.lasting(now).exclude(exposed_at=None)
            case KeyState.ACTIVE | KeyState.GRACE:
                return self.lasting(now).filter(exposed_at=None, successor__isnull=state == KeyState.ACTIVE)
            case _:
                assert_never(state)

    def lasting(self, now: datetime) -> "KeyQuerySet":
        """The keys that are neither revoked nor expired."""
        return self.filter(_lasts(now))

    def lasting_first(self, now: datetime) -> "KeyQuerySet":
        """Those that last, and of them those that were exposed before the others; then those that have ended. The newest first."""
        exposed = models.When(_lasts(now) & ~models.Q(exposed_at=None), then=0)
        urgency = models.Case(exposed, models.When(_lasts(now), then=1), default=2)
        return self.order_by(urgency, "-created_at", "pk")


def _lasts(now: datetime) -> models.Q:
    return models.Q(models.Q(expires_at=None) | models.Q(expires_at__gt=now), revoked_at=None)


class ApiKey(models.Model):
    """What is stored of a key: its public id and a keyed digest, never its text."""

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    public_id = models.CharField(_("id"), max_length=12, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    pepper_id = models.CharField(max_length=32, editable=False)
    family = models.ForeignKey(KeyFamily, models.PROTECT, related_name="keys", editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="api_keys", verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=100)
    scopes = models.JSONField(_("scopes"), default=list, blank=True, validators=[validate_names])
    requires_approval = models.BooleanField(_("requires approval"), default=False)
    approvers_needed = models.PositiveSmallIntegerField(
        _("approvers needed"), default=1, validators=[MinValueValidator(1)]
    )
    networks = models.JSONField(_("allowed networks"), default=list, blank=True, validators=[validate_networks])
    budget = models.PositiveIntegerField(
        _("units a minute"), null=True, blank=True, validators=[MinValueValidator(MIN_BUDGET)]
    )
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        related_name="+",
        editable=False,
        verbose_name=_("created by"),
    )
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        related_name="+",
        editable=False,
        verbose_name=_("revoked by"),
    )
    successor = models.OneToOneField(
        "self",
        models.PROTECT,
        null=True,
        related_name="predecessor",
        editable=False,
        verbose_name=_("successor"),
    )
    exposed_at = models.DateTimeField(_("exposed at"), null=True, editable=False)

    objects = KeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ("-created_at", "pk")
        permissions = [("create_own_key", "Can create API keys of their own")]
        # The list of the admin site stays fast at 100,000 keys.
        indexes = [models.Index(fields=["-created_at", "uuid"], name="api_key_newest_first")]
        constraints = [
            models.CheckConstraint(
                name="api_key_budget_is_20_or_more",
                condition=models.Q(budget__isnull=True) | models.Q(budget__gte=MIN_BUDGET),
            ),
            models.CheckConstraint(name="api_key_needs_an_approver", condition=models.Q(approvers_needed__gte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    def state_at(self, now: datetime) -> KeyState:
        """The one state of five, the one that ends the key first."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return KeyState.EXPIRED
        if self.exposed_at is not None:
            return KeyState.EXPOSED
        return KeyState.ACTIVE if self.successor_id is None else KeyState.GRACE
