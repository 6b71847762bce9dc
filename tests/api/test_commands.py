"""The commands of the gate: create_key and list_tools."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apps.activity.models import Entry
from apps.api import key_text
from apps.api.models import ApiKey
from apps.api.registry import Registry
from tests.api import factories, probe
from tests.api.factories import Machine

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]


def run(command: str, *arguments: str) -> str:
    """What the command prints."""
    out = StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


def create(*more: str, owner: Any = None, scope: str = probe.READ) -> str:
    """What `create_key` prints, for somebody's key with a name and a scope."""
    person = owner if owner is not None else factories.make_owner(superuser=True)
    return run("create_key", "--owner", person.get_username(), "--name", "nightly import", "--scope", scope, *more)


# --- create_key -------------------------------------------------------------------------------------------------------


def test_the_json_has_the_public_id_and_the_text_of_a_key_that_is_stored() -> None:
    owner = factories.make_owner(superuser=True)
    made = json.loads(create("--json", owner=owner))
    key = ApiKey.objects.get(public_id=made["id"])
    assert set(made) == {"id", "key"}
    assert key_text.well_formed(made["key"])
    assert key_text.public_id(made["key"]) == made["id"]
    assert (key.owner, key.name, key.scopes) == (owner, "nightly import", [probe.READ])
    assert (key.requires_approval, key.expires_at, key.budget, key.created_by) == (False, None, None, None)


def test_the_text_shows_the_key_once() -> None:
    text = create()
    assert len(key_text.PATTERN.findall(text)) == 1
    assert ApiKey.objects.get().public_id in text


def test_a_key_takes_all_its_options() -> None:
    before = timezone.now()
    create("--scope", probe.WRITE, "--requires-approval", "--expires", "30d", "--budget", "20", "--json")
    key = ApiKey.objects.get()
    assert (key.scopes, key.requires_approval, key.budget) == ([probe.READ, probe.WRITE], True, 20)
    assert key.expires_at is not None
    assert timedelta(days=30) <= key.expires_at - before < timedelta(days=30, minutes=1)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90m", timedelta(minutes=90)),
        ("12h", timedelta(hours=12)),
        ("1d", timedelta(days=1)),
        ("4w", timedelta(weeks=4)),
    ],
)
def test_a_key_lives_as_long_as_asked(text: str, span: timedelta) -> None:
    before = timezone.now()
    create("--expires", text)
    expires_at = ApiKey.objects.get().expires_at
    assert expires_at is not None
    assert span <= expires_at - before < span + timedelta(minutes=1)


@pytest.mark.parametrize("text", ["30", "d", "0d", "-1d", "1.5d", "30 d", "30D", "1y", "999999w", ""])
def test_an_odd_duration_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--expires"):
        create(f"--expires={text}")
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize("units", ["19", "0", "-5"])
def test_a_budget_below_20_is_refused(units: str) -> None:
    with pytest.raises(CommandError, match="20 units"):
        create(f"--budget={units}")


def test_an_unknown_scope_is_refused_with_the_known_ones() -> None:
    with pytest.raises(CommandError, match=r"scope probe:reed\. There are: probe:read, probe:write\."):
        create(scope="probe:reed")


def test_an_unknown_owner_is_refused() -> None:
    with pytest.raises(CommandError, match=r"nobody with the email nobody@example\.org"):
        run("create_key", "--owner", "nobody@example.org", "--name", "x", "--scope", probe.READ)


def test_a_value_that_the_model_refuses_is_a_plain_message() -> None:
    with pytest.raises(CommandError, match="at most 100 characters"):
        create("--name", "x" * 101)
    assert not ApiKey.objects.exists()


def test_the_new_key_leaves_an_entry_of_the_system() -> None:
    create()
    entry = Entry.objects.get(action="api.key_created")
    assert (entry.mode, entry.actor_kind, entry.actor_name) == ("manual", "system", "create_key")


@pytest.mark.django_db(transaction=True)
def test_the_printed_key_calls_a_tool() -> None:
    made = json.loads(create("--json"))
    assert Machine(text=made["key"]).call("probe.echo", {"text": "a"}).json()["text"] == "a"


# --- list_tools -------------------------------------------------------------------------------------------------------


def _listed() -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in json.loads(run("list_tools", "--json"))["tools"]}


def test_every_tool_is_listed_with_what_it_asks_for(tools: Registry) -> None:
    found = _listed()
    assert list(found) == sorted(name for _, name in tools.tools)
    assert found["probe.store"] == {
        "name": "probe.store",
        "audience": "admin",
        "kind": "write",
        "scope": probe.WRITE,
        "permission": probe.CHANGE,
        "danger": "none",
        "state": "open",
    }
    assert (found["probe.act"]["danger"], found["probe.weigh"]["danger"]) == ("always", "conditional")
    assert (found["probe.look"]["audience"], found["probe.look"]["kind"]) == ("public", "read")
    assert found["system.whoami"]["scope"] is None


def test_the_state_follows_the_settings() -> None:
    factories.set_setting("api_disabled_tools", ["probe.echo"])
    assert (_listed()["probe.echo"]["state"], _listed()["probe.store"]["state"]) == ("hidden", "open")
    factories.set_setting("disabled_modules", ["probe"])
    assert (_listed()["probe.echo"]["state"], _listed()["probe.store"]["state"]) == ("hidden", "module off")
    factories.set_setting("api_disabled_modules", ["probe"])
    assert _listed()["probe.store"]["state"] == "hidden"


def test_the_table_has_a_line_for_each_tool_under_its_heads(tools: Registry) -> None:
    lines = run("list_tools").splitlines()
    assert lines[0].split() == ["name", "audience", "kind", "scope", "permission", "danger", "state"]
    assert len(lines) == 1 + len(tools.tools)
    assert next(line for line in lines if line.startswith("system.whoami")).split()[3:] == ["-", "-", "none", "open"]
