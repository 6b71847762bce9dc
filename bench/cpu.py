"""CPU as the kernel counts it: which cores a process may use, and what it and its children have spent."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def halves() -> tuple[set[int], set[int]]:
    """The cores for the server that is measured, and those for all others: apart where there are two, else shared."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return set(cores), set(cores)
    return {cores[0]}, set(cores[1:])


def pin(process: int, cores: set[int]) -> None:
    """Keep the process, its threads and its living descendants on the cores; later children inherit them."""
    for found in (process, *_descendants(process)):
        for thread in Path(f"/proc/{found}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)


def seconds(process: int) -> float:
    """What the process and its descendants have used so far, ended ones too where their parent still lives."""
    return sum(_ticks(found) for found in (process, *_descendants(process))) / _TICKS


def _ticks(process: int) -> int:
    try:
        fields = _stat(process)
    except OSError:  # it ended; its parent counts it
        return 0
    return sum(int(field) for field in fields[11:15])


def _descendants(process: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                children.setdefault(int(_stat(int(folder.name))[1]), []).append(int(folder.name))
            except OSError:
                continue
    found = [process]
    for parent in found:
        found.extend(children.get(parent, []))
    return found[1:]


def _stat(process: int) -> list[str]:
    """The fields after the command's name, the state first (proc(5) calls it the third)."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
