"""Keys, their owners and machines that call with them, for the tests of the gate."""

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from apps.activity import log
from apps.api import keys
from apps.api.models import ApiKey, Confirmation, IdempotencyRecord, Setting

_numbers = itertools.count(1)

SYSTEM = log.Actor(kind="system", name="tests")


def make_owner(*, permissions: Iterable[str] = (), superuser: bool = False, **fields: Any) -> Any:
    """A person who may act. `permissions` are `app_label.codename`."""
    manager: Any = get_user_model()._default_manager
    make = manager.create_superuser if superuser else manager.create_user
    # Hashing a password takes a second. A superuser would be given a referral code, where people have one.
    without = {"referral_code": ""} if hasattr(manager.model, "referral_code") else {}
    values = {"email": f"owner{next(_numbers)}@example.org", "password": None, **without, **fields}
    owner = make(**values)
    for name in permissions:
        grant(owner, name)
    return owner


def grant(person: Any, permission: str) -> None:
    label, _, codename = permission.partition(".")
    person.user_permissions.add(Permission.objects.get(content_type__app_label=label, codename=codename))


def revoke(person: Any, permission: str) -> None:
    label, _, codename = permission.partition(".")
    person.user_permissions.remove(Permission.objects.get(content_type__app_label=label, codename=codename))


def make_key(
    *, owner: Any = None, scopes: Iterable[str] = (), name: str = "machine", **grant_fields: Any
) -> tuple[ApiKey, str]:
    """A key and its text. Without an owner a superuser owns it."""
    return keys.create(
        keys.Grant(name=name, scopes=list(scopes), **grant_fields),
        owner=owner if owner is not None else make_owner(superuser=True),
        actor=SYSTEM,
    )


def set_setting(name: str, value: Any) -> None:
    Setting.objects.update_or_create(name=name, defaults={"value": value})


def make_record(**fields: Any) -> IdempotencyRecord:
    """An idempotency record of nobody's call; one that is done has an answer."""
    values = {"caller": f"key:{uuid4()}", "tool": "probe.store", "key": uuid4().hex, "input_hash": "0" * 64, **fields}
    if values.get("state") == IdempotencyRecord.State.DONE:
        values = {"status": 200, "body": b"{}", "finished_at": timezone.now(), **values}
    return IdempotencyRecord.objects.create(**values)


def make_confirmation(**fields: Any) -> Confirmation:
    """A held call of nobody's; its code is unknown."""
    now = timezone.now()
    values = {"caller": f"key:{uuid4()}", "tool": "probe.act", "input_hash": "0" * 64, "fingerprint": "fixed"}
    times = {"created_at": now, "expires_at": now + timedelta(minutes=10)}
    return Confirmation.objects.create(**{**values, **times, "digest": uuid4().hex, **fields})


@dataclass(kw_only=True)
class Machine:
    """A script that calls the API: with a key, or as a visitor without one."""

    text: str | None = None
    key: ApiKey | None = None
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    @property
    def base(self) -> str:
        return "/api/v1" if self.text else "/api/v1/public"

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self.text}"} if self.text else {}
        return {**own, **(more or {})}

    def call(self, tool: str, body: Any = None, *, headers: dict[str, str] | None = None, **extra: Any) -> Any:
        """POST a call. A `str` or `bytes` body is sent as it is."""
        data = body if isinstance(body, str | bytes) else json.dumps({} if body is None else body)
        return self.client.post(
            f"{self.base}/tools/{tool}", data, content_type="application/json", headers=self.headers(headers), **extra
        )

    def tools(self) -> list[str]:
        answer = self.client.get(f"{self.base}/tools", headers=self.headers())
        return [tool["name"] for tool in answer.json()["tools"]]


def make_machine(**key_fields: Any) -> Machine:
    """A machine with a key of its own: `make_key`'s arguments."""
    key, text = make_key(**key_fields)
    return Machine(text=text, key=key)
