"""How well models quote, in each response mode: `python -m benchmarks.quotes MODEL …`.

24 questions over the starter documents are asked once each, without a retry: six that need a
keyword, a paraphrase, or several sources, and six without an answer. The modes are those of the
research on structured snippets: A prompt only, B `json_object`, C strict `json_schema`.

    json_parse     the response is a JSON object as it is
    schema         it has every field of the schema
    verbatim       share of its snippets that are in a retrieved chunk word for word
    attribution    share of its snippets that name the source they are in, exactly
    negative       for a question without an answer: noResults and no snippet
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from operator import ge, gt, lt
from pathlib import Path
from statistics import fmean
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.table import Table

from agent.documents.passages import Chunk, DocumentStore
from agent.documents.quotes import (
    QuotesAnswer,
    Snippet,
    find_in_chunks,
    find_quotes,
    find_verbatim,
)
from agent.engine.messages import LLM, LLMRequest, LLMResponse, Message, ResponseMode
from agent.engine.run import Run
from agent.tables import StrictModel
from bot.commands.evaluate import open_bench
from bot.resources import model_of
from config import load_settings

MODES: Final[Mapping[str, ResponseMode]] = {
    "A": "prompt",
    "B": "json_object",
    "C": "json_schema",
}
LIMITS: Final[Mapping[str, tuple[str, Callable[[float, float], bool], float]]] = {
    "json_parse": ("100%", ge, 1),
    "schema": ("> 95%", gt, 0.95),
    "verbatim": ("> 80%", gt, 0.80),
    "attribution": ("> 95%", gt, 0.95),
    "negative": ("> 90%", gt, 0.90),
    "seconds p50": ("< 5 s", lt, 5),
    "seconds p95": ("< 10 s", lt, 10),
}
"""Limits of the research: as text, and as a rule over a share or seconds."""


class Question(StrictModel):
    """A question with a known answer: the documents that hold it, by the end of their path."""

    id: str
    kind: Literal["keyword", "paraphrase", "multi", "negative"]
    query: str
    sources: tuple[str, ...]


def read_questions() -> list[Question]:
    """Return the 24 questions."""
    data = Path(__file__).with_name("quotes.json").read_bytes()
    return TypeAdapter(list[Question]).validate_json(data)


class Listener:
    """A model whose last response can be read as it came, and how long it took."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self.model, self.base_url = llm.model, llm.base_url
        self.raw: str | None = None
        self.seconds = 0.0

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        """Ask the model, and keep what it writes."""
        started = time.monotonic()
        try:
            response = await self._llm.generate_with_tools(messages, request)
        finally:
            self.seconds = time.monotonic() - started
        self.raw = response.content
        return response


async def asked(
    question: Question, llm: LLM, documents: DocumentStore
) -> dict[str, float]:
    """Ask a model one question; return the marks of its raw response, and the seconds."""
    listener, run = Listener(llm), Run()
    once = replace(run.limits, structured_output_max_retries=0)
    found = await find_quotes(
        question.query,
        documents=documents,
        run=replace(run, models=[listener], limits=once),
    )
    return {**marks(question, listener.raw, found.chunks), "seconds": listener.seconds}


def marks(
    question: Question, raw: str | None, chunks: Sequence[Chunk]
) -> dict[str, float]:
    """Return the marks of a raw response to what was retrieved, from 0 to 1; None is no response.

    If nothing was retrieved no model is asked, which is right for a question without an answer.
    """
    if raw is None and not chunks:
        is_negative = question.kind == "negative"
        return {"negative": 1} if is_negative else {"verbatim": 0, "attribution": 0}
    is_json, answer = read(raw or "")
    found: dict[str, float] = {"json_parse": is_json, "schema": answer is not None}
    snippets = answer.snippets if answer else []
    if question.kind == "negative":
        return found | {"negative": bool(answer and answer.no_results and not snippets)}
    count = len(snippets) or 1
    is_verbatim = [
        any(find_verbatim(one.content, chunk.text) for chunk in chunks)
        for one in snippets
    ]
    is_attributed = [_is_attributed(one, chunks) for one in snippets]
    shares = {
        "verbatim": sum(is_verbatim) / count,
        "attribution": sum(is_attributed) / count,
    }
    return found | shares


def read(content: str) -> tuple[bool, QuotesAnswer | None]:
    """Tell whether a text is a JSON object, and return the answer in it; nothing is repaired."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return False, None
    try:
        return isinstance(value, dict), QuotesAnswer.model_validate(
            value, strict=True, by_name=False
        )
    except ValidationError:
        return isinstance(value, dict), None


def _is_attributed(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    """Tell whether id and title are those of one source, which holds a verbatim snippet."""
    named = (snippet.source_id, snippet.source_title)
    if named not in {(chunk.document_id, chunk.title) for chunk in chunks}:
        return False
    is_verbatim = any(find_verbatim(snippet.content, chunk.text) for chunk in chunks)
    return not is_verbatim or find_in_chunks(snippet, chunks) is not None


def summary(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each mark over the questions that it applies to, and the seconds."""
    seconds = sorted(marks["seconds"] for marks in found)
    shares = {
        name: fmean(marks[name] for marks in found if name in marks)
        for name in LIMITS
        if any(name in marks for marks in found)
    }
    return shares | {
        f"seconds p{p}": seconds[ceil(p * len(seconds) / 100) - 1] for p in (50, 95)
    }


def cell(name: str, value: float) -> str:
    """Return a value as text, marked if it does not reach its limit."""
    _, passes, limit = LIMITS[name]
    text = f"{value:.1f} s" if name.startswith("seconds") else f"{value:.0%}"
    return text if passes(value, limit) else f"{text} ✗"


async def main(models: Sequence[str]) -> None:
    """Print the table."""
    settings, columns = load_settings(), dict[str, dict[str, float]]()
    async with open_bench(settings, starter=True) as bench:
        for name in models or [settings.llm_model]:
            for letter, mode in MODES.items():
                in_mode = settings.model_copy(update={"llm_response_mode": mode})
                llm = model_of(in_mode, name)
                bench.stack.push_async_callback(llm.close)
                found = [
                    await asked(question, llm, bench.documents)
                    for question in read_questions()
                ]
                columns[f"{name} {letter}"] = summary(found)
    table = Table("metric", "limit", *columns)
    for name, (limit, _, _) in LIMITS.items():
        table.add_row(
            name, limit, *(cell(name, found.get(name, 0)) for found in columns.values())
        )
    Console().print(table)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
