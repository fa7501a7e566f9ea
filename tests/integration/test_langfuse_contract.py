"""The double of Langfuse answers as the client's own models say, and refuses as 4.16 does."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import httpx
import pytest
from langfuse.api import CreateScoreRequest, LangfuseAPI, ScoreDataType
from langfuse.api.core import ApiError
from pydantic import BaseModel

from db.engine import Sessions
from tests.doubles.otlp import OtlpReceiver
from tests.traces import deliver, retried_trace

SCORE = CreateScoreRequest(
    id="score-1",
    trace_id="ab" * 16,
    name="outcome",
    value="answered",
    data_type=ScoreDataType.CATEGORICAL,
    timestamp=datetime(2026, 5, 1, tzinfo=UTC),
)


@pytest.fixture
def api(otlp_receiver: OtlpReceiver) -> Iterator[LangfuseAPI]:
    keys = otlp_receiver.public_key, otlp_receiver.secret_key
    with httpx.Client(auth=keys) as http:
        yield LangfuseAPI(base_url=otlp_receiver.base_url, httpx_client=http)


def unknown_fields(model: object) -> set[str]:
    """Return the fields that the client's models do not have."""
    if isinstance(model, list):
        return set().union(*map(unknown_fields, model))
    if not isinstance(model, BaseModel):
        return set()
    fields = [getattr(model, name) for name in type(model).model_fields]
    return {*(model.model_extra or {})} | unknown_fields(fields)


async def test_the_double_answers_with_the_fields_of_the_clients_models(
    api: LangfuseAPI, otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    await deliver(otlp_receiver, sessions, retried_trace())
    otlp_receiver.save_prompt("sommelier", "Be brief.")
    otlp_receiver.add_item("wines", {"id": "item-1", "input": "a red?"})
    answers = {
        "health": api.health.health(),
        "projects": api.projects.get(),
        "prompt": api.prompts.get("sommelier"),
        "dataset": api.datasets.get("wines"),
        "items": api.dataset_items.list(dataset_name="wines", page=1),
        "observations": api.observations.get_many(user_id="0f0f", limit=9),
        "deleted": api.trace.delete_multiple(trace_ids=["ab" * 16]),
    }
    assert {name: unknown_fields(answer) for name, answer in answers.items()} == {
        name: set() for name in answers
    }


def test_scores_are_taken_one_by_one_as_the_client_writes_them(
    api: LangfuseAPI, otlp_receiver: OtlpReceiver
) -> None:
    scores = api.scores
    with pytest.raises(ApiError) as refusal:
        scores.create(request=[SCORE])
    assert refusal.value.status_code == 400
    assert otlp_receiver.scores == []
    scores.create(request=cast(Any, SCORE))
    (score,) = otlp_receiver.scores
    assert (score["id"], score["traceId"], score["value"]) == (
        "score-1",
        "ab" * 16,
        "answered",
    )
    scores.create(request=cast(Any, SCORE.model_copy(update={"comment": "late"})))
    assert [score["comment"] for score in otlp_receiver.scores] == ["late"]
    scores.delete("score-1")
    assert otlp_receiver.scores == []


async def test_spans_are_merged_by_id_and_tokens_counted_where_none_were_sent(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    first, later = retried_trace(), retried_trace()
    later.root.output = None
    for trace in (first, later):
        await deliver(otlp_receiver, sessions, trace)
    assert otlp_receiver.span("turn").output == first.root.output
    answer = otlp_receiver.span("llm.answer")
    others = {
        name: sent for name, sent in answer.attributes.items() if "_details" not in name
    }
    counted = replace(answer, attributes=others).total_cost
    assert counted is not None
    assert counted > 0
