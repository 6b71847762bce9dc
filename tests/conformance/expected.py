"""What passes of the scenarios that 2026-07-28 requires, without the fixture provider and with it, and why (MC-5)."""

from collections.abc import Iterator

REVISION, BEFORE = "2026-07-28", "2025-11-25"

# With the fixture's tools alone, through the real executor.
OWN = frozenset(
    {
        "tools-list",
        "tools-call-simple-text",
        "tools-call-error",
        "tools-call-with-progress",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
        "input-required-result-request-state",
        "input-required-result-tampered-state",
        "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params",
        "input-required-result-missing-input-response",
        "input-required-result-validate-input",
        "sep-2164-resource-not-found",
    }
)

# Of these, the suite says less than that it passed.
EMPTY = {
    "input-required-result-ignore-extra-params": "without the provider in name only: its tool is missing, a refusal counts as a result",
    "input-required-result-missing-input-response": "without the provider with a warning: its tool is missing",
    "input-required-result-validate-input": "without the provider with a warning: its tool is missing",
    "sep-2164-resource-not-found": "without the provider with a warning: there are no resources at all (-32601, not -32602)",
}
WARNED = frozenset(EMPTY) - {"input-required-result-ignore-extra-params"}

_PROMPTS = "prompts: Tollhouse has none"
_RESOURCES = "resources: Tollhouse has none"
_CONTENT = "tools here answer JSON, as structure and as text, no other content"
_QUESTIONS = "the gate asks one question, for the second word of a dangerous write"
_SAMPLING = "Tollhouse never asks a client for sampling or roots"

# With the provider too, and what it stands in for.
PROVIDED = {
    "server-stateless": "its two checks of a tool that needs sampling: Tollhouse never asks for it",
    "completion-complete": "completions: there are no prompts to complete",
    "tools-call-image": _CONTENT,
    "tools-call-audio": _CONTENT,
    "tools-call-embedded-resource": _CONTENT,
    "tools-call-mixed-content": _CONTENT,
    "resources-list": _RESOURCES,
    "resources-read-text": _RESOURCES,
    "resources-read-binary": _RESOURCES,
    "resources-templates-read": _RESOURCES,
    "prompts-list": _PROMPTS,
    "prompts-get-simple": _PROMPTS,
    "prompts-get-with-args": _PROMPTS,
    "prompts-get-embedded-resource": _PROMPTS,
    "prompts-get-with-image": _PROMPTS,
    "caching": "its three checks of the lists of prompts, resources and templates: Tollhouse has none",
    "input-required-result-basic-elicitation": _QUESTIONS,
    "input-required-result-basic-sampling": _SAMPLING,
    "input-required-result-basic-list-roots": _SAMPLING,
    "input-required-result-multiple-input-requests": _SAMPLING,
    "input-required-result-multi-round": _QUESTIONS,
    "input-required-result-non-tool-request": _PROMPTS,
    "input-required-result-result-type": _QUESTIONS,
    "input-required-result-capability-check": _SAMPLING,
}
REQUIRED = OWN | PROVIDED.keys()

# What 2025-11-25 requires and a server without sessions can't have; stateless-2025-11-25.yml says why.
STATEFUL = frozenset(
    {
        "logging-set-level",
        "tools-call-with-logging",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "resources-subscribe",
        "resources-unsubscribe",
    }
)

_TASKS = "fails: calls tools that become tasks and end by themselves; here a task is a write that waits for a person's approval"

# What the suite runs and does not count, with the provider.
EXTRA = {
    "http-header-validation": "passes",
    "http-custom-header-server-validation": "fails: looks for a tool whose schema names a header, which no module can declare",
    "json-schema-2020-12": "fails: looks for a tool with choices at the root of its schema, which no module can declare",
    "tasks-status-notifications": "passes in name only: the suite skips it",
    "tasks-capability-negotiation": _TASKS,
    "tasks-dispatch-and-envelope": _TASKS,
    "tasks-lifecycle": _TASKS,
    "tasks-mrtr-composition": _TASKS,
    "tasks-mrtr-input": _TASKS,
    "tasks-request-headers": _TASKS,
    "tasks-request-state-removal": _TASKS,
    "tasks-required-task-error": _TASKS,
    "tasks-wire-fields": _TASKS,
}


def report() -> Iterator[str]:
    """Both runs beside each other, as docs/reference/mcp-conformance.md has them."""
    yield "| scenario | without | with | why |"
    yield "| --- | --- | --- | --- |"
    for name in sorted(OWN):
        yield f"| {name} | passes | passes | {EMPTY.get(name, '')} |"
    for name, why in sorted(PROVIDED.items()):
        yield f"| {name} | fails | passes | {why} |"


def extra() -> Iterator[str]:
    """What counts for nothing, as the same page has it."""
    yield "| scenario | with |"
    yield "| --- | --- |"
    for name, what in sorted(EXTRA.items()):
        yield f"| {name} | {what} |"
