"""The entry of the activity log. Rows are added by `log.write` and never changed."""

import uuid
from functools import lru_cache
from typing import Any, ClassVar, NoReturn

from django.db import connections, models, router, transaction
from django.utils.translation import gettext_lazy as _


class Mode(models.TextChoices):
    """How an act came about: a person's own on a page; a key, the assistant or the run of an approval; a sweep."""

    MANUAL = "manual", _("by hand")
    AUTO = "auto", _("automatic")
    CRON = "cron", _("scheduled")


class ActorKind(models.TextChoices):
    """Who acted."""

    KEY = "key", _("key")
    USER = "user", _("user")
    PUBLIC = "public", _("public")
    SYSTEM = "system", _("system")


class AppendOnly(Exception):
    """An entry was to be changed or removed."""


class EntryQuerySet(models.QuerySet["Entry"]):
    """Reads only; `log.write` is the one door for new rows."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly("Entries are append-only: write one with apps.activity.log.write.")

    update = delete = bulk_create = bulk_update = update_or_create = get_or_create = create = _refuse


class Entry(models.Model):
    """One act: who, what, on which thing, and a MAC over all of it (`log.verify`)."""

    uuid = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(_("time"))
    action = models.CharField(_("action"), max_length=96)
    module = models.CharField(_("module"), max_length=32, blank=True)
    mode = models.CharField(_("mode"), max_length=8, choices=Mode.choices)
    actor_kind = models.CharField(_("actor kind"), max_length=8, choices=ActorKind.choices)
    # A person may have any primary key, so actors and resources are kept as text; the name survives them.
    actor_uuid = models.CharField(_("actor id"), max_length=64, blank=True)
    actor_name = models.CharField(_("actor"), max_length=200, blank=True)
    resource_type = models.CharField(_("resource type"), max_length=64, blank=True)
    resource_uuid = models.CharField(_("resource id"), max_length=64, blank=True)
    target = models.CharField(_("target"), max_length=200, blank=True)
    request_id = models.CharField(_("request id"), max_length=64, blank=True)
    ip = models.GenericIPAddressField(_("address"), null=True, blank=True)
    metadata = models.JSONField(_("details"), default=dict, blank=True)
    mac = models.CharField(_("MAC"), max_length=64)
    mac_key_id = models.CharField(_("MAC key"), max_length=16)

    objects = EntryQuerySet.as_manager()

    class Meta:
        verbose_name = _("entry")
        verbose_name_plural = _("entries")
        ordering: ClassVar = ["-created_at", "-uuid"]
        # One index for each thing that the list is filtered or searched by, each with the list's order in it.
        indexes: ClassVar = [
            models.Index(fields=["created_at", "uuid"], name="entry_newest"),
            models.Index(fields=["action", "created_at"], name="entry_action"),
            models.Index(fields=["module", "created_at"], name="entry_module"),
            models.Index(fields=["mode", "created_at"], name="entry_mode"),
            models.Index(fields=["actor_kind", "created_at"], name="entry_actor_kind"),
            models.Index(fields=["actor_uuid", "created_at"], name="entry_actor"),
            models.Index(fields=["resource_uuid", "created_at"], name="entry_resource"),
            models.Index(fields=["request_id"], name="entry_request"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(mode__in=Mode.values), name="entry_mode_known"),
            models.CheckConstraint(condition=models.Q(actor_kind__in=ActorKind.values), name="entry_actor_kind_known"),
            models.CheckConstraint(condition=~models.Q(mac=""), name="entry_has_mac"),
        ]

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M:%S} {self.action}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert a new row: one prepared statement, a fifth of the ORM's cost, in the path of every write.

        An existing row is refused, by us and (an entry made with its uuid) by the primary key.
        """
        if not self._state.adding:
            raise AppendOnly("Entries are append-only.")
        using = kwargs.get("using") or router.db_for_write(Entry, instance=self)
        connection = connections[using]
        fields = self._meta.concrete_fields
        with transaction.mark_for_rollback_on_error(using=using), connection.cursor() as cursor:
            cursor.execute(
                _insert_statement(using),
                [field.get_db_prep_save(getattr(self, field.attname), connection) for field in fields],
            )
        self._state.adding, self._state.db = False, using

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: retention removes whole closed days, not entries."""
        raise AppendOnly("Entries are append-only.")


@lru_cache(maxsize=4)
def _insert_statement(using: str) -> str:
    quote = connections[using].ops.quote_name
    columns = [quote(str(field.column)) for field in Entry._meta.concrete_fields]
    values = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {quote(Entry._meta.db_table)} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608  # our own names
