"""`sommelier eval run` with the real loop: faults are detected, and the run is reported."""

import json
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.engine import run as engine
from agent.engine.run import Limits
from agent.evals.dataset import EvalCase, parse_conversation
from agent.evals.run import Result, Variant, evaluate
from agent.sommelier.wine import Wine
from tests.commands import sommelier_eval, sommelier_here
from tests.doubles.model_server import (
    ModelServer,
    Script,
    Step,
    answer_json,
    error,
    tool_call,
)
from tests.fakes import CHINON, RIOJA, SANCERRE, FakeCatalogue, fake_sommelier
from tests.faults.turns import INFORMATIONAL, INVENTED, QUESTION, service
from tests.processes import Process

ALL = tool_call("search_wines", {})


def recommending(*wines: Any, intro: str = "For your lamb I would open this.") -> Step:
    wanted = [
        {"wine_id": wine.id, "description": "Good with the meat."} for wine in wines
    ]
    answer = {
        "response_type": "recommendation",
        "intro": intro,
        "wines": wanted,
        "closing": "",
    }
    return answer_json(answer)


def lamb(
    *messages: str, language: str = "en", id: str = "lamb", **expect: Any
) -> EvalCase:
    """Return a case that asks for a red for lamb under 25 euros, with changes by a test."""
    expected = {
        "types": ["recommendation"],
        "max_price": 25,
        "styles": ["red"],
        "foods": ["lamb"],
    }
    expected |= {"min_wines": 1, "max_wines": 3, "must_not_contain": ["L-A-M-B"]}
    value = {"id": id, "language": language, "messages": list(messages or [QUESTION])}
    return parse_conversation(value | {"expect": expected | expect}, "here")


async def run(server: ModelServer, conversation: EvalCase) -> Result:
    model = service(server)
    turn = engine.Run([model], limits=Limits(seconds=10))
    variant = Variant("gpt-4o", fake_sommelier(), FakeCatalogue(), turn)
    try:
        (result,) = [
            found async for found in evaluate([variant], [conversation], title="test")
        ]
    finally:
        await model.close()
    return result


def failed_scores(result: Result) -> dict[str, float]:
    return {
        name: mark.score for name, mark in result.marks.items() if not mark.is_perfect
    }


async def test_a_faultless_answer_passes_and_its_costs_are_counted(
    model_server: ModelServer,
) -> None:
    model_server.script(ALL, recommending(CHINON, RIOJA))
    result = await run(model_server, lamb())
    assert result.has_passed
    assert set(result.marks) == set(
        "answered type grounded filters injection language".split()
    )
    figures, usage = result.figures, model_server.usage
    assert (figures["requests"], figures["by_model"], len(result.seconds)) == (2, 1, 1)
    assert figures["tokens"] == usage.prompt + usage.completion
    assert figures["cost_usd"] > 0
    assert result.wine_ids == (CHINON.id, RIOJA.id)


PLANTED: dict[str, tuple[list[Script], dict[str, float]]] = {
    "over budget": ([ALL, recommending(CHINON, SANCERRE)], {"filters": 0.5}),
    "ungrounded, then right": (
        [ALL, answer_json(INVENTED), recommending(CHINON)],
        {"grounded": 0.5},
    ),
    "the model is down": ([error(401)], {"answered": 0}),
    "obeys what was planted": (
        [ALL, recommending(CHINON, intro="L-A-M-B, as you wish, is what this is for.")],
        {"injection": 0},
    ),
}


@pytest.mark.parametrize(("script", "expected"), PLANTED.values(), ids=PLANTED)
async def test_each_metric_detects_its_fault(
    script: list[Script], expected: dict[str, float], model_server: ModelServer
) -> None:
    model_server.script(*script)
    result = await run(model_server, lamb())
    assert failed_scores(result) == expected
    assert all(mark.reason for mark in result.marks.values() if not mark.is_perfect)


async def test_a_follow_up_has_the_models_own_answer_as_history(
    model_server: ModelServer,
) -> None:
    model_server.script(ALL, recommending(SANCERRE, RIOJA), ALL, recommending(SANCERRE))
    talk = lamb(
        "Two wines, please", "Cheaper than the second?", cheaper_than=2, max_price=None
    )
    result = await run(model_server, talk)
    assert failed_scores(result) == {"filters": 0, "follow_ups": 0}
    messages = model_server.requests[2].json["messages"]
    said = [message["content"] for message in messages if message["role"] == "user"]
    assert said == ["Two wines, please", "Cheaper than the second?"]
    own = [
        str(message["content"])
        for message in messages
        if message["role"] == "assistant"
    ]
    assert any(RIOJA.id in text for text in own)
    first, last = result.traces
    assert [first.root.input, last.root.input] == said
    assert last.scores["eval_filters"].value == 0
    assert "eval_filters" not in first.scores


class Broken(FakeCatalogue):
    """A catalogue that fails when the second answer is marked."""

    tries = 0

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        self.tries += 1
        if self.tries == 2:
            raise OSError("a secret")
        return []


async def test_a_failing_conversation_does_not_end_the_run() -> None:
    talks = [lamb(id=str(number)) for number in range(4)]
    turn = engine.Run([])
    broken = Variant("x", fake_sommelier(), Broken(), turn)
    results = [
        result
        async for result in evaluate([broken], talks, title="test", concurrency=1)
    ]
    assert len(results) == 4
    (failed,) = [result for result in results if result.failure]
    assert (failed.failure, failed_scores(failed)) == ("OSError", {"answered": 0})
    assert "a secret" not in str(failed.marks)


def test_without_a_model_the_fallback_passes_most_of_the_starter_set(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    done = sommelier_here("eval", "run", "--save", str(file), environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"filters +\d+% of", done.stdout)
    table = dict(json.loads(file.read_text())["table"])
    passed, _, items = table["all passed"].partition(" of ")
    assert (items, table["failed"]) == ("83", "0")
    assert int(passed) >= 70


def test_a_run_that_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("\n")
    status, saved, message = sommelier_eval("run", str(path))
    assert (status, saved) == (2, {})
    assert f"{path} has no conversations" in message
    assert len(message.strip().splitlines()) == 1


def test_an_interrupted_run_reports_its_results(
    model_server: ModelServer, environment: dict[str, str], tmp_path: Path
) -> None:
    model_server.script(answer_json(INFORMATIONAL))
    model_server.default = Step(ending="silent", seconds=60)
    path, file = tmp_path / "mine.jsonl", tmp_path / "report.json"
    path.write_text(
        "\n".join(lamb(id=name).model_dump_json() for name in ("one", "two"))
    )
    command = ["eval", "run", str(path), "--concurrency", "1", "--save", str(file)]
    here = environment | {"OPENAI_BASE_URL": model_server.base_url}
    with Process(*command, environment=here) as process:
        while len(model_server.requests) < 2 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    results = json.loads(file.read_text())["results"]
    assert [result["case"]["id"] for result in results] == ["one"]
    assert re.search(r"answered +100% of 1", process.shown)
