"""The demo: who and what it makes, and what a second run renews and leaves alone."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import LiveSession, User
from apps.api.models import ApiKey, Setting
from apps.catalogue.models import Product
from config import demo
from tests.accounts.factories import make_live_session, make_user
from tests.api.factories import Machine

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

ROLES = ["operator", "approver", "member"]


@pytest.fixture(autouse=True)
def _debug_and_cheap_hashes(settings: Settings) -> None:
    settings.DEBUG = True
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # who may sign in is tested, not how slowly


def seed(*options: str) -> str:
    """What `seed_demo` prints."""
    out = StringIO()
    call_command("seed_demo", *options, stdout=out)
    return out.getvalue()


def _person(role: str) -> User:
    return User.objects.get(email=f"{role}@example.org")


def test_the_json_names_three_people_and_three_keys() -> None:
    report = json.loads(seed("--json"))
    assert {name: set(login) for name, login in report["people"].items()} == {
        role: {"email", "password"} for role in ROLES
    }
    assert [login["email"] for login in report["people"].values()] == [f"{role}@example.org" for role in ROLES]
    assert list(report["keys"]) == ["reader", "writer", "approval"]


def test_people_may_sign_in_with_what_is_printed() -> None:
    for login in demo.renew()["people"].values():
        assert Client().login(username=login["email"], password=login["password"])
        assert User.objects.get(email=login["email"]).email_confirmed_at is not None


def test_the_operator_is_superuser_and_owns_and_made_the_keys() -> None:
    demo.renew()
    operator = _person("operator")
    assert operator.is_superuser
    assert operator.is_staff
    assert set(ApiKey.objects.values_list("owner", "created_by")) == {(operator.pk, operator.pk)}


def test_keys_have_the_scopes_of_their_names() -> None:
    made = demo.renew()["keys"]
    read, both = ["catalogue:read"], ["catalogue:read", "catalogue:write"]
    assert {
        name: (row.scopes, row.requires_approval)
        for name, text in made.items()
        for row in ApiKey.objects.filter(public_id=text.split("_")[2])
    } == {"reader": (read, False), "writer": (both, False), "approval": (both, True)}


def test_roles_have_the_permissions_of_their_work() -> None:
    demo.renew()
    assert _person("approver").get_all_permissions() == {
        f"catalogue.{codename}"
        for codename in Permission.objects.filter(content_type__app_label="catalogue").values_list(
            "codename", flat=True
        )
    } | {"api.decide_approval"}
    assert _person("member").get_all_permissions() == {
        "catalogue.view_product",
        "agent.use_assistant",
        "catalogue.change_product",
        "catalogue.add_product",
        "catalogue.delete_product",
    }
    assert list(_person("member").groups.values_list("name", flat=True)) == ["Staff"]


def test_the_public_audience_is_on_the_agent_may_act_and_the_shop_is_full() -> None:
    demo.renew()
    assert Setting.objects.get(name="api_public_enabled").value is True
    assert Setting.objects.get(name="api_session_write_modules").value == ["catalogue"]
    assert Product.objects.count() == 504


def test_a_second_run_renews_passwords_and_keys_and_nothing_else() -> None:
    first = demo.renew()
    Product.objects.filter(sku="LMP-0001").update(stock=7_777)
    Product.objects.filter(sku="LMP-0002").delete()
    second = demo.renew()
    operator = _person("operator")
    assert operator.check_password(second["people"]["operator"]["password"])
    assert not operator.check_password(first["people"]["operator"]["password"])
    assert ApiKey.objects.filter(revoked_at=None).count() == 3
    assert ApiKey.objects.exclude(revoked_at=None).count() == 3
    assert (User.objects.count(), Product.objects.count()) == (3, 503)
    assert Product.objects.get(sku="LMP-0001").stock == 7_777


def test_a_second_run_leaves_other_keys_of_the_operator_alive() -> None:
    demo.renew()
    ApiKey.objects.filter(name="Demo reader").update(name="My own")
    demo.renew()
    assert ApiKey.objects.filter(name="My own", revoked_at=None).exists()


def test_new_passwords_end_the_sessions_of_the_old() -> None:
    demo.renew()
    make_live_session(_person("member"))
    demo.renew()
    assert not LiveSession.objects.filter(ended_at=None).exists()


def test_what_was_granted_later_is_not_taken_back() -> None:
    demo.renew()
    later = Permission.objects.get(codename="view_category")
    group = _person("member").groups.get()
    group.permissions.add(later)
    demo.renew()
    assert later in group.permissions.all()


def test_only_a_database_without_people_is_filled_at_the_start() -> None:
    report = demo.fill_when_empty()
    assert report is not None
    assert demo.fill_when_empty() is None
    assert _person("operator").check_password(report["people"]["operator"]["password"])


def test_a_database_with_a_person_stays_as_it_is() -> None:
    make_user()
    assert demo.fill_when_empty() is None
    assert not Product.objects.exists()


def test_passwords_differ_and_hold_nothing_that_looks_alike() -> None:
    made = {login["password"] for _ in range(3) for login in demo.renew()["people"].values()}
    assert len(made) == 9
    assert not set("".join(made)) & set("01iolIO")


def test_the_printed_text_shows_everything_once() -> None:
    text = seed()
    assert text.count("@example.org") == 3
    assert text.count("th_test_") == 3


def test_without_debug_nothing_is_seeded(settings: Settings) -> None:
    settings.DEBUG = False
    with pytest.raises(CommandError, match="debug only"):
        seed()
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_keys_call_the_catalogue() -> None:
    made: dict[str, Any] = demo.renew()["keys"]
    reader, writer = Machine(text=made["reader"]), Machine(text=made["writer"])
    price = str(Product.objects.get(sku="LMP-0001").price + 1)
    change = {"changes": [{"sku": "LMP-0001", "price": price}]}
    assert reader.call("catalogue.list_products", {"query": "lamp"}).json()["count"] >= 42
    assert reader.call("catalogue.update_prices", change).status_code == 403
    assert writer.call("catalogue.update_prices", change).json()["updated"] == 1
    assert Machine().call("catalogue.show_product", {"sku": "LMP-0001"}).json()["price"] == price


def test_demo_keys_never_expire() -> None:
    demo.renew()
    assert not ApiKey.objects.filter(expires_at__lt=timezone.now() + timedelta(days=3_650)).exists()
