"""The libraries of the makers of models are for workers: a web process has none of them (SP-5)."""

import os
import subprocess
import sys

import pytest

HEAVY = "pydantic_ai", "openai", "anthropic", "httpx2", "genai_prices"

WEB = """
import sys
import config.asgi, config.wsgi
from django.contrib.auth import get_user_model
from django.test import Client

person = get_user_model()._default_manager.create_superuser("operator@example.org", None)
browser = Client()
browser.force_login(person)
for page in ("modelendpoint/", "modelendpoint/add/", "modelcall/", "agentsetting/", "agentsetting/people/"):
    assert browser.get(f"/admin/agent/{page}").status_code == 200, page
assert browser.get("/api/agent/conversations").status_code == 200
print([name for name in %r if name in sys.modules])
"""

WORKER = """
import config.startup
config.startup.prepare()
import sys
from apps.agent import endpoints
from apps.agent.models import ModelEndpoint
endpoints.of(ModelEndpoint(name="main", provider="anthropic", model="claude-sonnet-4-5"))
print([name for name in %r if name in sys.modules])
"""


def run(program: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program % (HEAVY,)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.django_db(transaction=True)
def test_a_web_process_that_served_the_assistants_pages_has_imported_none_of_them(
    process_environment: dict[str, str],
) -> None:
    assert run(WEB, process_environment) == "[]"


def test_a_worker_imports_the_library_of_the_maker_that_answers_and_not_the_others() -> None:
    found = run(WORKER, dict(os.environ))
    assert found == "['pydantic_ai', 'anthropic', 'httpx2', 'genai_prices']"
