"""API keys (KY-1 to KY-6), driven over HTTP: their text, what verifying costs, what refuses them, and where they must not be."""

import io
import json
import logging
import re
import sqlite3
import string
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import structlog
import time_machine
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.activity.models import Entry
from apps.api import addresses, key_text, keys
from apps.api.models import ApiKey, Setting
from apps.api.registry import Registry
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.test_flow_table import fresh_address

pytestmark = pytest.mark.sqlite

FORMAT = re.compile(r"th_(live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}")
WELL_FORMED_FAKE = key_text.generate()


@pytest.fixture
def other(database_url: str) -> Iterator[Any]:
    """A second connection to the database, outside Django, which commits each statement."""
    if connection.vendor == "sqlite":
        opened: Any = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, timeout=0.1)
    else:
        opened = psycopg.connect(database_url, autocommit=True)
    yield opened
    opened.close()


def stored_key(machine: Machine) -> ApiKey:
    assert machine.key is not None
    machine.key.refresh_from_db()
    return machine.key


def update(machine: Machine, **values: Any) -> None:
    assert machine.key is not None
    ApiKey.objects.filter(pk=machine.key.pk).update(**values)


# --- KY-1: the text -------------------------------------------------------------------------------------------------------------------


def test_a_key_has_the_one_form_that_scanners_know() -> None:
    made = {key_text.generate() for _ in range(200)}
    assert len(made) == 200
    assert all(FORMAT.fullmatch(text) and text.startswith("th_live_") for text in made)
    assert {letter for text in made for letter in text[8:20] + text[21:53]} == set(string.digits + string.ascii_letters)


def test_a_key_of_a_debug_server_says_so(settings: Any) -> None:
    settings.DEBUG = True
    assert key_text.generate().startswith("th_test_")


def test_the_check_is_the_crc32_of_all_before_it_in_base_62() -> None:
    text = key_text.generate()
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    number = 0
    for letter in text[-6:]:
        number = number * 62 + digits.index(letter)
    assert number == zlib.crc32(text[:-6].encode())


def test_no_typing_error_is_well_formed() -> None:
    text = key_text.generate()
    assert key_text.well_formed(text)
    for at in range(len(text)):
        for letter in "0aZ_":
            typo = text[:at] + letter + text[at + 1 :]
            assert typo == text or not key_text.well_formed(typo)
    for odd in ("", text[:-1], text + "0", text + "\n", " " + text, text.upper(), text.replace("th_live", "th_test")):
        assert not key_text.well_formed(odd)


def test_a_typing_error_is_refused_without_asking_for_a_key(machine: Machine) -> None:
    assert machine.text is not None
    typo = Machine(text=machine.text[:-1] + ("0" if machine.text[-1] != "0" else "1"))
    with CaptureQueriesContext(connection) as captured:
        assert typo.call("probe.echo").status_code == 401
    assert not any(machine.text[8:20] in query["sql"] for query in captured.captured_queries)


def test_the_text_is_stored_nowhere(machine: Machine) -> None:
    assert machine.text is not None
    secret = machine.text[21:53]
    key = stored_key(machine)
    assert secret not in repr(vars(key))
    assert not any(secret in repr(vars(entry)) for entry in Entry.objects.all())
    assert (len(key.digest), key.pepper_id) == (64, "test")


# --- KY-2: what verifying costs -------------------------------------------------------------------------------------------------------

UNCOUNTED = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET", "PREPARE")


def queries(call: Callable[[], Any]) -> list[str]:
    """The statements of a call that SP-1 counts."""
    with CaptureQueriesContext(connection) as captured:
        assert call().status_code == 200
    return [query["sql"] for query in captured.captured_queries if not query["sql"].startswith(UNCOUNTED)]


def test_a_read_asks_once_and_notes_its_use_with_one_more(machine: Machine) -> None:
    connection.close()
    first = queries(lambda: machine.call("probe.echo"))
    assert len(first) == 2
    assert 'UPDATE "api_apikey"' in first[1]
    assert len(queries(lambda: machine.call("probe.echo"))) == 1
    assert len(queries(lambda: machine.call("system.whoami"))) == 1


def test_a_write_adds_its_entry_and_one_commit(machine: Machine) -> None:
    machine.call("probe.echo")
    with CaptureQueriesContext(connection) as captured:
        assert machine.call("probe.store", {"name": "a"}).status_code == 200
    texts = [query["sql"] for query in captured.captured_queries]
    own = [text for text in texts if '"api_setting"' in text or "row_stored" in text]
    counted = [text for text in texts if not text.startswith(UNCOUNTED) and text not in own]
    assert len(counted) <= 5
    assert len([text for text in counted if 'INTO "activity_entry"' in text]) == 1
    assert texts.count("COMMIT") == 1


def test_a_listing_asks_once(machine: Machine) -> None:
    machine.call("probe.echo")
    assert len(queries(lambda: machine.client.get("/api/v1/tools", headers=machine.headers()))) == 1


def test_a_member_with_groups_costs_no_more_than_a_superuser(transactional_db: None, tools: Registry) -> None:
    owner = factories.make_owner(permissions=[probe.VIEW, probe.CHANGE])
    machine = factories.make_machine(owner=owner, scopes=[probe.READ])
    machine.call("probe.echo")
    assert len(queries(lambda: machine.call("probe.echo"))) == 1


def test_a_refused_key_costs_no_more_than_a_good_one(machine: Machine) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert Machine(text=WELL_FORMED_FAKE).call("probe.echo").status_code == 401
    assert len([q for q in captured.captured_queries if not q["sql"].startswith(UNCOUNTED)]) == 1


def test_use_is_noted_at_most_once_a_minute(machine: Machine) -> None:
    assert stored_key(machine).last_used_at is None
    machine.call("probe.echo")
    first = stored_key(machine).last_used_at
    assert first is not None
    machine.call("probe.echo")
    assert stored_key(machine).last_used_at == first
    for seconds, noted in ((58, False), (61, True)):
        then = timezone.now() - timedelta(seconds=seconds)
        update(machine, last_used_at=then)
        machine.call("probe.echo")
        assert (stored_key(machine).last_used_at != then) is noted


def test_a_refused_call_notes_no_use(machine: Machine) -> None:
    update(machine, revoked_at=timezone.now())
    machine.call("probe.echo")
    assert stored_key(machine).last_used_at is None


def test_a_row_that_another_transaction_holds_is_not_waited_for(
    machine: Machine, other: Any, postgres_url: str
) -> None:
    failed: list[str] = []

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        try:
            return execute(sql, *rest)
        except Exception:
            failed.append(sql)
            raise

    with connection.cursor() as cursor:
        # A wait would end here as a failed statement.
        cursor.execute("SET statement_timeout = '5s'")
    other.execute("BEGIN")
    other.execute("SELECT 1 FROM api_apikey FOR UPDATE")
    with connection.execute_wrapper(watch):
        answer = machine.call("probe.echo")
    assert (answer.status_code, stored_key(machine).last_used_at, failed) == (200, None, [])
    other.execute("ROLLBACK")
    machine.call("probe.echo")
    assert stored_key(machine).last_used_at is not None
    connection.close()


def test_a_database_with_another_writer_is_not_waited_for(machine: Machine, other: Any) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("SQLite alone has one writer")
    said: list[str] = []
    other.execute("BEGIN IMMEDIATE")
    connection.connection.set_trace_callback(said.append)
    answer = machine.call("probe.echo")
    connection.connection.set_trace_callback(None)
    assert (answer.status_code, stored_key(machine).last_used_at) == (200, None)
    words = [text for text in said if text.startswith(("PRAGMA busy_timeout =", "BEGIN IMMEDIATE"))]
    assert words == ["PRAGMA busy_timeout = 0", "BEGIN IMMEDIATE", "PRAGMA busy_timeout = 20000"]
    other.execute("ROLLBACK")
    machine.call("probe.echo")
    assert stored_key(machine).last_used_at is not None


@pytest.mark.alone
def test_a_revocation_that_races_with_notes_of_use_is_never_an_error(machine: Machine) -> None:
    """G9. Every call notes its use here, and after the revocation none passes."""
    workers, rounds = 4, 12
    start = threading.Barrier(workers + 1)
    statuses: list[int] = []

    def call() -> None:
        own = Machine(text=machine.text)
        start.wait()
        for _ in range(rounds):
            update(machine, last_used_at=None)
            statuses.append(own.call("probe.echo", REMOTE_ADDR=fresh_address()).status_code)
        connection.close()

    threads = [threading.Thread(target=call) for _ in range(workers)]
    for thread in threads:
        thread.start()
    start.wait()
    while len(statuses) < workers:
        pass
    assert keys.revoke(stored_key(machine), by=None, actor=factories.SYSTEM)
    after = machine.call("probe.echo").status_code
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 401}
    assert (after, machine.call("probe.echo").status_code) == (401, 401)
    assert Entry.objects.filter(action="api.key_revoked").count() == 1


# --- KY-2: one answer for every reason ------------------------------------------------------------------------------------------------


def _owner(**values: Any) -> Callable[[Machine], None]:
    def change(machine: Machine) -> None:
        owner = stored_key(machine).owner
        for name, value in values.items():
            setattr(owner, name, value)
        owner.save(update_fields=list(values))

    return change


def _both(*changes: Callable[[Machine], None]) -> Callable[[Machine], None]:
    def change(machine: Machine) -> None:
        for one in changes:
            one(machine)

    return change


def _key(**values: Any) -> Callable[[Machine], None]:
    return lambda machine: update(machine, **values)


def _text(change: Callable[[str], str | None]) -> Callable[[Machine], None]:
    def replace(machine: Machine) -> None:
        assert machine.text is not None
        machine.text = change(machine.text)

    return replace


def _set(name: str, value: Any) -> Callable[[Machine], None]:
    return lambda machine: factories.set_setting(name, value)


def _with_secret(text: str, secret: str) -> str:
    body = text[:21] + secret
    return body + key_text.check(body)


REASONS: dict[str, Callable[[Machine], None]] = {
    "unknown": _text(lambda text: WELL_FORMED_FAKE),
    "typing error": _text(lambda text: text[:30] + ("a" if text[30] != "a" else "b") + text[31:]),
    "another secret": _text(lambda text: _with_secret(text, "0" * 32)),
    "another environment": _text(lambda text: "th_test" + text[7:-6] + key_text.check("th_test" + text[7:-6])),
    "more text": _text(lambda text: text + "0"),
    "no key at all": _text(lambda text: "hello"),
    "not ASCII": _text(lambda text: text[:-1] + "é"),
    "expired": lambda machine: update(machine, expires_at=timezone.now()),
    "revoked": lambda machine: update(machine, revoked_at=timezone.now()),
    "owner inactive": _owner(is_active=False),
    "owner unconfirmed": _both(_owner(email_confirmed_at=None), _set("accounts_email_required", True)),
    "owner without referral": _set("accounts_referral_required", True),
    "accounts_email_required unreadable": _both(
        _owner(email_confirmed_at=None), _set("accounts_email_required", "yes")
    ),
    "other network": _key(networks=["192.0.2.0/24", "2001:db8::/32"]),
    "pepper gone": _key(pepper_id="gone"),
    "other pepper": _key(pepper_id="second"),
    "digest of another": _key(digest="0" * 64),
}


def _shape(answer: Any) -> tuple[int, bytes, dict[str, str]]:
    return answer.status_code, answer.content, dict(answer.headers)


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
def test_every_reason_for_a_401_reads_the_same(
    machine: Machine, settings: Any, reason: Callable[[Machine], None]
) -> None:
    settings.API_KEY_PEPPERS = {**settings.API_KEY_PEPPERS, "second": "another pepper"}
    assert machine.call("probe.echo").status_code == 200
    no_key = machine.client.post(
        "/api/v1/tools/probe.echo", "{}", content_type="application/json", headers={"X-Request-ID": "same"}
    )
    reason(machine)
    answer = machine.call("probe.echo", headers={"X-Request-ID": "same"}, REMOTE_ADDR=fresh_address())
    assert answer.json()["code"] == "unauthorized"
    assert _shape(answer) == _shape(no_key)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert not Entry.objects.filter(action="api.request").exists()


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic dTpw", "Token {key}", "{key}", "Bearer {key} more"])
def test_only_a_bearer_is_a_credential(machine: Machine, value: str) -> None:
    header = {"Authorization": value.replace("{key}", machine.text or "")}
    answer = machine.client.get("/api/v1/tools", headers=header, REMOTE_ADDR=fresh_address())
    assert answer.status_code == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(machine: Machine, scheme: str) -> None:
    answer = machine.client.get("/api/v1/tools", headers={"Authorization": f"{scheme} {machine.text}"})
    assert answer.status_code == 200


def test_a_doubled_header_is_a_bad_request_even_when_one_of_them_is_valid(machine: Machine) -> None:
    for value in (f"Bearer {machine.text}, Bearer {machine.text}", f"Basic dTpw, Bearer {machine.text}", ","):
        answer = machine.client.get("/api/v1/tools", headers={"Authorization": value})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


def test_a_key_without_a_budget_of_its_own_and_one_with(transactional_db: None, tools: Registry) -> None:
    for budget, told in ((None, "q=600"), (25, "q=25")):
        machine = factories.make_machine(scopes=[probe.READ], budget=budget)
        assert told in machine.call("probe.echo").headers["RateLimit-Policy"]


# --- Peppers --------------------------------------------------------------------------------------------------------------------------


def test_a_new_pepper_serves_new_keys_and_the_old_one_still_verifies(machine: Machine, settings: Any) -> None:
    settings.API_KEY_PEPPERS = {"new": "a pepper of this year", **settings.API_KEY_PEPPERS}
    young = factories.make_machine(scopes=[probe.READ])
    assert (stored_key(young).pepper_id, stored_key(machine).pepper_id) == ("new", "test")
    assert [one.call("probe.echo").status_code for one in (young, machine)] == [200, 200]
    del settings.API_KEY_PEPPERS["test"]
    assert [one.call("probe.echo").status_code for one in (young, machine)] == [200, 401]


def test_a_digest_is_keyed_by_the_pepper(machine: Machine, settings: Any) -> None:
    settings.API_KEY_PEPPERS = {"test": "a stolen id with another secret"}
    assert machine.call("probe.echo").status_code == 401


# --- Changes hold for the next call ---------------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[Callable[[Machine], None], int, str]] = {
    "scope taken": (_key(scopes=[probe.WRITE]), 403, "forbidden"),
    "revoked": (lambda machine: update(machine, revoked_at=timezone.now()), 401, "unauthorized"),
    "expired": (lambda machine: update(machine, expires_at=timezone.now()), 401, "unauthorized"),
    "networks": (_key(networks=["192.0.2.0/24"]), 401, "unauthorized"),
    "permission lost": (lambda machine: factories.revoke(stored_key(machine).owner, probe.VIEW), 403, "forbidden"),
    "owner deactivated": (_owner(is_active=False), 401, "unauthorized"),
    "tool hidden": (_set("api_disabled_tools", ["probe.echo"]), 404, "not_found"),
    "API of the module off": (_set("api_disabled_modules", ["probe"]), 404, "not_found"),
    "module off": (_set("disabled_modules", ["probe"]), 404, "module_disabled"),
    "API off": (_set("api_admin_enabled", False), 403, "api_disabled"),
    "maintenance": (_set("maintenance_mode", True), 503, "maintenance"),
    "budget": (_set("api_key_budget", 2), 429, "rate_limited"),
}


@pytest.mark.parametrize(("change", "status", "code"), CHANGES.values(), ids=CHANGES)
def test_a_change_holds_for_the_next_call_and_its_end_too(
    transactional_db: None, tools: Registry, change: Callable[[Machine], None], status: int, code: str
) -> None:
    owner = factories.make_owner(permissions=[probe.VIEW])
    machine = factories.make_machine(owner=owner, scopes=[probe.READ])
    before = {
        field: getattr(stored_key(machine), field) for field in ("scopes", "revoked_at", "expires_at", "networks")
    }
    assert [machine.call("probe.echo").status_code for _ in range(2)] == [200, 200]
    change(machine)
    answer = machine.call("probe.echo", REMOTE_ADDR=fresh_address())
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    update(machine, **before)
    factories.grant(owner, probe.VIEW)
    type(owner).objects.filter(pk=owner.pk).update(is_active=True)
    Setting.objects.all().delete()
    assert machine.call("probe.echo").status_code == 200


def test_a_group_gives_and_takes_a_permission_at_once(transactional_db: None, tools: Registry) -> None:
    from django.contrib.auth.models import Group, Permission

    owner = factories.make_owner()
    machine = factories.make_machine(owner=owner, scopes=[probe.READ])
    assert machine.call("probe.echo").status_code == 403
    group = Group.objects.create(name="viewers")
    group.permissions.add(Permission.objects.get(codename="view_setting"))
    owner.groups.add(group)
    assert machine.call("probe.echo").status_code == 200
    group.permissions.clear()
    assert machine.call("probe.echo").status_code == 403


def test_another_process_sees_a_change_at_once(
    machine: Machine, process_environment: dict[str, str], tools: Registry
) -> None:
    """Both ways: the other process calls before and after a change made here, and makes one that this one sees."""
    script = """
import sys
import django
django.setup()
from django.test import Client
from apps.api import registry
from apps.api.models import Setting
from tests.api import probe
def call():
    client = Client()
    headers = {"Authorization": "Bearer " + sys.argv[1]}
    path = "/api/v1/tools/probe.echo"
    print(client.post(path, "{}", content_type="application/json", headers=headers).status_code, flush=True)
with registry.using(probe.make_probe()):
    call()
    sys.stdin.readline()
    call()
    Setting.objects.update_or_create(name="api_disabled_tools", defaults={"value": ["system.whoami"]})
    print("changed", flush=True)
"""
    command = [sys.executable, "-c", script, machine.text or ""]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=process_environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "200"
        assert machine.call("system.whoami").status_code == 200
        factories.set_setting("api_disabled_tools", ["probe.echo"])
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline().strip() == "404"
        assert process.stdout.readline().strip() == "changed"
        assert machine.call("system.whoami").status_code == 404
        assert machine.call("probe.echo").status_code == 200


# --- KY-5: failed authentications -----------------------------------------------------------------------------------------------------


def test_a_network_that_fails_too_often_waits_and_a_valid_key_passes(machine: Machine) -> None:
    ip, stranger = fresh_address(), Machine(text=WELL_FORMED_FAKE)
    with time_machine.travel(timezone.now(), tick=False):
        statuses = [stranger.call("probe.echo", REMOTE_ADDR=ip).status_code for _ in range(20)]
        refused = stranger.call("probe.echo", REMOTE_ADDR=ip)
        assert statuses == [401] * 20
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert "RateLimit" not in refused.headers
        assert machine.call("probe.echo", REMOTE_ADDR=ip).status_code == 200
        assert stranger.call("probe.echo", REMOTE_ADDR=ip).status_code == 429
        assert stranger.call("probe.echo", REMOTE_ADDR=fresh_address()).status_code == 401


def test_the_addresses_of_one_ipv6_network_fail_together(machine: Machine) -> None:
    stranger = Machine(text=WELL_FORMED_FAKE)
    with time_machine.travel(timezone.now(), tick=False):
        for number in range(20):
            stranger.call("probe.echo", REMOTE_ADDR=f"2001:db8:5:5::{number:x}")
        assert stranger.call("probe.echo", REMOTE_ADDR="2001:db8:5:5:ffff::1").status_code == 429
        assert stranger.call("probe.echo", REMOTE_ADDR="2001:db8:5:6::1").status_code == 401


# --- KY-5: credentials where they must not be -----------------------------------------------------------------------------------------

NAMES = ["api_key", "apikey", "api-key", "key", "token", "access_token", "auth", "authorization", "secret"]
SPELLINGS: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.title,
    lambda name: "".join(f"%{ord(letter):02x}" for letter in name),
    lambda name: f"%{ord(name[0].upper()):02X}{name[1:]}",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_credential_in_the_url_is_refused_by_its_name(machine: Machine, visitor: Machine, name: str) -> None:
    for spell in SPELLINGS:
        for query in ("?{}=1", "?{}=", "?{}", "?a=1&{}=2", "?{}=1&{}=2", "?=&{}=x"):
            for caller, tool in ((machine, "probe.echo"), (visitor, "probe.look")):
                answer = caller.call(tool + query.replace("{}", spell(name)))
                assert (answer.status_code, answer.json()["code"]) == (400, "credential_in_url")
    assert machine.client.get(f"/api/v1/tools?{name}=1", headers=machine.headers()).status_code == 400


@pytest.mark.parametrize("query", ["?keys=1", "?q=token", "?tokens=a", "?x=%26key%3D1", "?api=key", "?"])
def test_other_names_are_no_credentials(machine: Machine, query: str) -> None:
    assert machine.call(f"probe.echo{query}").status_code == 200


def _percent(text: str) -> str:
    return "".join(f"%{ord(letter):02X}" for letter in text)


URLS: dict[str, Callable[[str], str]] = {
    "a value": lambda text: f"probe.echo?x={text}",
    "a name": lambda text: f"probe.echo?{text}=1",
    "bare": lambda text: f"probe.echo?{text}",
    "in a value": lambda text: f"probe.echo?next=/a/{text}/b",
    "encoded": lambda text: f"probe.echo?x={_percent(text)}",
    "half encoded": lambda text: f"probe.echo?x={text.replace('_', '%5f')}",
    "the tool": lambda text: text,
    "the tool, encoded": _percent,
    "in the tool": lambda text: f"probe.{text}",
    "after a fake": lambda text: f"probe.echo?x={WELL_FORMED_FAKE}&y={text}",
}


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_a_key_in_the_url_is_refused_by_its_shape_and_marked(
    machine: Machine, visitor: Machine, caplog: pytest.LogCaptureFixture, url: Callable[[str], str]
) -> None:
    assert machine.text is not None
    for caller in (machine, visitor):
        answer = caller.call(url(machine.text))
        assert (answer.status_code, answer.json()["code"]) == (400, "credential_in_url")
        assert machine.text not in answer.content.decode()
    key = stored_key(machine)
    assert key.exposed_at is not None
    entry = Entry.objects.get(action="api.key_exposed")
    assert (entry.resource_uuid, entry.actor_uuid) == (str(key.pk), str(key.pk))
    assert machine.text not in repr(vars(entry))


def test_a_text_that_only_looks_like_a_key_is_refused_and_marks_nothing(machine: Machine) -> None:
    assert machine.text is not None
    wrong_secret = _with_secret(machine.text, "0" * 32)
    typo = machine.text[:-1] + ("0" if machine.text[-1] != "0" else "1")
    for text in (WELL_FORMED_FAKE, wrong_secret, typo):
        assert machine.call(f"probe.echo?x={text}").json()["code"] == "credential_in_url"
    assert stored_key(machine).exposed_at is None
    assert not Entry.objects.filter(action="api.key_exposed").exists()


def test_an_exposed_key_still_works_and_is_marked_once(machine: Machine) -> None:
    for _ in range(2):
        machine.call(f"probe.echo?x={machine.text}")
    assert machine.call("probe.echo").status_code == 200
    assert Entry.objects.filter(action="api.key_exposed").count() == 1


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


BODIES: dict[str, Callable[[str], str]] = {
    "a value": lambda text: json.dumps({"name": text}),
    "a member name": lambda text: json.dumps({text: 1}),
    "deep inside": lambda text: json.dumps({"a": [{"b": [["x", {"c": text}]]}]}),
    "in a text": lambda text: json.dumps({"name": f"curl -H 'Authorization: Bearer {text}'"}),
    "escaped": lambda text: f'{{"name": "{_escaped(text)}"}}',
    "a member name, escaped": lambda text: f'{{"{_escaped(text)}": 1}}',
    "half escaped": lambda text: f'{{"name": "{text[:3]}\\u006cive{text[7:]}"}}',
    "a control field": lambda text: json.dumps({"name": "a", "confirm_token": text}),
    "after a fake": lambda text: json.dumps({"name": [WELL_FORMED_FAKE + " " + text]}),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_key_in_the_body_is_refused_and_marked(
    machine: Machine, visitor: Machine, body: Callable[[str], str]
) -> None:
    assert machine.text is not None
    for caller, tool in ((machine, "probe.store"), (machine, "no.such"), (visitor, "probe.look")):
        answer = caller.call(tool, body(machine.text))
        assert (answer.status_code, answer.json()["code"]) == (400, "credential_in_body")
        assert machine.text not in answer.content.decode()
    assert stored_key(machine).exposed_at is not None
    assert Entry.objects.filter(action="api.key_exposed").count() == 1
    assert not Setting.objects.exclude(name="api_public_enabled").exists()
    assert not Entry.objects.filter(action="api.request").exists()


@pytest.mark.parametrize(
    ("media", "body", "code"),
    [
        ("application/x-www-form-urlencoded", "name=a&key={}", "unsupported_media_type"),
        ("text/plain", "{}", "unsupported_media_type"),
        ("application/json", '{"name": "{}", }', "invalid_json"),
        ("application/json", '["{}"]', "invalid_json"),
    ],
)
def test_a_key_in_a_body_that_is_refused_unread_is_marked(machine: Machine, media: str, body: str, code: str) -> None:
    """G10: a form field is no JSON, and the key is out all the same."""
    answer = machine.client.post(
        "/api/v1/tools/probe.store",
        body.replace("{}", machine.text or ""),
        content_type=media,
        headers=machine.headers(),
    )
    assert answer.json()["code"] == code
    assert stored_key(machine).exposed_at is not None


def test_no_key_reaches_the_log(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.text is not None
    shown = io.StringIO()
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, structlog.stdlib.ProcessorFormatter):
            monkeypatch.setattr(handler, "stream", shown)
    for url in URLS.values():
        machine.call(url(machine.text))
    machine.client.get(f"/api/v1/nothing/{machine.text}")
    machine.client.get(f"/nothing/{machine.text}?x={quote(machine.text)}")
    machine.call("probe.store", {"name": "broken"})
    assert "call_failed" in shown.getvalue()
    assert "/nothing/" in shown.getvalue()
    assert machine.text[21:] not in shown.getvalue()


# --- KY-6: addresses and networks -----------------------------------------------------------------------------------------------------

CHAIN = "203.0.113.1, 203.0.113.2, 203.0.113.3"
ADDRESSES: list[tuple[int, str, str | None, str]] = [
    (0, "192.0.2.1", None, "192.0.2.1"),
    (0, "192.0.2.1", "203.0.113.9", "192.0.2.1"),
    (0, "::ffff:192.0.2.1", None, "192.0.2.1"),
    (0, "2001:DB8:0:0::1", None, "2001:db8::1"),
    (0, "fe80::1%eth0", None, "fe80::1"),
    (0, "", None, ""),
    (0, "not an address", None, ""),
    (1, "192.0.2.1", CHAIN, "203.0.113.3"),
    (2, "192.0.2.1", CHAIN, "203.0.113.2"),
    (3, "192.0.2.1", CHAIN, "203.0.113.1"),
    (4, "192.0.2.1", CHAIN, "192.0.2.1"),
    (1, "192.0.2.1", None, "192.0.2.1"),
    (1, "192.0.2.1", "", "192.0.2.1"),
    (1, "192.0.2.1", "10.0.0.1, unknown", "192.0.2.1"),
    (1, "192.0.2.1", "spoofed, 203.0.113.3", "203.0.113.3"),
    (2, "192.0.2.1", "spoofed, 203.0.113.3", "192.0.2.1"),
    (1, "192.0.2.1", "203.0.113.3,", "192.0.2.1"),
    (1, "192.0.2.1", "203.0.113.3:4711", "192.0.2.1"),
    (1, "192.0.2.1", "[2001:db8::2]", "192.0.2.1"),
    (1, "192.0.2.1", " 2001:db8::2 ", "2001:db8::2"),
    (1, "192.0.2.1", "::ffff:203.0.113.3", "203.0.113.3"),
    (1, "", "203.0.113.3", "203.0.113.3"),
]


@pytest.mark.parametrize(("hops", "remote", "forwarded", "expected"), ADDRESSES)
def test_the_callers_address(settings: Any, hops: int, remote: str, forwarded: str | None, expected: str) -> None:
    settings.TRUSTED_PROXY_HOPS = hops
    meta = {"REMOTE_ADDR": remote} | ({} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded})
    assert addresses.caller(meta) == expected


@pytest.mark.parametrize(
    ("ip", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("", "unknown"),
    ],
)
def test_the_network_of_an_address(ip: str, network: str) -> None:
    assert addresses.network(ip) == network


@pytest.mark.parametrize(
    ("hops", "remote", "forwarded", "status"),
    [
        (0, "192.0.2.77", None, 200),
        (0, "::ffff:192.0.2.77", None, 200),
        (0, "2001:db8:ffff::1", None, 200),
        (0, "198.51.100.1", None, 401),
        (0, "198.51.100.1", "192.0.2.77", 401),
        (0, "192.0.3.1", None, 401),
        (0, "", None, 401),
        (1, "198.51.100.1", "192.0.2.77", 200),
        (1, "198.51.100.1", "192.0.2.77, 203.0.113.1", 401),
        (1, "192.0.2.77", "203.0.113.1", 401),
        (2, "198.51.100.1", "192.0.2.77, 203.0.113.1", 200),
        (2, "198.51.100.1", "192.0.2.77", 401),
    ],
)
def test_a_key_answers_in_its_networks_alone(
    machine: Machine, settings: Any, hops: int, remote: str, forwarded: str | None, status: int
) -> None:
    settings.TRUSTED_PROXY_HOPS = hops
    update(machine, networks=["192.0.2.0/24", "2001:db8::/32"])
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    assert machine.call("probe.echo", headers=headers, REMOTE_ADDR=remote).status_code == status


def test_a_visitor_pays_for_the_address_that_the_proxy_saw(visitor: Machine, settings: Any) -> None:
    settings.TRUSTED_PROXY_HOPS = 1
    factories.set_setting("api_network_budget", 1)
    first, second = fresh_address(), fresh_address()
    for spoofed in ("10.0.0.1", "10.0.0.2"):
        headers = {"X-Forwarded-For": f"{spoofed}, {first}"}
        last = visitor.call("probe.look", headers=headers)
    assert last.status_code == 429
    assert visitor.call("probe.look", headers={"X-Forwarded-For": second}).status_code == 200


def test_the_settings_of_the_suite_are_as_these_tests_read_them() -> None:
    assert (list(settings.API_KEY_PEPPERS), settings.TRUSTED_PROXY_HOPS, settings.DEBUG) == (["test"], 0, False)


# --- A URL outside the flow -------------------------------------------------------------------------------------------------------------


def test_a_key_in_a_url_without_a_tool_is_refused_and_marked(machine: Machine) -> None:
    for path in ("/api/v1/tools/probe.echo", "/api/v1/nothing"):
        answer = machine.client.get(f"{path}?anything={machine.text}")
        assert (answer.status_code, answer.json()["code"]) == (400, "credential_in_url")
    assert machine.client.get("/api/v1/nothing?Token=1").json()["code"] == "credential_in_url"
    assert machine.key is not None
    machine.key.refresh_from_db()
    assert machine.key.exposed_at is not None


def test_a_key_as_request_id_or_idempotency_key_is_stored_nowhere(machine: Machine) -> None:
    answer = machine.call("probe.store", {"name": "a"}, headers={"X-Request-ID": str(machine.text)})
    assert machine.text not in answer.headers["X-Request-ID"]
    answer = machine.call("probe.store", {"name": "b"}, headers={"Idempotency-Key": str(machine.text)})
    assert (answer.status_code, answer.json()["code"]) == (400, "credential_in_body")


def test_another_scheme_with_a_comma_is_just_no_key(machine: Machine) -> None:
    answer = machine.client.get("/api/v1/tools", headers={"Authorization": 'Digest a="b", c="d"'})
    assert answer.status_code == 401
