"""What axe-core finds on a page: rules of WCAG that a program can look after."""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import Page

from tests import npm


def violations(page: Page, *, within: str, but: str = "", rules: Sequence[str] = ()) -> list[str]:
    """The serious and critical ones inside `within`, without the part `but`; `rules` names those to try, all by default.

    Skips where axe can't be had, and fails in CI. The page's policy must be bypassed for it.
    """
    try:
        script = npm.installed("axe") / "axe-core" / "axe.min.js"
    except npm.Missing as reason:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"needs axe: {reason}")
    page.evaluate(script.read_text())
    context = {"include": [within], **({"exclude": [but]} if but else {})}
    options: dict[str, Any] = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found = page.evaluate("([context, options]) => axe.run(context, options)", [context, options])
    return [
        f"{rule['id']}: {node['html'][:120]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
