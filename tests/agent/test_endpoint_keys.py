"""The keys of endpoints at rest: sealed, for one address alone, rotated, and a typed failure where they can't be opened."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.agent import endpoint_keys, endpoints, sealing
from apps.agent.models import ModelEndpoint
from apps.agent.providers.protocol import Failure
from tests.agent import endpoints as rows
from tests.agent.providers import LOOPBACK, WIRES
from tests.agent.wire.script import Finish, Say

KEY = "sk-canary-of-an-endpoint-0123456789"

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def make_endpoint(*, key: str = KEY, **fields: Any) -> ModelEndpoint:
    return rows.make_endpoint(key=key, **{"name": "main", **fields})


def refused(row: ModelEndpoint) -> str:
    with pytest.raises(Failure) as caught:
        endpoint_keys.take(row)
    assert KEY not in str(caught.value)
    return caught.value.code


def test_a_key_is_stored_sealed_and_comes_out_as_it_was() -> None:
    row = ModelEndpoint.objects.get(pk=make_endpoint().pk)
    assert KEY not in str(vars(row))
    assert endpoint_keys.take(row) == KEY


def test_the_same_key_is_never_sealed_to_the_same_text() -> None:
    assert sealing.seal(KEY, about="a") != sealing.seal(KEY, about="a")


def test_an_endpoint_without_a_key_has_none() -> None:
    assert endpoint_keys.take(make_endpoint(key="")) == ""


@pytest.mark.parametrize("change", [{"base_url": "https://elsewhere.example.org"}, {"provider": "anthropic"}])
def test_a_key_does_not_open_for_another_address(change: dict[str, str]) -> None:
    row = make_endpoint()
    ModelEndpoint.objects.filter(pk=row.pk).update(**change)
    row.refresh_from_db()
    assert refused(row) == "key_unreadable"


def test_a_key_does_not_open_in_another_row() -> None:
    stolen = make_endpoint().key_encrypted
    other = make_endpoint(name="other", is_default=False, key="")
    other.key_encrypted = stolen
    assert refused(other) == "key_unreadable"


@pytest.mark.parametrize("text", ["", "test.", "test.AAAA", "test.!!!!", "nobody.AAAA", "AAAA", "test.é"])
def test_what_was_never_sealed_does_not_open(text: str) -> None:
    with pytest.raises(sealing.Unopened):
        sealing.open_(text, about="a")


def test_a_changed_byte_does_not_open() -> None:
    sealed = sealing.seal(KEY, about="a")
    changed = sealed[:20] + ("A" if sealed[20] != "A" else "B") + sealed[21:]
    with pytest.raises(sealing.Unopened):
        sealing.open_(changed, about="a")


def test_an_older_secret_still_opens_and_the_command_seals_under_the_current_one(settings: Any) -> None:
    row = make_endpoint()
    settings.MODEL_KEY_SECRETS = {"new": "a-newer-secret-of-the-suite", **settings.MODEL_KEY_SECRETS}
    assert endpoint_keys.take(row) == KEY
    out = StringIO()
    call_command("rotate_model_keys", stdout=out)
    settings.MODEL_KEY_SECRETS = {"new": "a-newer-secret-of-the-suite"}
    row.refresh_from_db()
    assert (endpoint_keys.take(row), out.getvalue()) == (KEY, "1 sealed again, 0 were already.\n")


def test_a_key_whose_secret_is_gone_is_a_typed_failure_and_named_by_the_command(settings: Any) -> None:
    row = make_endpoint()
    settings.MODEL_KEY_SECRETS = {"new": "a-newer-secret-of-the-suite"}
    assert refused(row) == "key_unreadable"
    with pytest.raises(CommandError, match="main"):
        call_command("rotate_model_keys", stdout=StringIO())


@pytest.mark.parametrize("key", ["", " ", "a b", "a\nb", "é", "a" * 501])
def test_what_no_header_can_carry_is_no_key(key: str) -> None:
    assert not sealing.is_plain(key)


def test_the_default_endpoint_answers_with_its_key_and_limits(settings: Any) -> None:
    settings.MODEL_NETWORKS = LOOPBACK
    with WIRES["openai"]([Say("Yes."), Finish()], key=KEY) as wire:
        row = make_endpoint(base_url=wire.url, context_chars=9_000, max_output_tokens=55)
        chosen = endpoints.choose("1")
        assert (chosen.endpoint_uuid, chosen.context_chars, chosen.max_output_tokens) == (row.pk, 9_000, 55)
        assert (chosen.is_demo, chosen.model.provider, chosen.model.model) == (False, "openai", "wire-1")


@pytest.mark.parametrize(
    ("change", "code"),
    [({"base_url": "https://10.0.0.1/v1"}, "endpoint_forbidden"), ({"key_encrypted": "x.AAAA"}, "key_unreadable")],
)
def test_an_endpoint_that_may_not_be_called_is_a_typed_failure(change: dict[str, str], code: str) -> None:
    row = make_endpoint(key="")
    ModelEndpoint.objects.filter(pk=row.pk).update(**change)
    with pytest.raises(Failure) as caught:
        endpoints.choose("1")
    assert caught.value.code == code


def test_without_an_enabled_default_endpoint_the_demo_answers() -> None:
    make_endpoint(is_enabled=False)
    assert endpoints.choose("1").is_demo
