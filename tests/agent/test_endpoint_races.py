"""Two operators at the same endpoint, or at the same place of default, and a rotation beside somebody who changes a key."""

from typing import Any

import pytest
from django.db import IntegrityError

from apps.activity.models import Entry
from apps.agent import endpoint_keys, endpoint_store
from apps.agent.models import ModelEndpoint
from tests.agent.endpoints import make_endpoint
from tests.api import factories
from tests.api.together import at_once

pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]

NEW = "sk-the-newer-key-0123456789"


def become_default(row: ModelEndpoint) -> bool:
    row.is_default = True
    return endpoint_store.change(row, ["is_default"], key=None, actor=factories.SYSTEM)


def create(name: str) -> str:
    row = ModelEndpoint(name=name, provider="openai", model="wire-1", is_default=True)
    try:
        endpoint_store.create(row, key="", actor=factories.SYSTEM)
    except IntegrityError:
        return "refused"
    return "made"


def defaults() -> int:
    return ModelEndpoint.objects.filter(is_default=True).count()


def test_of_many_who_make_theirs_the_default_one_is_last_and_nobody_fails() -> None:
    rows = [make_endpoint(name=f"endpoint {number}", is_default=False) for number in range(6)]
    assert at_once(*(lambda row=row: become_default(row) for row in rows)) == [True] * 6
    assert defaults() == 1
    assert Entry.objects.filter(action="agent.endpoint_changed").count() == 6


def test_of_many_first_endpoints_some_are_made_and_one_is_the_default() -> None:
    found = at_once(*(lambda number=number: create(f"endpoint {number}") for number in range(6)))
    assert defaults() == 1
    assert found.count("made") == ModelEndpoint.objects.count() == Entry.objects.filter(module="agent").count()


def test_a_rotation_never_brings_an_older_key_back(settings: Any) -> None:
    settings.MODEL_KEY_SECRETS = {"new": "a-newer-secret-of-the-suite", **settings.MODEL_KEY_SECRETS}
    row = make_endpoint()

    def change() -> None:
        endpoint_store.change(ModelEndpoint.objects.get(pk=row.pk), [], key=NEW, actor=factories.SYSTEM)

    for _ in range(10):
        ModelEndpoint.objects.filter(pk=row.pk).update(key_encrypted=row.key_encrypted)
        at_once(endpoint_keys.rotate, change)
        assert endpoint_keys.take(ModelEndpoint.objects.get(pk=row.pk)) == NEW
