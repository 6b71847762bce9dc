"""The tiny request of the test button, as the process of its own makes it: a connection in, what came of it out."""

import io
import json
from typing import Any

import pytest

from apps.agent.providers import trial
from tests.agent.providers import BOTH, WIRES, connection_to
from tests.agent.wire.script import Call, Finish, Refuse, Say, Step
from tests.agent.wire.server import Wire


def tried(wire: Wire, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    connection = connection_to(wire)
    sent = {**vars(connection), "networks": [str(network) for network in connection.networks]}
    sent.pop("explains")
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(sent)))
    trial.main()
    return json.loads(capsys.readouterr().out)


@BOTH
def test_it_tells_the_words_and_the_tokens_of_the_answer(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[Step] = [Say("Hel"), Say("lo"), Call("c1", "nothing", ("{}",)), Finish(input_tokens=5, output_tokens=2)]
    with WIRES[name](steps) as wire:
        found = tried(wire, monkeypatch, capsys)
    assert found["text"] == "Hello"
    assert (found["usage"]["input_tokens"], found["usage"]["output_tokens"]) == (5, 2)
    assert found["seconds"] >= 0


@BOTH
def test_it_tells_what_the_provider_said_to_refuse_it(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = Refuse(429, {"error": {"message": "Slow down.", "type": "rate_limit_error"}}, {"retry-after": "7"})
    with WIRES[name]([refusal]) as wire:
        found = tried(wire, monkeypatch, capsys)
    assert found["code"] == "provider_rate_limited"
    assert found["retry_after"] == 7
    assert "Slow down." in found["detail"]
