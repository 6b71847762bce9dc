"""Drives Settings → API in the admin site of the bare host and prints what it saw, as JSON."""

import json
import sys
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - Django must stand first
from django.test import Client  # noqa: E402

from apps.activity.models import Entry  # noqa: E402
from apps.api.models import Setting  # noqa: E402
from tests.api.settings_page import PAGE, open_sheet, text_of  # noqa: E402


def main() -> dict[str, Any]:
    people: Any = get_user_model()._default_manager
    operator, reader = people.create_superuser("operator@example.org"), people.create_user("reader@example.org")
    client = Client()
    client.force_login(operator)

    def closed(**asked: str) -> int:
        return client.get(PAGE, asked).content.decode().count('class="th-shut"')

    seen: dict[str, Any] = {"closed": [closed(), closed(person=str(reader.pk)), closed(q="reader@")]}
    saved = open_sheet(client).tick("agent_may_act", "shelf").tick("accounts_email_required").save()
    seen["said"] = "Saved: shelf: Agent may act: off → on; People need a confirmed" in text_of(saved)
    seen["then"] = [closed(person=str(operator.pk)), closed(person=str(reader.pk))]
    seen["unknown"] = ["no such person" in text_of(client.get(PAGE, {"person": odd})) for odd in ("x", "9" * 40)]
    seen["stored"] = dict(Setting.objects.values_list("name", "value"))
    seen["actor"] = Entry.objects.get(action="api.settings_changed").actor_uuid
    return seen


if __name__ == "__main__":
    json.dump(main(), sys.stdout)
