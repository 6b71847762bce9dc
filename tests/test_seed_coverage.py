"""`docs/seed-coverage.md` numbers every sentence of the seeds, each with the test that shows it or the reason why there is none."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests import seeds

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "seed-coverage.md"
FILES = {"A": "000_*.txt", "B": "004_*.txt"}
COPIED = 7

_HEADING = re.compile(r"^## Seed ([A-Z]): (\d+) sentences$", re.MULTILINE)
_ROW = re.compile(r"\| ([A-Z])-(\d+) \| (.*\S) \| (.*\S) \|")
_TEST = r"`tests/[\w/]+\.py(?:::\w+){1,2}(?:\[[^`]+\])?`"
_REASON = r"(?:not ours|not yet): \S.*[\w)`]"
_TESTS = rf"{_TEST}(?:, {_TEST})*"
_SHOWN = re.compile(rf"{_TESTS}(?:; {_REASON})?|{_REASON}")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table."""

    seed: str
    number: int
    says: str
    shown: str

    @property
    def name(self) -> str:
        return f"{self.seed}-{self.number}"

    @property
    def tests(self) -> list[str]:
        return [found.strip("`") for found in re.findall(_TEST, self.shown)]


def read(page: str) -> list[Row]:
    """The rows of all tables. Fails on a line of a table that is none."""
    found = []
    for line in page.splitlines():
        if not line.startswith("|") or line in ("| no. | what it says | shown by |", "| --- | --- | --- |"):
            continue
        match = _ROW.fullmatch(line)
        assert match, f"no row: {line[:80]}"
        seed, number, says, shown = match.groups()
        found.append(Row(seed=seed, number=int(number), says=says, shown=shown))
    return found


def counts(page: str) -> dict[str, int]:
    """How many sentences each seed has, as the page itself says."""
    return {seed: int(number) for seed, number in _HEADING.findall(page)}


TEXT = PAGE.read_text()
ROWS = read(TEXT)


# --- The page -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", counts(TEXT))
def test_every_number_stands_once_and_in_order(seed: str) -> None:
    assert faults_of_numbers([row for row in ROWS if row.seed == seed], counts(TEXT)[seed]) == []
    assert {row.seed for row in ROWS} == set(counts(TEXT))


def test_every_sentence_names_a_test_or_a_reason() -> None:
    assert [row.name for row in ROWS if not is_shown(row.shown)] == []


def test_every_named_test_is_there_and_runs() -> None:
    faults = {f"{row.name}: {test}": fault_of_test(test) for row in ROWS for test in row.tests}
    assert {test: fault for test, fault in faults.items() if fault} == {}


@pytest.mark.parametrize("seed", counts(TEXT))
def test_the_seed_has_as_many_sentences_as_the_page(seed: str) -> None:
    assert len(seeds.sentences(text_of(seed))) == counts(TEXT)[seed]


@pytest.mark.parametrize("seed", counts(TEXT))
def test_no_sentence_is_copied(seed: str) -> None:
    theirs = set(runs(text_of(seed)))
    assert {row.name: copied for row in ROWS if row.seed == seed and (copied := theirs & set(runs(row.says)))} == {}


def text_of(seed: str) -> str:
    """The seed's own text; skips where the folder of the seeds is not beside one of the folders above."""
    for above in ROOT.parents:
        for found in sorted((above / "shared" / "seeds").glob(FILES[seed])):
            return found.read_text()
    pytest.skip("the seeds are not at hand here")


def faults_of_numbers(rows: list[Row], count: int) -> list[int]:
    """The numbers that are missing, doubled or out of their order."""
    found, wanted = [row.number for row in rows], list(range(1, count + 1))
    if found == wanted:
        return []
    odd = [number for at, number in enumerate(found) if at >= count or number != wanted[at]]
    return sorted({*odd, *(set(wanted) - set(found))})


def is_shown(cell: str) -> bool:
    """Test ids, a reason, or both."""
    return _SHOWN.fullmatch(cell) is not None


def runs(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return zip(*(words[at:] for at in range(COPIED)), strict=False)


# --- A test's id ----------------------------------------------------------------------------------------------------------------------


def fault_of_test(test: str) -> str:
    """Why pytest would not run the test of this id, as far as the source tells; empty when it would."""
    path, *names = test.partition("[")[0].split("::")
    if not Path(path).name.startswith("test_") or not (ROOT / path).is_file():
        return "there is no such file of tests"
    return fault_in(source(ROOT / path), names)


@cache
def source(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def fault_in(module: ast.Module, names: list[str]) -> str:
    if is_skipped(module.body):
        return "its file is skipped"
    body = module.body
    for name in names:
        inner = [part for part in body if isinstance(part, _kinds(name)) and part.name == name]
        if not inner:
            return f"there is no {name}"
        body = inner[-1].body
        if is_skipped(body) or any(is_mark(mark) for mark in inner[-1].decorator_list):
            return f"{name} is skipped"
    return "" if names[-1].startswith("test_") else f"{names[-1]} is no test"


def _kinds(name: str) -> tuple[type[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef], ...]:
    """What pytest collects under such a name."""
    if name.startswith("test_"):
        return (ast.FunctionDef, ast.AsyncFunctionDef)
    return (ast.ClassDef,) if name.startswith("Test") else ()


def is_skipped(body: list[ast.stmt]) -> bool:
    """Whether these statements, but those under a condition, skip or expect a failure: `pytest.skip(…)`, `pytestmark = …skip…`."""
    return any(
        (isinstance(line, ast.Expr) and _names(line) & {"pytest.skip", "pytest.xfail"})
        or (isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "pytestmark" and is_mark(line.value))
        for line in body
    )


def is_mark(expression: ast.expr) -> bool:
    """Whether it holds a mark that keeps a test from running: skip, xfail, or a skipif whose condition is a constant."""
    if _names(expression) & {"pytest.mark.skip", "pytest.mark.xfail"}:
        return not _in_parameters(expression)
    calls = [part for part in ast.walk(expression) if isinstance(part, ast.Call)]
    return any(
        ast.unparse(call.func) == "pytest.mark.skipif" and bool(call.args) and isinstance(call.args[0], ast.Constant)
        for call in calls
    )


def _in_parameters(expression: ast.expr) -> bool:
    """A mark on single cases of a parametrized test leaves the others."""
    return isinstance(expression, ast.Call) and ast.unparse(expression.func) == "pytest.mark.parametrize"


def _names(node: ast.AST) -> set[str]:
    return {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)}


# --- The rules themselves -------------------------------------------------------------------------------------------------------------


def row(number: int) -> Row:
    return Row(seed="A", number=number, says="It is so.", shown="not ours: x")


@pytest.mark.parametrize(
    ("numbers", "faults"),
    [
        ([1, 2, 3], []),
        ([1, 3], [2, 3]),
        ([1, 2], [3]),
        ([1, 2, 2, 3], [2, 3]),
        ([2, 1, 3], [1, 2]),
        ([1, 2, 3, 4], [4]),
    ],
)
def test_a_number_that_is_missing_doubled_or_out_of_order_is_named(numbers: list[int], faults: list[int]) -> None:
    assert faults_of_numbers([row(number) for number in numbers], 3) == faults


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("`tests/api/test_call.py::test_x`", True),
        ("`tests/api/test_call.py::TestX::test_x`, `tests/api/test_call.py::test_y[a b]`", True),
        ("`tests/api/test_call.py::test_x`; not yet: approvals", True),
        ("not ours: it describes the other program", True),
        ("`tests/api/test_call.py::test_x` not yet: approvals", False),
        ("not ours:", False),
        ("not ours: .", False),
        ("later", False),
        ("tests/api/test_call.py::test_x", False),
        ("`tests/api/test_call.py`", False),
        ("", False),
    ],
)
def test_only_ids_and_reasons_show_a_sentence(cell: str, shown: bool) -> None:
    assert is_shown(cell) is shown


@pytest.mark.parametrize(
    ("text", "name", "fault"),
    [
        ("def test_x(): assert 1", "test_x", ""),
        ("async def test_x(): pass", "test_x", ""),
        ("class TestX:\n    def test_x(self): pass", "TestX::test_x", ""),
        ("@pytest.mark.skipif(here, reason='')\ndef test_x(): pass", "test_x", ""),
        ("def test_x():\n    if here: pytest.skip('')", "test_x", ""),
        (
            "@pytest.mark.parametrize('a', [1, pytest.param(2, marks=pytest.mark.skip)])\ndef test_x(a): pass",
            "test_x",
            "",
        ),
        ("def test_y(): pass", "test_x", "there is no test_x"),
        ("def make():\n    def test_x(): pass", "test_x", "there is no test_x"),
        ("def helper(): pass", "helper", "there is no helper"),
        ("class TestX:\n    pass", "TestX", "TestX is no test"),
        ("@pytest.mark.skip\ndef test_x(): pass", "test_x", "test_x is skipped"),
        ("@pytest.mark.skip(reason='')\ndef test_x(): pass", "test_x", "test_x is skipped"),
        ("@pytest.mark.xfail(reason='')\ndef test_x(): pass", "test_x", "test_x is skipped"),
        ("@pytest.mark.skipif(True, reason='')\ndef test_x(): pass", "test_x", "test_x is skipped"),
        ("def test_x():\n    pytest.skip('')", "test_x", "test_x is skipped"),
        ("pytestmark = [pytest.mark.skip]\ndef test_x(): pass", "test_x", "its file is skipped"),
        ("pytest.skip('', allow_module_level=True)\ndef test_x(): pass", "test_x", "its file is skipped"),
        ("@pytest.mark.skip\nclass TestX:\n    def test_x(self): pass", "TestX::test_x", "TestX is skipped"),
    ],
)
def test_a_test_that_is_missing_or_skipped_is_no_test(text: str, name: str, fault: str) -> None:
    assert fault_in(ast.parse(text), name.split("::")) == fault


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One thing. Another! A third?", ["One thing.", "Another!", "A third?"]),
        ("It goes on,\nover a line. And more", ["It goes on, over a line.", "And more"]),
        ("Calls `Tool.cost. Then` at once. `nil` is none.", ["Calls `Tool.cost. Then` at once.", "`nil` is none."]),
        ("A text, e.g. This one, i.e. That one.", ["A text, e.g. This one, i.e. That one."]),
        ("It costs (a miss. A hit.) one unit. Two more.", ["It costs (a miss. A hit.) one unit.", "Two more."]),
        ("It answers 0.5 or v1.2 of it. see below.", ["It answers 0.5 or v1.2 of it. see below."]),
        ("Options:\n\n  * first one\n    goes on\n  * second.\n", ["Options:", "first one goes on", "second."]),
        (" 10. **Log.** A call is logged.\n 11. **Shape** it.", ["**Log.** A call is logged.", "**Shape** it."]),
        ("# `A.b`\n[x](https://example.org/a)\n\nA\ntext.\n\n---\n", ["A text."]),
        ("Before.\n\n```elixir\n@type a() ::\n  :b. C\n```\n\nAfter.", ["Before.", "@type a() ::   :b. C", "After."]),
        ("@type a() :: b. C\nWhy. It is so.\n@spec d() :: e\nMore.", ["@type a() :: b. C", "Why.", "It is so.", "@spec d() :: e", "More."]),
        ("It ends here.\nWriting\na_function does. Summary\nTypes", ["It ends here.", "a_function does.", "Summary Types"]),
        ("Nothing is read.- The scope: rebuilt. - The next", ["Nothing is read.", "The scope: rebuilt.", "- The next"]),
        ("", []),
    ],
)  # fmt: skip
def test_what_a_sentence_is(text: str, found: list[str]) -> None:
    assert seeds.sentences(text) == found
