"""Every pattern that meets text from outside takes linear time: steps counted at n and at 2n."""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

import pytest

from agent import text
from agent.documents.citations import citations, kept, uncited
from agent.documents.grounding import misquoted, ungrounded_text
from agent.documents.passages import best_passage, verbatim
from agent.engine.contract import Evidence
from agent.places.queries import queries_of_lines
from db.documents.chunking import Section, chunk
from db.documents.terms import index_terms
from tests.library import SUR_LIE
from tests.steps import lines, superlinear

ROOMS = ("agent", "db.documents")


def _modules(name: str) -> Iterator[ModuleType]:
    module = importlib.import_module(name)
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}."):
        yield from _modules(found.name)


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _patterns(each)
    elif isinstance(value, Mapping):
        for each in list(value.values()):
            yield from _patterns(each)


FOUND = {
    (name, each.pattern): each
    for room in ROOMS
    for module in _modules(room)
    for name, value in vars(module).items()
    for each in _patterns(value)
}


@pytest.mark.parametrize("pattern", FOUND.values(), ids=[name for name, _ in FOUND])
def test_a_pattern_takes_linear_time(pattern: re.Pattern[str]) -> None:
    assert superlinear(pattern) is None


HOSTILE = (
    "a", "A", "é", ". ", "! ", "\n", "\n\n", " ", "[a.md] ", "[a.md]. ", "[", "]", "“", "”", "“a” ",
    "> ", "> a\n", "- ", "- a [a.md]\n", "# a\n", "**a**\n", "'a ", "1", "1. ", "€1 ", "Aa 1999 ",
    "Château Aa ", "a: ", "`", "e.g. ", "\u0301", "\u0316\u0301", "葡", "。",
    "“Lees are yeast” [a.md]. ",
)  # fmt: skip
EVIDENCE = Evidence(found={SUR_LIE.id: SUR_LIE}, asked=["Lees are yeast"])
READERS: dict[str, Callable[[str], object]] = {
    "fold": text.fold,
    "words": text.words,
    "sentences": text.sentences,
    "truncate": lambda said: text.truncate_at_boundary(said, len(said) // 2),
    "language": text.language_of,
    "citations": lambda said: citations(said, ["a.md"]),
    "uncited": uncited,
    "kept": lambda said: kept(said, lambda sentence: True),
    "misquoted": lambda said: misquoted(said, EVIDENCE),
    "ungrounded": lambda said: ungrounded_text(said, EVIDENCE),
    "verbatim": lambda said: verbatim(said, SUR_LIE.text),
    "passage": lambda said: best_passage(said, "lees"),
    "lines": queries_of_lines,
    "chunks": lambda said: chunk([Section((), said)]),
    "terms": index_terms,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_reading_takes_steps_in_proportion(read: Callable[[str], object]) -> None:
    for part in HOSTILE:
        said = part * (2000 // len(part))
        read(said)  # what is loaded and remembered once does not count
        once, twice = lines(lambda: read(said)), lines(lambda: read(said + said))  # noqa: B023
        assert twice <= 2.5 * once + 100, part


@pytest.mark.parametrize("pattern", [r"(?:a+)+b", r"\s+\Z", r"\d+€", r"(\w+\s?)*x", r".*a.*b"])
def test_a_pattern_that_takes_more_is_found(pattern: str) -> None:
    assert superlinear(re.compile(pattern)) is not None
