"""The endpoints of models in the admin site: keys go in and never come out, every change has its entry, and the test asks for real."""

import html
from typing import Any

import pytest
from django.test import Client

from apps.activity.models import Entry
from apps.agent import endpoint_keys, trials
from apps.agent.admin.endpoints import ModelEndpointAdmin
from apps.agent.models import ModelCall, ModelEndpoint
from tests.agent.providers import BOTH, LOOPBACK, WIRES
from tests.agent.test_endpoint_keys import KEY, make_endpoint
from tests.agent.wire import openai
from tests.agent.wire.script import Finish, Refuse, Say, Silence
from tests.api import factories

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

LIST = "/admin/agent/modelendpoint/"
RIGHTS = [f"agent.{verb}_modelendpoint" for verb in ("view", "add", "change", "delete")]


def person(client: Client, *permissions: str) -> Client:
    client.force_login(factories.make_owner(is_staff=True, permissions=permissions))
    return client


@pytest.fixture
def operator(client: Client) -> Client:
    return person(client, *RIGHTS)


def page(row: ModelEndpoint, view: str = "change") -> str:
    return f"{LIST}{row.pk}/{view}/"


def sent(**fields: Any) -> dict[str, Any]:
    return {
        "name": "main", "provider": "openai", "model": "gpt-5-mini", "base_url": "", "key": "", "is_default": "on",
        "is_enabled": "on", "context_chars": "", "max_output_tokens": "4096", **fields,
    }  # fmt: skip


def errors(answer: Any) -> Any:
    assert answer.status_code == 200
    return answer.context["adminform"].form.errors


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def test_a_key_is_sealed_and_no_page_and_no_entry_shows_it(operator: Client) -> None:
    operator.post(f"{LIST}add/", sent(key=KEY))
    row = ModelEndpoint.objects.get()
    assert endpoint_keys.take(row) == KEY
    pages = [operator.get(address).content.decode() for address in (LIST, page(row), page(row, "delete"), "/admin/")]
    stored = [*pages, *(str(vars(entry)) for entry in Entry.objects.all())]
    assert not [text for text in stored if KEY in text or row.key_encrypted in text]
    assert "A key is stored" in pages[1]


def test_a_form_that_is_refused_does_not_show_the_key_again(operator: Client) -> None:
    answer = operator.post(f"{LIST}add/", sent(key=KEY, name=""))
    assert errors(answer).keys() == {"name"}
    assert KEY not in answer.content.decode()


def test_an_empty_key_leaves_the_stored_one_and_a_box_takes_it_away(operator: Client) -> None:
    row = make_endpoint()
    operator.post(page(row), sent(model="other"))
    row.refresh_from_db()
    assert (row.model, endpoint_keys.take(row)) == ("other", KEY)
    operator.post(page(row), sent(remove_key="on"))
    row.refresh_from_db()
    assert row.key_encrypted == ""


@pytest.mark.parametrize("change", [{"base_url": "https://elsewhere.example.org/v1"}, {"provider": "anthropic"}])
def test_another_address_asks_for_the_key_again(operator: Client, change: dict[str, str]) -> None:
    row = make_endpoint()
    assert errors(operator.post(page(row), sent(**change))).keys() == {"key"}
    operator.post(page(row), sent(key="sk-another-key-0123456789", **change))
    row.refresh_from_db()
    assert endpoint_keys.take(row) == "sk-another-key-0123456789"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/v1",
        "https://127.0.0.1/v1",
        "https://[::1]",
        "https://a:b@example.org",
        "ftp://example.org",
        "nonsense",
    ],
)
def test_an_address_that_may_not_be_called_is_refused(operator: Client, url: str) -> None:
    assert errors(operator.post(f"{LIST}add/", sent(base_url=url))).keys() == {"base_url"}


def test_a_host_of_the_operators_networks_may_be_typed(operator: Client, settings: Any) -> None:
    settings.MODEL_NETWORKS = LOOPBACK
    operator.post(f"{LIST}add/", sent(base_url="http://ollama:11434/v1/"))
    assert ModelEndpoint.objects.get().base_url == "http://ollama:11434/v1"


@pytest.mark.parametrize("key", ["two words", "schlüssel", "sk-\x00"])
def test_what_is_no_key_is_refused(operator: Client, key: str) -> None:
    assert errors(operator.post(f"{LIST}add/", sent(key=key))).keys() == {"key"}


@pytest.mark.parametrize(
    ("prices", "field"),
    [
        ({"input_price": "1"}, "output_price"),
        ({"output_price": "1"}, "input_price"),
        ({"cache_read_price": "1"}, "input_price"),
    ],
)
def test_prices_are_given_together_or_not_at_all(operator: Client, prices: dict[str, str], field: str) -> None:
    assert errors(operator.post(f"{LIST}add/", sent(**prices))).keys() == {field}


def test_the_first_one_is_the_default_and_another_one_takes_it_over(operator: Client) -> None:
    assert 'name="is_default" id="id_is_default" checked' in operator.get(f"{LIST}add/").content.decode()
    row = make_endpoint()
    operator.post(f"{LIST}add/", sent(name="second"))
    assert dict(ModelEndpoint.objects.values_list("name", "is_default")) == {"main": False, "second": True}
    operator.post(page(row), sent())
    assert dict(ModelEndpoint.objects.values_list("name", "is_default")) == {"main": True, "second": False}


def test_every_change_has_its_entry(operator: Client) -> None:
    operator.post(f"{LIST}add/", sent(key=KEY))
    row = ModelEndpoint.objects.get()
    operator.post(page(row), sent(model="other", key="sk-another-key-0123456789"))
    operator.post(page(row), sent(model="other"))  # changes nothing
    operator.post(page(row, "delete"), {"post": "yes"})
    entries = Entry.objects.filter(resource_type="model_endpoint").order_by("created_at")
    assert [entry.action.removeprefix("agent.endpoint_") for entry in entries] == ["created", "changed", "deleted"]
    assert entries[1].metadata == {"changes": {"model": {"old": "gpt-5-mini", "new": "other"}, "key": "set"}}
    assert {entry.resource_uuid for entry in entries} == {str(row.pk)}


def test_deleting_several_writes_an_entry_for_each_and_keeps_their_calls(operator: Client) -> None:
    rows = [make_endpoint(), make_endpoint(name="second", is_default=False)]
    chosen = {"action": "delete_selected", "_selected_action": [str(row.pk) for row in rows], "post": "yes"}
    operator.post(LIST, chosen)
    assert Entry.objects.filter(action="agent.endpoint_deleted").count() == 2
    assert not ModelEndpoint.objects.exists()


def test_a_change_of_an_endpoint_that_is_gone_is_told(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    row = make_endpoint()
    rows = ModelEndpointAdmin.get_object

    def gone_meanwhile(*arguments: Any, **options: Any) -> Any:
        found = rows(*arguments, **options)
        ModelEndpoint.objects.all().delete()  # the other operator, between the look and the write
        return found

    monkeypatch.setattr(ModelEndpointAdmin, "get_object", gone_meanwhile)
    answer = operator.post(page(row), sent(model="other"), follow=True)
    assert "Nothing was saved" in text_of(answer)
    assert not Entry.objects.filter(module="agent").exists()


def test_the_history_of_an_endpoint_is_in_the_activity_log(operator: Client) -> None:
    row = make_endpoint()
    assert operator.get(page(row, "history")).headers["Location"] == f"/admin/activity/entry/?q={row.pk}"


def test_who_may_only_look_sees_no_field_for_a_key_and_no_test(client: Client) -> None:
    person(client, "agent.view_modelendpoint")
    row = make_endpoint()
    text = client.get(page(row)).content.decode()
    assert 'name="key"' not in text
    assert "/test/" not in text
    assert client.post(page(row, "test")).status_code == 403


@pytest.mark.parametrize("permissions", [(), ("agent.view_modelendpoint", "agent.add_modelendpoint")])
def test_a_test_needs_the_right_to_change(client: Client, permissions: tuple[str, ...]) -> None:
    row = make_endpoint()
    assert person(client, *permissions).post(page(row, "test")).status_code == 403
    assert not ModelCall.objects.exists()


def test_a_test_is_no_address_to_visit(operator: Client) -> None:
    assert operator.get(page(make_endpoint(), "test")).status_code == 405
    assert operator.post(f"{LIST}00000000-0000-0000-0000-000000000000/test/").status_code == 404


@BOTH
def test_a_test_asks_for_real_and_tells_what_came(operator: Client, settings: Any, name: str) -> None:
    settings.MODEL_NETWORKS = LOOPBACK
    with WIRES[name]([Say("Hello <b>"), Finish(input_tokens=20, output_tokens=3)], key=KEY) as wire:
        row = make_endpoint(provider=name, base_url=wire.url, input_price="1", output_price="10")
        answer = operator.post(page(row, "test"), follow=True)
    assert "It answered “Hello <b>” in" in text_of(answer)
    assert "Hello &lt;b&gt;" in answer.content.decode()
    assert "20 tokens in, 3 out, $0.000050." in text_of(answer)
    call = ModelCall.objects.get()
    assert (call.code, call.input_tokens, call.output_tokens, call.endpoint_id) == ("", 20, 3, row.pk)
    assert Entry.objects.get(action="agent.endpoint_tested").metadata == {"outcome": "answered", "code": ""}


def test_a_test_that_fails_says_why_and_what_the_provider_said_but_never_the_key(
    operator: Client, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.MODEL_NETWORKS = LOOPBACK
    refusal = Refuse(401, openai.error(f"Incorrect API key provided: {KEY}.", code="invalid_api_key"))
    with WIRES["openai"]([refusal], key=KEY) as wire:
        row = make_endpoint(base_url=wire.url)
        text = text_of(operator.post(page(row, "test"), follow=True))
    assert "The provider does not take the key." in text
    assert "Incorrect API key provided: …." in text
    assert KEY not in text + caplog.text
    assert ModelCall.objects.get().code == "provider_unauthorized"


def test_a_test_of_an_inner_address_is_refused_in_words(operator: Client) -> None:
    with WIRES["openai"]([Finish()]) as wire:
        row = make_endpoint(base_url=f"https://localhost:{wire.port}/v1")
        text = text_of(operator.post(page(row, "test"), follow=True))
        assert wire.opened == 0
    assert "This address may not be called from here." in text


def test_a_test_of_a_key_that_cannot_be_opened_says_so(operator: Client) -> None:
    row = make_endpoint()
    ModelEndpoint.objects.filter(pk=row.pk).update(key_encrypted="gone.AAAA")
    assert "can't be opened" in text_of(operator.get(LIST))
    assert "Type the key again." in text_of(operator.post(page(row, "test"), follow=True))


def test_a_test_of_a_provider_that_hangs_is_given_up(
    operator: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MODEL_NETWORKS = LOOPBACK
    monkeypatch.setattr(trials, "SILENCE_SECONDS", 0.3)  # the bound itself, so that nobody waits for the whole of it
    with WIRES["openai"]([Silence()], key=KEY) as wire:
        row = make_endpoint(base_url=wire.url)
        text = text_of(operator.post(page(row, "test"), follow=True))
        assert wire.client_gone.wait(5)
    assert "The provider did not answer in time." in text


def test_a_test_that_itself_hangs_ends_in_time(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SECONDS", 0.05)  # as above
    row = make_endpoint()
    assert "The provider did not answer in time." in text_of(operator.post(page(row, "test"), follow=True))
    assert ModelCall.objects.get().code == "provider_timeout"


def test_more_tests_at_once_than_there_are_places_are_asked_to_wait(operator: Client) -> None:
    row = make_endpoint()
    for _ in range(trials.AT_ONCE):
        assert trials._places.acquire(blocking=False)
    try:
        assert "Other tests are running." in text_of(operator.post(page(row, "test"), follow=True))
    finally:
        for _ in range(trials.AT_ONCE):
            trials._places.release()
    assert not ModelCall.objects.exists()
