"""What counts as a sentence of a seed: the rule by which `docs/seed-coverage.md` numbers them.

A text falls into blocks: a paragraph, a bullet or numbered step with the lines that continue it, a fenced block of code, a line that
declares a type or a function (`@type`, `@spec`). Code and declarations are one sentence each, whatever stands in them. Every other block
is one or more sentences: one ends where the block ends, with whatever sign ("the context is a map:" is one), and within the block at
`.`, `!` or `?` when a space and then no small letter follow. No sentence ends inside backticks or round brackets, after the full stop of a
bold label ("**Log.** A call …"), or after an abbreviation. Headings, rulers and lines that are nothing but a link are no sentences; where a
text marks none of its headings, a short line with a capital and no sign at its end is one, when the line above ended a sentence.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

_ABBREVIATIONS = ("e.g.", "i.e.", "etc.", "cf.", "vs.")
_FENCE = re.compile(r"\s*```")
_MARKED_HEADING = re.compile(r"^#+ ", re.MULTILINE)
_BULLET = re.compile(r"\s*(?:[*-]|\d+\.)\s+")
_NO_SENTENCE = re.compile(r"\s*(?:#+ .*|-{3,}|\[[^\]]*\]\([^)]*\))?\s*")
_DECLARATION = re.compile(r"@(?:type|spec) ")
_GLUED_BULLET = re.compile(r"(?<=[.!?])- (?=[A-Z])")
_END = re.compile(r'[.!?]["”]?(?=\s+[^\sa-z])')
_ENDED = (".", ":", ";", "!", "?")
_HEADING_LENGTH = 50


def sentences(text: str) -> list[str]:
    """The sentences in their order."""
    found: list[str] = []
    for is_code, block in _blocks(text):
        found.extend([block] if is_code else _split(block))
    return found


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Whether it is code, and its lines joined by spaces."""
    has_marks = _MARKED_HEADING.search(text) is not None
    for number, part in enumerate(_fenced(text)):
        if number % 2:
            yield True, " ".join(part)
            continue
        block: list[str] = []
        for above, line in pairwise(["", *part]):
            is_declaration, is_bullet = bool(_DECLARATION.match(line)), bool(_BULLET.match(line))
            is_none = bool(_NO_SENTENCE.fullmatch(line)) or (not has_marks and _is_heading(line, above, block))
            if is_declaration or is_bullet or is_none:
                yield from _whole(block)
                block = []
            if is_declaration:
                yield True, line.strip()
            elif not is_none:
                block.append(_BULLET.sub("", line, count=1).strip() if is_bullet else line.strip())
        yield from _whole(block)


def _fenced(text: str) -> list[list[str]]:
    """The lines outside and inside fences, in turns, the first outside."""
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        for one in _GLUED_BULLET.sub("\n- ", line).split("\n"):
            if _FENCE.match(one):
                parts.append([])
            else:
                parts[-1].append(one)
    return parts


def _whole(block: list[str]) -> Iterator[tuple[bool, str]]:
    if block:
        yield False, " ".join(block)


def _is_heading(line: str, above: str, block: list[str]) -> bool:
    """A heading that nothing marks. `block` holds what stands above it in one block."""
    words = line.strip()
    follows = not block or above.strip().endswith(_ENDED)
    return follows and len(words) <= _HEADING_LENGTH and words[:1].isupper() and words[-1:].isalpha() and line == words


def _split(block: str) -> Iterator[str]:
    outside, start = _outside(block), 0
    for match in _END.finditer(block):
        at = match.end()
        if match.start() in outside and not block[start:at].endswith(_ABBREVIATIONS):
            yield block[start:at].strip()
            start = at
    yield block[start:].strip()


def _outside(block: str) -> set[int]:
    """The places that are in neither backticks nor round brackets."""
    found: set[int] = set()
    quoted, depth = False, 0
    for at, sign in enumerate(block):
        if sign == "`":
            quoted = not quoted
        elif not quoted:
            depth += (sign == "(") - (sign == ")")
            if depth == 0:
                found.add(at)
    return found
