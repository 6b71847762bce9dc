"""What the pages of docs/ say of settings and failures is what the program does."""

from pathlib import Path
from typing import get_args

import pytest

from apps.agent import options
from apps.agent.admin import failure_words, settings_words
from apps.agent.providers.protocol import FailureCode

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


@pytest.mark.parametrize("name", options.RULES)
def test_every_option_stands_in_the_reference_with_its_bounds(name: str) -> None:
    line = next(
        line for line in (DOCS / "reference/settings.md").read_text().splitlines() if line.startswith(f"| `{name}` ")
    )
    bounds = options.RULES[name].bounds
    assert str(settings_words.VOCABULARY.words[name].label) in line
    assert bounds is None or f"| {bounds[0]:,}, {bounds[1]:,} |" in line


@pytest.mark.parametrize("code", get_args(FailureCode))
def test_every_failure_has_an_operators_words_and_is_explained(code: FailureCode) -> None:
    assert str(failure_words.TEXTS[code])
    assert code == "no_model" or f"| `{code}` |" in (DOCS / "how-to/connect-a-model.md").read_text()
