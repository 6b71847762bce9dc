"""Drives the page of a member's own keys in the bare host over HTTP and prints what it saw, as JSON."""

import json
import sys
from typing import Any
from uuid import uuid4

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - Django must stand first
from django.contrib.auth.models import Permission  # noqa: E402
from django.test import Client  # noqa: E402

from apps.activity.models import Entry  # noqa: E402
from apps.api import key_text  # noqa: E402
from apps.api.models import ApiKey, Setting  # noqa: E402

LIST = "/account/keys/"


def main() -> dict[str, Any]:
    member: Any = get_user_model()._default_manager.create_user("reader@example.org")
    wanted = ["view_book", "change_book", "create_own_key"]
    member.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    Setting.objects.create(name="api_own_keys", value=True)
    client = Client()
    client.force_login(member)
    form = {"name": "script", "scopes": ["shelf:read"], "lifetime": "90", "networks": "", "budget": "", "once": uuid4()}

    def text_of(answer: Any) -> str:
        (text,) = set(key_text.PATTERN.findall(answer.content.decode()))
        return str(text)

    def status(text: str) -> int:
        return client.get("/api/v1/tools", headers={"Authorization": f"Bearer {text}"}).status_code

    first = text_of(client.post(f"{LIST}new/", form))
    seen: dict[str, Any] = {"made": status(first)}
    key = ApiKey.objects.get()
    second = text_of(client.post(f"{LIST}{key.pk}/rotate/", {"grace": "0"}))
    seen["rotated"] = [status(first), status(second)]
    client.post(f"{LIST}{ApiKey.objects.get(predecessor=key).pk}/revoke/")
    seen["revoked"] = status(second)
    page = client.get(LIST)
    seen["listed"] = [page.status_code, page.content.decode().count("<article")]
    seen["not_there"] = client.get(f"{LIST}{uuid4()}/revoke/").status_code
    seen["owners"] = sorted(set(ApiKey.objects.values_list("owner", flat=True)))
    seen["actors"] = sorted(set(Entry.objects.values_list("actor_uuid", flat=True)))
    # Its people have no sessions: nobody decides.
    seen["approvals"] = [client.get(f"/approvals/{rest}").status_code for rest in ("", f"{uuid4()}/")]
    seen["visitor"] = Client().get(LIST).status_code
    return seen


if __name__ == "__main__":
    json.dump(main(), sys.stdout)
