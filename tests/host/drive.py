"""Drives the gate of the bare host over HTTP and prints what it saw, as JSON."""

import json
import sys
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - Django must stand first
from django.contrib.auth.models import Permission  # noqa: E402
from django.test import Client  # noqa: E402

from apps.activity import log  # noqa: E402
from apps.activity.models import Entry  # noqa: E402
from apps.api import keys  # noqa: E402
from apps.api.models import ApiKey  # noqa: E402
from tests.host.shelf.models import Book  # noqa: E402


def main() -> dict[str, Any]:
    member: Any = get_user_model()._default_manager.create_user("reader@example.org")
    grant = keys.Grant(name="script", scopes=["shelf:read", "shelf:write"])
    _, text = keys.create(grant, owner=member, actor=log.Actor(kind="system"))
    client = Client(raise_request_exception=False)
    headers = {"Authorization": f"Bearer {text}"}

    def call(tool: str, **body: Any) -> Any:
        path = f"/api/v1/tools/{tool}"
        return client.post(path, json.dumps(body), content_type="application/json", headers=headers)

    def tools() -> list[str]:
        return [tool["name"] for tool in client.get("/api/v1/tools", headers=headers).json()["tools"]]

    seen: dict[str, Any] = {"before": tools(), "refused": call("shelf.list_books").json()["code"]}
    member.user_permissions.set(Permission.objects.filter(codename__in=["view_book", "change_book"]))
    seen["tools"] = tools()
    seen["preview"] = call("shelf.set_copies", title="Emma", copies=3, dry_run=True).json()["preview"]["rows"]
    seen["previewed"] = Book.objects.count()
    seen["written"] = call("shelf.set_copies", title="Emma", copies=3).json()
    seen["read"] = call("shelf.list_books").json()
    seen["person"] = str(member.pk)
    seen["key"] = call("system.whoami").json()["scopes"]
    seen["entries"] = sorted(Entry.objects.values_list("action", flat=True))
    seen["verified"] = all(log.verify(entry) for entry in Entry.objects.all())
    seen["owner"] = isinstance(ApiKey.objects.get().owner_id, int)
    member.is_active = False
    member.save()
    answer = call("shelf.list_books")
    seen["inactive"] = [answer.status_code, answer["Content-Type"], "X-Request-ID" in answer.headers]
    seen["missing"] = client.get("/api/v1/nothing").json()["code"]
    return seen


if __name__ == "__main__":
    json.dump(main(), sys.stdout)
