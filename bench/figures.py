"""What a run found: figures with what is wanted of them, as a table for people and as JSON for machines."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line. `value` and `baseline` are medians of the rounds, `ratio` compares them; `met` is None where nothing is wanted."""

    requirement: str
    name: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    wanted: str = ""
    met: bool | None = None


def median(values: Iterable[float]) -> float:
    """Of the rounds."""
    return statistics.median(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios of rounds that stood beside each other: other work on the machine comes and goes, and meets both."""
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def table(figures: Sequence[Figure]) -> str:
    """Aligned columns."""
    rows: list[tuple[str, ...]] = [("", "what", "figure", "baseline", "ratio", "wanted", "")]
    rows += [_cells(figure) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in (2, 3, 4) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def document(machine: Mapping[str, object], figures: Sequence[Figure]) -> str:
    """JSON: `{"machine": {…}, "figures": [{…}]}`."""
    return json.dumps({"machine": machine, "figures": [asdict(figure) for figure in figures]}, indent=2)


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.requirement,
        figure.name,
        f"{_number(figure.value)} {figure.unit}",
        "" if figure.baseline is None else f"{_number(figure.baseline)} {figure.unit}",
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        figure.wanted,
        {None: "", True: "met", False: "MISSED"}[figure.met],
    )


def _number(value: float) -> str:
    """Three figures that mean something."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
