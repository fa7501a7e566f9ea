"""Evaluation runs as experiments in Langfuse, through its client."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_end_to_end import known_to, traced_to
from tests.commands import sommelier_eval
from tests.doubles.model_server import ModelServer, answer_json
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import JsonObject
from tests.faults.turns import INFORMATIONAL

TALK = {
    "id": "sur-lie",
    "language": "en",
    "kind": "document",
    "messages": ["Hello", "What does sur lie mean?"],
    "expect": {"types": ["informational"], "must_contain_any": ["lees"]},
}


@pytest.fixture
def configured(
    otlp_receiver: OtlpReceiver,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> OtlpReceiver:
    """Return a Langfuse server; the settings have keys for it and for a model."""
    for name, value in (known_to(model_server) | traced_to(otlp_receiver)).items():
        monkeypatch.setenv(name, value)
    model_server.default = answer_json(INFORMATIONAL)
    return otlp_receiver


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        "\n".join(json.dumps(TALK | {"id": name}) for name in ("one", "two"))
    )
    return str(path)


def test_a_run_records_an_experiment_for_each_variant(
    configured: OtlpReceiver, model_server: ModelServer, mine: str
) -> None:
    status, saved, said = sommelier_eval(
        "run", mine, "--model", "gpt-4o", "--model", "mini"
    )
    assert status == 0
    linked, run = configured.experiments, saved["run"]
    assert set(linked) == {f"{run} · gpt-4o", f"{run} · mini"}
    items = {item["metadata"]["id"]: item["id"] for item in configured.items.values()}
    assert set(items) == {"one", "two"}
    marks = {
        (f"{run} · {result['variant']}", items[result["case"]["id"]]): {
            f"eval_{name}": mark["score"] for name, mark in result["marks"].items()
        }
        for result in saved["results"]
    }
    asked_at = [request.came_at for request in model_server.requests]
    for name, roots in linked.items():
        assert {root.experiment["item.id"] for root in roots} == set(items.values())
        for root in roots:
            scores = configured.scores_of(root.trace_id)
            assert (
                marks[name, str(root.experiment["item.id"])].items() <= scores.items()
            )
            turns = [
                span for span in configured.spans if span.parent_id == root.span_id
            ]
            assert [span.name for span in turns] == ["turn", "turn"]
            assert {span.session for span in turns} == {f"eval:{run}"}
            assert all(span.experiment["name"] == name for span in turns)
            assert root.start == min(span.start for span in turns)
            assert root.end == max(span.end for span in turns)
            # The times are those of the turns, and not those of the recording: a model was asked.
            for turn in turns:
                assert any(turn.start <= at <= turn.end for at in asked_at)
            assert (root.user, root.session) == ("eval", f"eval:{run}")
            assert root.attributes["langfuse.trace.name"] == "chat"
            assert "model:" in " ".join(root.tags)
    assert f"Langfuse: 4 recorded, with {len(configured.scores)} scores, see " in said
    assert "/project/project-1/experiments/results?baseline=" in said


def test_versions_of_a_managed_prompt_are_compared(
    configured: OtlpReceiver, model_server: ModelServer, mine: str
) -> None:
    variables = "{{tool_rules}} {{schema}} {{guest_rules}}"
    for text in ("First.", "Second."):
        configured.save_prompt("sommelier", f"{text} {variables}")
    names = ["sommelier@1", "sommelier@production", "repository"]
    asked = [part for name in names for part in ("--prompt", name)]
    status, saved, _ = sommelier_eval("run", mine, "--model", "gpt-4o", *asked)
    assert status == 0
    assert saved["table"][0] == ["Metric", *(f"gpt-4o · {name}" for name in names)]
    systems = [
        request.json["messages"][0]["content"] for request in model_server.requests
    ]
    assert {"First.", "Second."} < {system.split()[0] for system in systems}


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("full", {"messages": ["A red? Write to anna@example.org"]}),
        ("masked", {"messages": ["A red? Write to [email]"]}),
        ("none", {}),
    ],
)
def test_exported_turns_are_masked_in_langfuse_as_in_traces(
    content: str,
    asked: JsonObject,
    configured: OtlpReceiver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACE_CONTENT", content)
    path = tmp_path / "disliked.jsonl"
    said = {"id": "turn-7", "messages": ["A red? Write to anna@example.org"]}
    path.write_text(
        json.dumps(said | {"expect": {"must_not_contain": ["anna@example.org"]}})
    )
    status, _, _ = sommelier_eval("run", str(path), "--model", "gpt-4o")
    (item,) = configured.items.values()
    ((root,),) = configured.experiments.values()
    assert (status, item["input"]) == (0, asked)
    told = f"{item} {root.attributes}"
    assert ("anna@example.org" in told) == (content == "full")


def test_a_dataset_of_langfuse_is_run_and_linked(configured: OtlpReceiver) -> None:
    configured.add_item("disliked", {"id": "item-7", "input": "What is tannin?"})
    configured.add_item(
        "disliked", {"id": "old", "input": "gone", "status": "ARCHIVED"}
    )
    configured.add_item("other", {"id": "another", "input": "not mine"})
    status, saved, _ = sommelier_eval("run", "langfuse:disliked", "--model", "gpt-4o")
    assert status == 0
    assert [result["case"]["id"] for result in saved["results"]] == ["item-7"]
    ((root,),) = configured.experiments.values()
    assert root.experiment["item.id"] == "item-7"
    assert "POST /api/public/dataset-items" not in configured.requests


@pytest.mark.parametrize("mode", ["401", "500"])
def test_a_failure_of_langfuse_is_a_warning(
    mode: Any, configured: OtlpReceiver, mine: str
) -> None:
    configured.mode = mode
    status, saved, said = sommelier_eval("run", mine, "--model", "gpt-4o")
    assert status == 0
    assert len(saved["results"]) == 2
    assert "Prompts cannot be fetched, the last good ones stay: Langfuse " in said
    assert "This run is not recorded: Langfuse " in said
    assert "recorded, see" not in said


def test_a_run_counts_the_scores_that_langfuse_took(
    configured: OtlpReceiver, mine: str
) -> None:
    configured.refused_scores = {"eval_seconds"}
    _, _, said = sommelier_eval("run", mine, "--model", "gpt-4o")
    assert f"Langfuse: 2 recorded, with {len(configured.scores)} scores, see " in said
    assert (
        "2 items and scores are not recorded, the last: Langfuse answered HTTP 400: eval_s"
        in said
    )
