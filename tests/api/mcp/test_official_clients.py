"""The official clients, old and new, Python's and TypeScript's, over a real socket (MC-5; M7, M10, M12)."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from apps.api import deciding, runs
from apps.api.deciding import Decision
from apps.api.models import Approval
from apps.catalogue.models import Product
from tests.api import factories
from tests.api.factories import Machine
from tests.api.mcp import tour
from tests.api.mcp.live import WAYS, Session
from tests.api.person import make_person
from tests.catalogue.factories import make_product
from tests.services import Program

SCOPES = ["catalogue:read", "catalogue:write"]


@pytest.fixture
def program(postgres_url: str, start_program: Callable[..., Program]) -> Program:
    return start_program("uvicorn")


def connect(program: Program, machine: Machine, how: str) -> Session:
    return Session(f"{program.url}/mcp", machine.text, how)


@pytest.mark.parametrize("server", ["uvicorn", "granian"])
def test_official_clients_list_read_confirm_replay_and_survive_refusals(
    server: str, postgres_url: str, start_program: Callable[..., Program], subtests: pytest.Subtests
) -> None:
    program = start_program(server)
    for how in WAYS:
        with subtests.test(how), connect(program, factories.make_machine(scopes=SCOPES), how) as session:
            tour.take(session)


def test_official_clients_get_a_pending_approval_at_once_and_its_result_later(
    program: Program, subtests: pytest.Subtests, settings: Any
) -> None:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    approver = make_person(permissions=["catalogue.delete_product", deciding.PERMISSION])
    for how in WAYS:
        machine = factories.make_machine(scopes=SCOPES, requires_approval=True)
        product = make_product()
        with subtests.test(how), connect(program, machine, how) as session:
            asked = session.content("catalogue_delete_products", skus=[product.sku])
            assert asked["status"] == "pending_approval"
            assert asked["url"].endswith(f"/approvals/{asked['approval_id']}/")
            assert status(session, asked) == "pending"
            assert Product.objects.filter(pk=product.pk).exists()

            approve(UUID(asked["approval_id"]), approver)
            found = session.content("system_get_approval", approval_id=asked["approval_id"])
            assert (found["status"], found["result"]) == ("done", {"deleted": 1, "skus": [product.sku]})
            assert not Product.objects.filter(pk=product.pk).exists()


def test_official_clients_survive_a_spent_budget(program: Program, subtests: pytest.Subtests) -> None:
    for how in WAYS:
        machine = factories.make_machine(scopes=SCOPES, budget=20)
        assert machine.key is not None
        with subtests.test(how), connect(program, machine, how) as session:
            results = [session.call("system_whoami").get("isError", False) for _ in range(21)]
            assert results[:10] == [False] * 10
            assert session.problem("system_whoami")["code"] == "rate_limited"
            machine.key.budget = 600
            machine.key.save(update_fields=["budget"])
            assert session.content("system_whoami")["key"]["name"] == "machine"


def test_official_clients_are_told_of_a_wrong_key(program: Program, subtests: pytest.Subtests) -> None:
    wrong = Machine(text=f"th_live_{'0' * 12}_{'0' * 38}")
    for how in WAYS:
        with subtests.test(how), connect(program, wrong, how) as session:
            told = session.told if "raised" in session.told else session.ask(list=True)
            assert "401" in told["raised"]


def status(session: Session, asked: dict[str, Any]) -> str:
    return str(session.content("system_get_approval", approval_id=asked["approval_id"])["status"])


def approve(uuid: UUID, approver: Any) -> None:
    """A person says yes on the page, and a worker runs it."""
    version = Approval.objects.get(pk=uuid).preview_version
    deciding.decide(approver.ref, uuid, Decision(approve=True, version=version), impersonated=False)
    runs.run(uuid)
