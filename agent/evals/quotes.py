"""Scores of a model's raw response to a question for quotes, and the limits it must pass.

    json_parse     the response is a JSON object as it is
    schema         it has every field of the schema
    verbatim       share of its snippets that are in a retrieved chunk word for word
    attribution    share of its snippets that name the source they are in, exactly
    negative       for a question without an answer: noResults and no snippet

`verbatim` and `attribution` apply to questions that have an answer; a response without a snippet
scores 0.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, lt
from typing import Final

from pydantic import ValidationError

from agent.documents.passages import Chunk
from agent.documents.quotes import MAX_SNIPPETS, QuotesAnswer, Snippet, find_in_chunks
from agent.documents.verbatim import verbatim
from agent.evals.dataset import Question
from agent.evals.evaluators import Mark

THRESHOLDS: Final[Mapping[str, tuple[str, Callable[[float, float], bool], float]]] = {
    "json_parse": ("100%", ge, 1),
    "schema": ("> 95%", gt, 0.95),
    "verbatim": ("> 80%", gt, 0.80),
    "attribution": ("> 95%", gt, 0.95),
    "negative": ("> 90%", gt, 0.90),
    "seconds p50": ("< 5 s", lt, 5),
    "seconds p95": ("< 10 s", lt, 10),
}
"""Limits of the research on structured snippets: as text, and as a rule over a share or seconds."""


def quote_marks(
    question: Question, raw: str | None, chunks: Sequence[Chunk], *, asked: bool
) -> dict[str, Mark]:
    """Return the marks of a raw response to what was retrieved; `asked` if a model was."""
    if not asked and not chunks:
        return _snippet_marks(question, None, chunks, "nothing was retrieved")
    answer, problem = _read(raw) if raw is not None else (None, "no response")
    is_json = problem not in ("no response", "no JSON")
    return {
        "json_parse": Mark(1) if is_json else Mark(0, problem),
        "schema": Mark(1) if answer else Mark(0, problem),
        **_snippet_marks(question, answer, chunks, problem),
    }


def _read(content: str) -> tuple[QuotesAnswer | None, str]:
    """Return the answer in a raw text, or None and what is wrong; nothing is repaired."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None, "no JSON"
    if not isinstance(value, dict):
        return None, "no JSON"
    try:
        answer = QuotesAnswer.model_validate(value, strict=True, by_name=False)
    except ValidationError as error:
        return None, f"schema: {'.'.join(map(str, error.errors()[0]['loc']))}"
    if len(answer.snippets) > MAX_SNIPPETS:
        return None, f"schema: more than {MAX_SNIPPETS} snippets"
    return answer, ""


def _snippet_marks(
    question: Question, answer: QuotesAnswer | None, chunks: Sequence[Chunk], problem: str
) -> dict[str, Mark]:
    if question.kind == "negative":
        # With nothing retrieved no model is asked, which is right for such a question.
        is_right = not chunks if answer is None else answer.no_results and not answer.snippets
        return {"negative": Mark(1) if is_right else Mark(0, problem or "quoted for a negative")}
    snippets = answer.snippets if answer else []
    problem = problem or ("" if snippets else "no snippet")
    return {
        "verbatim": _share(
            [_is_verbatim(snippet, chunks) for snippet in snippets], problem or "not verbatim"
        ),
        "attribution": _share(
            [_is_attributed(snippet, chunks) for snippet in snippets], problem or "wrong source"
        ),
    }


def _share(right: Sequence[bool], reason: str) -> Mark:
    return Mark(1) if right and all(right) else Mark(sum(right) / (len(right) or 1), reason)


def _is_verbatim(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    return any(verbatim(snippet.content, chunk.text) for chunk in chunks)


def _is_attributed(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    """Tell whether id and title are those of one source, which holds a verbatim snippet."""
    named = (snippet.source_id, snippet.source_title)
    if named not in {(chunk.document_id, chunk.title) for chunk in chunks}:
        return False
    return find_in_chunks(snippet, chunks) is not None or not _is_verbatim(snippet, chunks)
