"""The checks of the activity app, each with its fault planted."""

from typing import Any

import pytest

from apps.activity import checks

pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize("keys", [None, {}, "text", {"a": "short"}, {"": "x" * 16}, {"a" * 17: "x" * 16}])
def test_a_mac_key_that_can_not_be_used_is_named(settings: Any, keys: Any) -> None:
    settings.ACTIVITY_MAC_KEYS = keys

    assert [found.id for found in checks.mac_keys()] == ["activity.E001"]


def test_usable_mac_keys_pass() -> None:
    assert checks.mac_keys() == []
