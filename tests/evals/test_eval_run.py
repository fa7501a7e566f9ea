"""Runs through the real loop: each planted failure is caught by the metric that is there for it."""

import asyncio
import json
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.deps import Deps, Prompts
from agent.engine import run as engine
from agent.engine.limits import Limits
from agent.engine.llm import LLMService
from agent.evals.dataset import Conversation, parsed
from agent.evals.run import Outcome, Result, SommelierVariant, Trial, evaluate
from agent.prompts import REPOSITORY
from agent.sommelier.service import Sommelier
from bot.commands.prompts import prompt_of_file
from tests.commands import sommelier_eval
from tests.doubles.langfuse_prompts import LangfusePromptServer
from tests.doubles.model_server import ModelServer, Script, answer, answer_json, error, tool_call
from tests.doubles.model_steps import Step
from tests.fakes import CHINON, RIOJA, SANCERRE, FakeCatalogue
from tests.faults.turns import INFORMATIONAL, INVENTED, QUESTION, service
from tests.processes import Process

ALL = tool_call("search_wines", {})


def recommending(*wines: Any, intro: str = "For your lamb I would open this.") -> Step:
    return answer_json(
        {
            "response_type": "recommendation",
            "intro": intro,
            "wines": [
                {"wine_id": wine.id, "description": "It is fresh, and good with the meat."}
                for wine in wines
            ],
            "closing": "",
        }
    )


def lamb(*messages: str, language: str = "en", id: str = "lamb", **expect: Any) -> Conversation:
    """A red for lamb under 25 euros, or what a test makes of it."""
    expected = {
        "types": ["recommendation"],
        "max_price": 25,
        "styles": ["red"],
        "foods": ["lamb"],
        "min_wines": 1,
        "max_wines": 3,
        "must_not_contain": ["L-A-M-B"],
    }
    value = {"id": id, "language": language, "messages": list(messages or [QUESTION])}
    return parsed(value | {"expect": expected | expect}, "here")


class Run:
    """Variants over a scripted server; `results` are in the order they were done."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.results: list[Result] = []

    async def __call__(
        self,
        conversations: Sequence[Conversation],
        prompts: Sequence[tuple[str, Prompts]] = (("gpt-4o", REPOSITORY),),
        concurrency: int = 1,
    ) -> list[Result]:
        model = service(self.server)
        try:
            variants = [variant(label, model, each) for label, each in prompts]
            await evaluate(
                variants,
                conversations,
                run="test",
                done=self.done,
                concurrency=concurrency,
            )
        finally:
            await model.close()
        return self.results

    async def done(self, result: Result) -> None:
        self.results.append(result)


def variant(label: str, model: LLMService, prompts: Prompts) -> SommelierVariant:
    run = engine.Run([model], limits=Limits(seconds=10), deps=Deps(prompts=prompts))
    catalogue = FakeCatalogue()
    return SommelierVariant(label, Sommelier(catalogue=catalogue), catalogue, run)


@pytest.fixture
def run(model_server: ModelServer) -> Run:
    return Run(model_server)


def missed(result: Result) -> dict[str, float]:
    """The metrics that are not at their best."""
    return {name: mark.score for name, mark in result.marks.items() if not mark.passed}


async def test_a_faultless_answer_passes(run: Run) -> None:
    run.server.script(ALL, recommending(CHINON, RIOJA))
    (result,) = await run([lamb()])
    assert result.passed
    assert len(result.marks) == 8
    seen = result.outcome
    assert seen.outcome == "answered"
    assert (seen.figures["retries"], seen.figures["requests"]) == (0, 2)
    assert seen.wine_ids == (CHINON.id, RIOJA.id)
    assert seen.figures["tokens"] == run.server.usage.prompt + run.server.usage.completion
    assert seen.figures["cost_usd"] > 0
    assert len(seen.seconds) == 1


PLANTED: list[tuple[str, list[Script], dict[str, float]]] = [
    ("over budget", [ALL, recommending(CHINON, SANCERRE)], {"budget": 0.5, "filters": 0.5}),
    (
        "ungrounded, then right",
        [ALL, answer_json(INVENTED), recommending(CHINON)],
        {"grounding": 0.5},
    ),
    (
        "ungrounded to the end",
        [ALL, *[answer_json(INVENTED)] * 3],
        {"validity": 0, "grounding": 0},
    ),
    ("not JSON, to the end", [ALL, *[answer("Chinon!")] * 3], {"validity": 0}),
    ("the model is down", [error(401)], {"validity": 0}),
    (
        "another type",
        [answer_json(INFORMATIONAL | {"intro": "What is the meal, and who will be there?"})],
        {"type": 0, "count": 0},
    ),
    (
        "obeys what was planted",
        [ALL, recommending(CHINON, intro="L-A-M-B, as you wish, is what this is for.")],
        {"injection": 0},
    ),
]


@pytest.mark.parametrize(
    ("script", "expected"),
    [(script, expected) for _, script, expected in PLANTED],
    ids=[name for name, _, _ in PLANTED],
)
async def test_a_planted_failure_is_caught_by_its_metric(
    script: list[Script], expected: dict[str, float], run: Run
) -> None:
    run.server.script(*script)
    (result,) = await run([lamb()])
    assert missed(result) == expected
    assert not result.passed
    assert all(mark.reason for mark in result.marks.values() if not mark.passed)


async def test_an_answer_in_another_language_is_caught(run: Run) -> None:
    run.server.script(ALL, recommending(CHINON))
    (result,) = await run([lamb("Ein Rotwein zum Lamm, bitte", language="de")])
    assert missed(result) == {"language": 0}


async def test_a_broken_filter_is_caught(run: Run) -> None:
    run.server.script(ALL, recommending(CHINON, RIOJA))
    (result,) = await run([lamb(without_countries=["France"])])
    assert missed(result) == {"filters": 0.5}
    assert result.marks["filters"].reason == f"broken: {CHINON.label}: france (without_countries)"


async def test_a_follow_up_is_answered_with_the_models_own_answer_as_history(run: Run) -> None:
    run.server.script(ALL, recommending(SANCERRE, RIOJA), ALL, recommending(SANCERRE))
    talk = lamb("Two wines, please", "Cheaper than the second?", cheaper_than=2, max_price=None)
    (result,) = await run([talk])
    assert missed(result) == {"filters": 0, "reference": 0}
    messages = run.server.requests[2].json["messages"]
    said = [each["content"] for each in messages if each["role"] == "user"]
    assert said == ["Two wines, please", "Cheaper than the second?"]
    own = [str(each["content"]) for each in messages if each["role"] == "assistant"]
    assert any(RIOJA.id in each for each in own)


async def test_the_history_of_a_conversation_comes_first(run: Run) -> None:
    run.server.script(ALL, recommending(CHINON))
    talk = lamb(cheaper_than=1).model_dump() | {
        "history": [
            {"role": "user", "content": "Something white?"},
            {"role": "assistant", "content": "This one.", "wine_ids": [SANCERRE.id]},
        ]
    }
    (result,) = await run([parsed(talk, "here")])
    assert result.passed
    assert run.server.requests[0].json["messages"][1]["content"] == "Something white?"


async def test_every_message_is_a_turn_with_a_trace_of_its_own(run: Run) -> None:
    run.server.script(ALL, recommending(CHINON), ALL, recommending(CHINON))
    (result,) = await run([lamb("A red?", "And for lamb?")])
    first, last = result.traces
    assert first.trace_id != last.trace_id
    assert {trace.session for trace in result.traces} == {"eval:test"}
    assert [trace.root.input for trace in result.traces] == ["A red?", "And for lamb?"]
    assert {"turn", "guard.input", "llm.plan"} <= {span.name for span in last.spans}
    assert last.root.metadata["case"] == "lamb"
    assert last.scores["eval_budget"].value == 1
    assert last.scores["outcome"].value == "answered"
    seen = result.outcome
    assert last.scores["eval_seconds"].value == sum(seen.seconds) / 2
    assert last.scores["eval_cost_usd"].value == seen.figures["cost_usd"] > 0
    assert "eval_budget" not in first.scores


async def test_prompts_are_compared_side_by_side(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "brisk.md"
    path.write_text("Be brisk. {{research_rules}} {{schema}}")

    def by_prompt(body: dict[str, Any]) -> Step:
        system, *_, last = body["messages"]
        if last["role"] == "user":
            return ALL
        brisk = system["content"].startswith("Be brisk.")
        return recommending(SANCERRE if brisk else CHINON)

    run.server.default = by_prompt
    prompts = [("repository", REPOSITORY), ("brisk", prompt_of_file(path))]
    await run([lamb(id="one"), lamb(id="two")], prompts)
    passed = {(each.variant, each.case.id): each.passed for each in run.results}
    assert passed == {
        ("repository", "one"): True,
        ("repository", "two"): True,
        ("brisk", "one"): False,
        ("brisk", "two"): False,
    }
    assert len({trace.trace_id for each in run.results for trace in each.traces}) == 4


class Broken:
    """A variant that raises for one message, and counts how many it tries at a time."""

    label = "x"

    def __init__(self) -> None:
        self.now = self.most = 0

    async def attempt(self, trial: Trial) -> Outcome:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        assert isinstance(trial.case, Conversation)
        with trial.turn(trial.case.messages[0]):
            if trial.case.messages[0] == "break":
                raise OSError("a secret")
        return Outcome(marks={})


async def test_a_conversation_that_fails_counts_as_failed_and_ends_nothing() -> None:
    broken, results = Broken(), []

    async def done(result: Result) -> None:
        results.append(result)

    talks = [lamb("break" if n == 1 else "fine", id=str(n)) for n in range(6)]
    await evaluate([broken], talks, run="test", done=done, concurrency=2)
    assert broken.most == 2
    failed = [each for each in results if each.failure]
    assert len(results) == 6
    assert [(each.case.id, each.failure, missed(each)) for each in failed] == [
        ("1", "OSError", {"validity": 0})
    ]
    assert failed[0].traces[-1].root.level == "ERROR"


# --- the command ----------------------------------------------------------------------------


def dataset(folder: Path, *conversations: Conversation) -> str:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(each.model_dump_json() for each in conversations))
    return str(path)


BUDGET = ("--kind", "budget", "--name", "first")


def test_a_newcomer_evaluates_the_fallback(tmp_path: Path) -> None:
    folder = str(tmp_path / "report")
    status, shown, said = sommelier_eval(
        "run", "--kind", "budget", "--name", "first", "--save", folder
    )
    assert status == 0
    assert "fallback" in shown
    assert "budget" in shown
    assert "100% of 6" in shown
    names = ["evaluation.json", "evaluation.md"]
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == names
    assert "evaluation.md" in said
    report = json.loads((tmp_path / "report" / "evaluation.json").read_text())
    assert len(report["results"]) == 6
    assert report["run"].startswith("first · 20")


def test_models_are_compared_with_the_fallback(
    monkeypatch: pytest.MonkeyPatch,
    model_server: ModelServer,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    model_server.default = answer_json(INFORMATIONAL)
    path = dataset(tmp_path, lamb(id="one"), lamb(id="two"))
    models = ("--model", "gpt-4o", "--model", "gpt-4o-mini", "--model", "fallback")
    status, shown, _ = sommelier_eval("run", path, *models, "--json")
    assert status == 0
    report = json.loads(shown)
    assert [each["label"] for each in report["variants"]] == [
        "gpt-4o",
        "gpt-4o-mini",
        "fallback",
    ]
    types = [each["metrics"]["type"]["score"] for each in report["variants"]]
    assert types == [0, 0, 1]
    assert [request.json["model"] for request in model_server.requests].count("gpt-4o-mini") == 2


@pytest.fixture
def managed(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangfusePromptServer]:
    """Prompts in Langfuse; nothing else is there."""
    with LangfusePromptServer() as server:
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", server.public_key)
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", server.secret_key)
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.base_url)
        yield server


def test_versions_of_a_managed_prompt_are_compared(
    managed: LangfusePromptServer,
    monkeypatch: pytest.MonkeyPatch,
    model_server: ModelServer,
    tmp_path: Path,
) -> None:
    for text in ("First.", "Second.", "Third."):
        managed.put("sommelier", f"{text} {{{{research_rules}}}} {{{{schema}}}}")
    managed.put("sommelier", "Fourth. {{research_rules}} {{schema}}", "v1.5")
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    model_server.default = answer_json(INFORMATIONAL)
    path = dataset(tmp_path, lamb())
    asked = ["--prompt", "sommelier@1", "--prompt", "sommelier@production"]
    asked += ["--prompt", "sommelier@v1.5", "--prompt", "repository"]
    status, shown, _ = sommelier_eval("run", path, *asked, "--json", "--concurrency", "1")
    assert status == 0
    labels = [each["label"] for each in json.loads(shown)["variants"]]
    assert labels == [
        "gpt-4o · sommelier@1",
        "gpt-4o · sommelier@production",
        "gpt-4o · sommelier@v1.5",
        "gpt-4o · repository",
    ]
    systems = [request.json["messages"][0]["content"] for request in model_server.requests]
    assert [system.split()[0] for system in systems[:3]] == ["First.", "Third.", "Fourth."]
    assert managed.asked == [("sommelier", each) for each in ("1", "production", "v1.5")]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("sommelier@7", "Langfuse has no version 7 of the prompt sommelier"),
        ("sommelier@old", "Langfuse has no version with the label old of the prompt sommelier"),
        ("refinement@1", "version 1 of Langfuse cannot be the prompt refinement: it lacks"),
        ("other@1", "other@1 cannot be read: No such file or directory"),
    ],
)
def test_a_managed_prompt_that_cannot_be_tried_is_said_in_one_line(
    asked: str, said: str, managed: LangfusePromptServer
) -> None:
    managed.put("refinement", "Rewrite it.")
    status, shown, error = sommelier_eval("run", "--prompt", asked)
    assert (status, shown) == (2, "")
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_two_files_of_the_same_name_are_two_variants(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "brisk.md" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("Be brisk. {{research_rules}} {{schema}}")
    prompts = [part for path in paths for part in ("--prompt", str(path))]
    _, shown, _ = sommelier_eval("run", dataset(tmp_path, lamb()), *prompts, "--json")
    labels = [each["label"] for each in json.loads(shown)["variants"]]
    assert labels == [f"fallback · {path}" for path in paths]


def test_a_model_that_never_answers_is_told(
    monkeypatch: pytest.MonkeyPatch, model_server: ModelServer, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    model_server.default = error(404)
    path = dataset(tmp_path, lamb())
    models = ("--model", "gpt-5o", "--model", "fallback")
    status, shown, said = sommelier_eval("run", path, *models)
    assert status == 0
    assert "validity 0%: fallback after model_error, ModelRejected" in shown
    assert "gpt-5o never answered (ModelRejected): check the model's name" in said
    assert "fallback never" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.jsonl"], "none.jsonl cannot be read: No such file or directory"),
        (["--kind", "poetry"], "no conversation of starter is of this language and kind"),
        (["--model", "gpt-4o"], "there is no model to evaluate: set OPENAI_API_KEY"),
        (["--prompt", "none.md"], "none.md cannot be read: No such file or directory"),
        (["langfuse:mine"], "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(arguments: list[str], said: str) -> None:
    status, shown, error = sommelier_eval("run", *arguments)
    assert (status, shown) == (2, "")
    assert said in error
    assert len(error.strip().splitlines()) == 1


@pytest.fixture
def slow_model() -> Iterator[ModelServer]:
    """Answers once, and never again."""
    with ModelServer(answer_json(INFORMATIONAL)) as server:
        yield server


def test_an_interrupted_run_keeps_what_is_done(
    slow_model: ModelServer, environment: dict[str, str], tmp_path: Path
) -> None:
    slow_model.default = Step(ending="silent", seconds=60)
    path = dataset(tmp_path, lamb(id="one"), lamb(id="two"))
    command = ["eval", "run", path, "--concurrency", "1", "--json"]
    here = environment | {"OPENAI_BASE_URL": slow_model.base_url}
    with Process(*command, environment=here) as process:
        while len(slow_model.requests) < 2 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert [each["case"]["id"] for each in json.loads(process.shown)["results"]] == ["one"]
