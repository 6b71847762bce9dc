"""The one function that writes settings: boxes of two operators both count, and nothing of theirs is overwritten."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections
from hypothesis import given
from hypothesis import strategies as st

from apps.api import settings_store, switches
from apps.api.settings_store import Changed, Toggles
from tests.api import factories
from tests.api.settings_page import entries, stored

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]
AGENT = "api_session_write_modules"


def put(*names: str) -> Toggles:
    return Toggles(added=frozenset(names))


def take(*names: str) -> Toggles:
    return Toggles(removed=frozenset(names))


def save(wanted: dict[str, Any], seen: dict[str, Any] | None = None) -> settings_store.Saved:
    return settings_store.save(
        wanted, seen=settings_store.rows() if seen is None else seen, actor=factories.SYSTEM, request_id="the-request"
    )


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"api_key_budget": True}, switches.Unreadable),
        ({"api_key_budget": 0}, switches.Unreadable),
        ({AGENT: [1]}, switches.Unreadable),
        ({"api_key_budgets": 7}, KeyError),
    ],
)
def test_the_store_takes_no_value_that_the_gate_could_not_read(values: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        save({"maintenance_mode": True, **values})
    assert stored() == {}


def test_what_is_written_is_what_the_entry_says() -> None:
    factories.set_setting("api_disabled_tools", ["b.tool", "a.tool"])
    saved = save({"api_disabled_tools": Toggles(added=frozenset({"c.tool"}), removed=frozenset({"a.tool"}))})

    assert stored() == {"api_disabled_tools": ["b.tool", "c.tool"]}
    (entry,) = entries()
    changes = {"api_disabled_tools": {"old": ["b.tool", "a.tool"], "new": ["b.tool", "c.tool"]}}
    assert (entry.metadata, saved.changes, saved.entry) == ({"changes": changes}, changes, entry.pk)
    assert (entry.target, entry.request_id, entry.mode) == ("api_disabled_tools", "the-request", "manual")


def test_a_list_that_becomes_its_default_has_no_row() -> None:
    factories.set_setting(AGENT, ["shop"])
    save({AGENT: take("shop")})
    assert stored() == {}


def test_other_boxes_of_the_same_list_survive_an_edit_in_between() -> None:
    factories.set_setting(AGENT, ["shop", "mail"])
    seen = settings_store.rows()
    save({AGENT: Toggles(added=frozenset({"news"}), removed=frozenset({"mail"}))})
    save({AGENT: put("blog")}, seen)
    assert stored() == {AGENT: ["blog", "news", "shop"]}
    assert entries()[1].metadata["changes"][AGENT] == {"old": ["news", "shop"], "new": ["blog", "news", "shop"]}


@pytest.mark.parametrize(
    ("between", "wanted", "boxes"),
    [
        ({AGENT: put("shop")}, {AGENT: put("shop", "mail"), "api_key_budget": 50}, {AGENT: {"shop"}}),
        ({"disabled_modules": take("old")}, {"disabled_modules": take("old")}, {"disabled_modules": {"old"}}),
        ({"api_key_budget": 40}, {"api_key_budget": 50, AGENT: put("shop")}, {"api_key_budget": set()}),
        ({"maintenance_mode": True}, {"maintenance_mode": True}, {"maintenance_mode": set()}),
    ],
)
def test_an_edit_of_the_same_box_in_between_is_named_and_nothing_is_saved(
    between: dict[str, Any], wanted: dict[str, Any], boxes: dict[str, set[str]]
) -> None:
    factories.set_setting("disabled_modules", ["old"])
    seen = settings_store.rows()
    save(between)
    before = stored()
    with pytest.raises(Changed) as changed:
        save(wanted, seen)
    named = {name: set(members) for name, members in changed.value.boxes.items()}
    assert (named, stored(), len(entries())) == (boxes, before, 1)


def test_a_box_that_somebody_turned_there_and_back_is_as_it_was_seen() -> None:
    seen = settings_store.rows()
    save({AGENT: put("shop")})
    save({AGENT: take("shop")})
    save({AGENT: put("shop")}, seen)
    assert stored() == {AGENT: ["shop"]}


@pytest.mark.parametrize("odd", ["odd", [1], {"shop": True}])
def test_boxes_are_not_put_on_a_list_that_became_unreadable(odd: Any) -> None:
    seen = settings_store.rows()
    factories.set_setting(AGENT, odd)
    with pytest.raises(Changed):
        save({AGENT: put("shop")}, seen)
    with pytest.raises(Changed):
        save({AGENT: put("shop")})
    assert stored() == {AGENT: odd}


def test_a_row_equal_to_the_default_is_as_good_as_none() -> None:
    factories.set_setting("api_key_budget", 600)
    save({"api_key_budget": 50}, {})
    assert stored() == {"api_key_budget": 50}


def test_what_is_so_already_leaves_no_entry() -> None:
    factories.set_setting("api_key_budget", 50)
    assert save({"api_key_budget": 50, AGENT: take("shop")}).entry is None
    assert entries() == []


names = st.frozensets(st.sampled_from("abcde"))


@given(seen=names, first=names, second=names)
def test_two_operators_get_all_their_boxes_or_the_second_hears_which_are_not_free(
    seen: frozenset[str], first: frozenset[str], second: frozenset[str]
) -> None:
    """Whatever was on the list, and whichever boxes each of them turns."""
    rows = {AGENT: sorted(seen)}
    then = settings_store.applied(settings_store.plan({AGENT: _turned(seen, first)}, seen=rows, found=rows), rows)
    wanted = {AGENT: _turned(seen, second)}
    if first & second:
        with pytest.raises(Changed) as changed:
            settings_store.plan(wanted, seen=rows, found=then)
        assert changed.value.boxes == {AGENT: first & second}
    else:
        after = settings_store.applied(settings_store.plan(wanted, seen=rows, found=then), then)
        assert set(after[AGENT]) == seen ^ first ^ second


def _turned(seen: frozenset[str], boxes: frozenset[str]) -> Toggles:
    return Toggles(added=boxes - seen, removed=boxes & seen)


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What came of it in threads with connections of their own, which begin at the same moment."""
    barrier, outcomes = threading.Barrier(count), list[Any]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            outcomes.append(list(work(number).changes))
        except Changed as changed:
            outcomes.append(str(changed))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize("before", [None, 50])
@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_parallel_changes_of_a_number_one_counts(before: int | None) -> None:
    if before is not None:
        factories.set_setting("api_key_budget", before)
    seen = settings_store.rows()

    outcomes = together(8, lambda number: save({"api_key_budget": 100 + number}, seen))

    assert sorted(map(json.dumps, outcomes)) == ['"api_key_budget"'] * 7 + ['["api_key_budget"]']
    assert entries()[0].metadata["changes"]["api_key_budget"]["new"] == stored()["api_key_budget"]
    assert len(entries()) == 1


@pytest.mark.parametrize("before", [None, ["there"]])
@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_parallel_changes_of_different_boxes_of_one_list_all_count(before: list[str] | None) -> None:
    if before is not None:
        factories.set_setting(AGENT, before)
    seen = settings_store.rows()

    outcomes = together(8, lambda number: save({AGENT: put(f"m{number}"), "disabled_modules": put(f"m{number}")}, seen))

    names = [f"m{number}" for number in range(8)]
    assert outcomes == [[AGENT, "disabled_modules"]] * 8
    assert stored() == {AGENT: names + (before or []), "disabled_modules": names}
    steps = [entry.metadata["changes"][AGENT] for entry in entries()]
    assert sorted(len(step["new"]) - len(step["old"]) for step in steps) == [1] * 8, "each entry tells its own change"


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_parallel_changes_that_make_and_remove_the_row_all_count() -> None:
    """A row that is made, found, and removed while others wait for it."""
    for _ in range(5):
        factories.set_setting(AGENT, ["m0", "m1", "m2", "m3"])
        seen = settings_store.rows()
        outcomes = together(8, lambda number: save({AGENT: (take if number < 4 else put)(f"m{number}")}, seen))  # noqa: B023 - used within
        assert outcomes == [[AGENT]] * 8
        assert stored() == {AGENT: ["m4", "m5", "m6", "m7"]}


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_parallel_changes_of_one_box_one_counts_and_the_others_hear_of_it() -> None:
    seen = settings_store.rows()
    outcomes = together(8, lambda number: save({AGENT: put("shop", f"m{number}")}, seen))
    assert sorted(map(json.dumps, outcomes)) == [f'"{AGENT}"'] * 7 + [f'["{AGENT}"]']
    assert (len(stored()[AGENT]), len(entries())) == (2, 1)
