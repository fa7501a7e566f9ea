"""Runs as experiments in Langfuse: what the real client sends, and what happens without it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.engine.span import TraceRecord
from agent.evals.dataset import Conversation, DatasetError, conversation_of, item_of, parsed
from agent.evals.run import Trial
from agent.prompts import repository_prompts
from agent.tracing.exporter import Unavailable
from agent.tracing.langfuse import LangfuseClient
from agent.tracing.managed import Experiments, PromptStore, StoredPrompt, experiment_id
from agent.tracing.recorder import Item, item_id
from tests.commands import sommelier_eval
from tests.doubles.langfuse_datasets import LangfuseDatasets, links_of
from tests.doubles.model_server import ModelServer, answer_json
from tests.doubles.server import JsonObject
from tests.faults.turns import INFORMATIONAL

TALK = {
    "id": "sur-lie",
    "language": "en",
    "kind": "document",
    "messages": ["Hello", "What does sur lie mean?"],
    "expect": {"types": ["informational"], "must_contain_any": ["lees"]},
}


RED = parsed(
    {"id": "red", "kind": "pairing", "messages": ["A red?"], "expect": {"styles": ["red"]}}, "here"
)


@pytest.fixture
def langfuse() -> Iterator[LangfuseDatasets]:
    with LangfuseDatasets() as server:
        yield server


def experiments_at(server: LangfuseDatasets) -> Experiments:
    client = LangfuseClient(server.public_key, server.secret_key, f"{server.base_url}/")
    return Experiments(client)


def answered(question: str = "A red?") -> TraceRecord:
    """A turn that was traced and scored."""
    trial = Trial("test", "gpt-4o", RED.model_copy(update={"id": question}))
    with trial.turn(question) as root:
        with root.child("llm.answer", "generation"):
            pass
        root.update(output="This one.")
        root.score("outcome", "answered", "CATEGORICAL")
    trial.score("budget", 0.5, "outside the budget: Sancerre")
    return trial.traces[0]


def items(*talks: Conversation) -> dict[str, Item]:
    return {talk.id: item_of("mine", talk) for talk in talks}


# --- the client -----------------------------------------------------------------------------


async def test_an_item_is_linked_to_its_trace_by_every_span(langfuse: LangfuseDatasets) -> None:
    earlier, trace = answered("Hello"), answered()
    experiments = experiments_at(langfuse)
    recording = await experiments.open("mine", "first", items(RED))
    assert recording is not None
    await recording.add("gpt-4o", "red", [earlier, trace])
    await experiments.client.aclose()

    spans = [span for span in langfuse.spans if span.trace_id == trace.trace_id]
    assert [span.name for span in spans] == ["turn", "llm.answer"]
    dataset = langfuse.datasets["mine"]["id"]
    expected = {
        "id": experiment_id("project-1", dataset, "first · gpt-4o"),
        "name": "first · gpt-4o",
        "metadata": {"run": "first", "variant": "gpt-4o"},
        "dataset.id": dataset,
        "item.id": item_id("mine", "red"),
        "item.root_observation_id": trace.root.span_id,
        "item.expected_output": {"styles": ["red"]},
        "item.metadata": {"id": "red", "kind": "pairing"},
    }
    assert [links_of(span) for span in spans] == [expected, expected]
    assert {span.attributes["langfuse.environment"] for span in spans} == {"sdk-experiment"}
    assert {span.session for span in langfuse.spans} == {"eval:test"}
    before = [span for span in langfuse.spans if span.trace_id == earlier.trace_id]
    assert len(before) == 2
    assert not any(links_of(span) for span in before)


async def test_every_metric_is_a_score_with_a_fixed_id(langfuse: LangfuseDatasets) -> None:
    trace = answered()
    experiments = experiments_at(langfuse)
    recording = await experiments.open("mine", "first", items(RED))
    assert recording is not None
    for value in (0.5, 0.75):
        trace.scores["eval_budget"] = replace(trace.scores["eval_budget"], value=value)
        await recording.add("gpt-4o", "red", [trace])
    await experiments.client.aclose()
    assert langfuse.scores_of(trace.trace_id) == {"outcome": "answered", "eval_budget": 0.75}
    (budget,) = [score for score in langfuse.scores if score["name"] == "eval_budget"]
    assert budget["id"] == f"{trace.trace_id}-eval_budget"
    assert budget["observationId"] == trace.root.span_id
    assert budget["comment"] == "outside the budget: Sancerre"
    assert (budget["dataType"], len(langfuse.scores)) == ("NUMERIC", 2)
    assert recording.summary.startswith("2 recorded, see ")


async def test_a_second_run_adds_no_items(langfuse: LangfuseDatasets) -> None:
    experiments = experiments_at(langfuse)
    talk = parsed(TALK, "here")
    for run in ("first", "second"):
        assert await experiments.open("mine", run, items(talk)) is not None
    await experiments.client.aclose()
    (item,) = langfuse.items.values()
    assert item["input"] == {"messages": ["Hello", "What does sur lie mean?"]}
    assert item["expectedOutput"] == TALK["expect"]
    assert item["metadata"] == {"id": "sur-lie", "language": "en", "kind": "document"}
    assert len(langfuse.datasets) == 1


async def test_items_come_back_as_the_conversations_they_were(langfuse: LangfuseDatasets) -> None:
    experiments = experiments_at(langfuse)
    talks = [parsed(TALK | {"id": f"talk-{number}"}, "here") for number in range(130)]
    await experiments.open("mine", "x", items(*talks))
    langfuse.add("mine", {"id": "old", "input": "gone", "status": "ARCHIVED"})
    langfuse.add("other", {"id": "another", "input": "not mine"})
    found = [conversation_of(item, "mine") for item in await experiments.items("mine")]
    await experiments.client.aclose()
    assert sorted(found, key=lambda each: each.id) == sorted(talks, key=lambda each: each.id)


@pytest.mark.parametrize(
    "asked",
    [
        "A red?",
        {"messages": ["A red?"]},
        [{"role": "user", "content": "Hi"}, {"role": "user", "content": "A red?"}],
        [
            {"role": "system", "content": "You are a sommelier."},
            {"role": "user", "content": "Hi"},
            {"role": "user", "content": "A red?"},
        ],
    ],
)
def test_items_that_others_made_are_understood(asked: Any) -> None:
    talk = conversation_of(Item("i", asked), "mine")
    assert (talk.id, talk.messages) == ("i", ("A red?",))
    assert [said.content for said in talk.history] == (["Hi"] if isinstance(asked, list) else [])


@pytest.mark.parametrize("asked", [None, 5, {"prompt": "A red?"}])
def test_an_item_that_is_no_conversation_is_named(asked: Any) -> None:
    with pytest.raises(DatasetError, match="item i of mine"):
        conversation_of(Item("i", asked), "mine")


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("401", "Langfuse does not know the keys (HTTP 401): check LANGFUSE_PUBLIC_KEY"),
        ("503", "Langfuse answered HTTP 503: "),
    ],
)
async def test_a_server_that_refuses_is_told_in_one_line(
    mode: Any, said: str, langfuse: LangfuseDatasets
) -> None:
    langfuse.mode = mode
    experiments = experiments_at(langfuse)
    with pytest.raises(Unavailable) as told:
        await experiments.items("mine")
    await experiments.client.aclose()
    assert said in str(told.value)
    assert len(langfuse.requests) == 1


async def test_a_server_that_never_answers_is_waited_for_only_so_long(
    langfuse: LangfuseDatasets,
) -> None:
    langfuse.mode = "black_hole"
    client = LangfuseClient(langfuse.public_key, "sk", langfuse.base_url, seconds=0.1)
    experiments = Experiments(client)
    assert await experiments.open("mine", "first", items(RED)) is None
    await experiments.client.aclose()
    assert langfuse.requests == ["POST /api/public/v2/datasets"]


async def test_a_server_that_is_gone_is_told_in_one_line() -> None:
    experiments = Experiments(LangfuseClient("pk", "sk", "http://127.0.0.1:9"))
    with pytest.raises(Unavailable, match=r"cannot be reached \(ConnectError\)"):
        await experiments.items("mine")
    await experiments.client.aclose()


async def test_a_server_that_is_slow_or_down_for_a_while_ends_no_recording(
    langfuse: LangfuseDatasets, caplog: pytest.LogCaptureFixture
) -> None:
    """What was not confirmed is sent again under the same ids, and counted once."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    experiments = experiments_at(langfuse)
    experiments.sleep = sleep
    questions = [f"A red, {number}?" for number in range(4)]
    talks = [RED.model_copy(update={"id": each}) for each in questions]
    recording = await experiments.open("mine", "first", items(*talks))
    assert recording is not None
    traces = {each: answered(each) for each in questions}
    await recording.add("gpt-4o", questions[0], [traces[questions[0]]])
    langfuse.broken["/api/public/scores"] = 503  # the spans arrive, the scores do not
    for each in questions[1:]:
        await recording.add("gpt-4o", each, [traces[each]])
    assert (recording.recorded, recording.lost, len(waits)) == (1, 0, 2)
    langfuse.broken.clear()
    await recording.finish()
    await experiments.client.aclose()
    assert recording.summary.startswith("4 recorded, see ")
    stored = {root.trace_id for roots in langfuse.linked.values() for root in roots}
    assert stored == {each.trace_id for each in traces.values()}
    assert all("eval_budget" in langfuse.scores_of(each) for each in stored)
    assert len(caplog.records) == 1


async def test_what_never_arrived_is_reported_as_lost(langfuse: LangfuseDatasets) -> None:
    experiments = experiments_at(langfuse)
    talks = [RED.model_copy(update={"id": str(number)}) for number in range(5)]
    recording = await experiments.open("mine", "first", items(*talks))
    assert recording is not None
    langfuse.mode = "401"
    asked = len(langfuse.requests)
    for talk in talks:
        await recording.add("gpt-4o", talk.id, [answered(talk.id)])
    await recording.finish()
    await experiments.client.aclose()
    assert len(langfuse.requests) == asked + 1, "nothing is taken: it is asked once"
    assert recording.summary.startswith("0 recorded, 5 lost, see ")


def test_unless_one_is_named_the_prompt_in_production_is_evaluated(
    configured: LangfuseDatasets, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = repository_prompts()["sommelier"].text + "\nSpeak like a sailor."
    stored = StoredPrompt(7, text)

    async def get(self: PromptStore, name: str, *, label: str) -> StoredPrompt | None:
        return stored if (name, label) == ("sommelier", "production") else None

    monkeypatch.setattr(PromptStore, "get", get)
    status, _, _ = sommelier_eval("run", mine, "--model", "gpt-4o", "--json")
    assert status == 0
    assert {
        span.metadata["prompt_version"] for span in configured.spans if span.name == "llm.answer"
    } == {"langfuse:7"}


# --- the commands ---------------------------------------------------------------------------


@pytest.fixture
def configured(
    langfuse: LangfuseDatasets, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> LangfuseDatasets:
    """Langfuse, with keys for it and for a model in the settings."""
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", langfuse.public_key)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", langfuse.secret_key)
    monkeypatch.setenv("LANGFUSE_BASE_URL", langfuse.base_url)
    model_server.default = answer_json(INFORMATIONAL)
    return langfuse


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(TALK | {"id": name}) for name in ("one", "two")))
    return str(path)


NAMED = ("--name", "first", "--description", "a cheaper model")
MODELS = ("--model", "gpt-4o", "--model", "gpt-4o-mini")


def test_a_run_is_an_experiment_for_each_variant(
    configured: LangfuseDatasets, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGFUSE_TRACING_ENVIRONMENT", "berlin")
    monkeypatch.setenv("LANGFUSE_RELEASE", "blue")
    status, shown, said = sommelier_eval("run", mine, *MODELS, *NAMED, "--json")
    assert status == 0
    linked = configured.linked
    run = json.loads(shown)["run"]
    assert run.startswith("first · 20")
    assert set(linked) == {f"{run} · gpt-4o", f"{run} · gpt-4o-mini"}
    for root in (root for roots in linked.values() for root in roots):
        assert links_of(root)["description"] == "a cheaper model"
        assert root.attributes["langfuse.environment"] == "berlin"
        assert root.attributes["langfuse.release"] == "blue"
    items = {item["metadata"]["id"]: item["id"] for item in configured.items.values()}
    assert set(items) == {"one", "two"}
    for roots in linked.values():
        assert {links_of(root)["item.id"] for root in roots} == set(items.values())
    for each in json.loads(shown)["results"]:
        scores = configured.scores_of(each["trace_ids"][-1])
        own = {name: mark["score"] for name, mark in each["marks"].items()}
        assert {f"eval_{name}": score for name, score in own.items()}.items() <= scores.items()
        assert scores["eval_content"] == 0
    assert "Langfuse: 4 recorded, see " in said
    assert "/project/project-1/datasets/dataset-1" in said


def test_a_second_run_under_one_name_is_a_second_run_over_the_same_items(
    configured: LangfuseDatasets, mine: str
) -> None:
    for _ in range(2):
        sommelier_eval("run", mine, "--model", "gpt-4o", "--name", "first", "--json")
    assert len(configured.items) == 2
    assert [len(roots) for roots in configured.linked.values()] == [2, 2]
    assert len(configured.trace_ids) == 8
    assert len({score["id"] for score in configured.scores}) == len(configured.scores)


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("full", {"messages": ["A red? Write to anna@example.org"]}),
        ("masked", {"messages": ["A red? Write to [email]"]}),
        ("none", None),
    ],
)
def test_a_dataset_made_of_turns_shows_in_langfuse_what_traces_show(
    content: str,
    asked: JsonObject | None,
    configured: LangfuseDatasets,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACE_CONTENT", content)
    path = tmp_path / "disliked.jsonl"
    said = {"id": "turn-7", "messages": ["A red? Write to anna@example.org"]}
    path.write_text(json.dumps(said | {"expect": {"must_not_contain": ["anna@example.org"]}}))
    status, _, _ = sommelier_eval("run", str(path), "--model", "gpt-4o", "--json")
    (item,) = configured.items.values()
    ((root,),) = configured.linked.values()
    assert (status, item["input"]) == (0, asked)
    told = f"{item} {root.attributes}"
    assert ("anna@example.org" in told) == (content == "full")


def test_a_dataset_of_langfuse_is_run_and_linked(configured: LangfuseDatasets) -> None:
    configured.add("disliked", {"id": "item-7", "input": "What is tannin?"})
    status, shown, _ = sommelier_eval("run", "langfuse:disliked", "--model", "gpt-4o", "--json")
    assert status == 0
    assert [each["case"]["id"] for each in json.loads(shown)["results"]] == ["item-7"]
    ((root,),) = configured.linked.values()
    assert links_of(root)["item.id"] == "item-7"
    assert "POST /api/public/dataset-items" not in configured.requests


def test_a_dataset_that_does_not_exist_ends_the_command(configured: LangfuseDatasets) -> None:
    status, shown, said = sommelier_eval("run", "langfuse:none")
    assert (status, shown) == (1, "")
    assert "'none' cannot be read: Langfuse answered HTTP 404" in said


@pytest.mark.parametrize("mode", ["401", "500"])
def test_a_langfuse_that_fails_costs_a_warning_and_no_result(
    mode: Any,
    configured: LangfuseDatasets,
    mine: str,
) -> None:
    configured.mode = mode
    status, shown, said = sommelier_eval("run", mine, "--model", "gpt-4o", "--json")
    assert status == 0
    assert len(json.loads(shown)["results"]) == 2
    assert said.count("WARNING") == 2
    assert "The repository's prompts are evaluated, not those in use: Langfuse " in said
    assert "This run is not recorded: Langfuse " in said
    assert "recorded, see" not in said


def test_traces_that_are_not_taken_cost_a_warning_and_no_result(
    configured: LangfuseDatasets, mine: str
) -> None:
    configured.broken["/api/public/otel/v1/traces"] = 403
    status, shown, said = sommelier_eval("run", mine, "--model", "gpt-4o", "--json")
    assert status == 0
    assert len(json.loads(shown)["results"]) == 2
    assert said.count("WARNING") == 1
    assert "Langfuse: 0 recorded, 2 lost, see " in said


def test_the_evaluation_of_quotes_is_an_experiment_too(
    configured: LangfuseDatasets, model_server: ModelServer
) -> None:
    model_server.default = answer_json({"snippets": [], "summary": "Nothing.", "noResults": True})
    status, shown, said = sommelier_eval("quotes", "--modes", "B", "--model", "gpt-4o")
    assert status == 0
    assert "json_parse" in shown
    assert "Langfuse: 24 recorded, see " in said
    assert len(configured.items) == 24
    ((name, roots),) = configured.linked.items()
    assert name.endswith(" · gpt-4o B")
    assert len(roots) == 24
    by_question = {str(root.metadata["case"]): root for root in roots}
    negative = configured.scores_of(by_question["negative-1"].trace_id)
    assert negative["eval_negative"] in (0, 1)
    keyword = configured.scores_of(by_question["keyword-1"].trace_id)
    assert (keyword["eval_json_parse"], keyword["eval_verbatim"]) == (1, 0)
    assert by_question["keyword-1"].session == f"eval:{name.removesuffix(' · gpt-4o B')}"
