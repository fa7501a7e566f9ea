"""Whatever is written to the bot, a text of twice the length takes about twice the CPU.

Every pattern of the product is found by itself: all modules are imported, all data files loaded,
and `agent.text.pattern` knows what it made. Functions that make some of what they are given
are found in the sources. Each pattern meets texts made of its own parts.
"""

import ast
import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import pytest

from agent import lengths, markdown, text
from agent.care.concerns import read_care
from agent.documents.citations import _brackets, citations, kept, plain_brackets, statements
from agent.documents.misquotes import misquoted
from agent.documents.passages import best_passage
from agent.documents.verbatim import verbatim
from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.engine.messages import sendable
from agent.fallback import read_request
from agent.places.queries import place_named, queries_of_lines
from agent.senses.pdf import Unreadable
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.grounding import Grounds
from agent.text import Pattern, pattern, patterns
from agent.tracing.masking import _names_pattern, mask
from agent.turn import security_flags
from bot.telegram.look_ups import read_find, read_question
from bot.telegram.render import split_messages
from bot.updates.bursts import LARGEST_BURST, joined, one_message
from db.documents.chunking import Section, chunk
from db.documents.finding import terms
from db.documents.reading import Content, read_document
from tests.hostile import Hostile, hostile_to, looks_far, superlinear
from tests.library import SUR_LIE
from tests.parsing import parsed

ROOMS = ("agent", "bot", "db", "config")
PARTS = 8
"""Of the patterns, each a test, so that several processes share them."""
SIZE = 1500
"""Characters of a text at which a pattern that looks far is seen to, nine times in ten."""
SEEN = 50
"""How often a pattern that grows is looked at: beside other work a look may miss it."""


def _modules(name: str) -> Iterator[ModuleType]:
    module = importlib.import_module(name)
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}."):
        if not found.name.endswith("__main__"):
            yield from _modules(found.name)


def _name(made: Any) -> str:
    return f"{made.__module__}.{made.__name__}"


def _loaders(module: ModuleType) -> Iterator[Any]:
    """The loaders of a module: its remembered functions that need nothing."""
    for made in list(vars(module).values()):
        if not hasattr(made, "cache_info") or made.__module__ != module.__name__:
            continue
        if not inspect.signature(made).parameters:
            yield made


LATE: dict[Callable[..., Any], Callable[[], object]] = {
    _names_pattern: lambda: _names_pattern(("Anna Müller", "Rose", "O'Neill-Śmigły", "葡萄")),
    _brackets: lambda: _brackets(["a[1].md", "[b]/c d.md"]),
    text.of_words: lambda: text.of_words([r"\ba *$"]),
}
"""Functions that make patterns of what they are given, each with a call that makes some."""


MAKING = (pattern, text.of_words, Pattern)
ENGINES = {"re", "re2", "regex", "fnmatch", "_sre", "sre_compile"}
"""What makes patterns of its own; `agent.text` alone may use one."""


def _meant(module: ModuleType, node: ast.AST) -> object:
    """What a name in a module stands for, dotted ones and those given on import too."""
    if isinstance(node, ast.Name):
        return getattr(module, node.id, None)
    if isinstance(node, ast.Attribute):
        return getattr(_meant(module, node.value), node.attr, None)
    return None


def _within(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[ast.AST]:
    """What a function does: neither what it says of types, nor names it gives values itself."""
    body = function.body if isinstance(function.body, list) else [function.body]
    nodes = [node for part in body for node in ast.walk(part)]
    types = [getattr(node, "annotation", None) or getattr(node, "returns", None) for node in nodes]
    told = {id(node) for each in types if each is not None for node in ast.walk(each)}
    own = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return (each for each in nodes if id(each) not in told and getattr(each, "id", "") not in own)


def _makers(module: ModuleType, tree: ast.AST) -> Iterator[str]:
    """The functions of a module, of any kind, that make patterns or hand on what makes them."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for node in (each for each in ast.walk(tree) if isinstance(each, kinds)):
        if any(_meant(module, each) is made for each in _within(node) for made in MAKING):
            yield f"{module.__name__}.{getattr(node, 'name', 'lambda')}"


def _engines(tree: ast.AST) -> Iterator[str]:
    """What a module has to do with patterns that are not `agent.text`'s."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.split(".")[0] in ENGINES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ENGINES:
            yield str(node.module)
        elif isinstance(node, ast.Constant) and node.value in ("python-re", "regex_engine"):
            yield f"pydantic's {node.value}"
        elif isinstance(node, ast.keyword) and node.arg == "regex_engine":
            yield "pydantic's regex_engine"
        elif isinstance(node, ast.Attribute) and node.attr == "Regex":
            yield "telegram's Regex"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = (each.value for each in node.args if isinstance(each, ast.Constant))
            yield from (str(each) for each in names if each in ENGINES)


@cache
def found() -> tuple[dict[str, Pattern], set[str]]:
    """Every pattern, and by name what was asked for some."""
    loaders = [each for room in ROOMS for module in _modules(room) for each in _loaders(module)]
    asked = {_name(each) for each in [*loaders, *LATE]}
    kept = [*(load() for load in loaders), *(make() for make in LATE.values())]
    for each in kept:
        for name, made in vars(type(each)).items():
            if isinstance(made, cached_property):
                getattr(each, name)
                asked.add(f"{type(each).__module__}.{name}")
    return {each.source: each for each in sorted(patterns(), key=lambda each: each.source)}, asked


def _sources() -> Iterator[tuple[ModuleType, ast.AST]]:
    for module in (module for room in ROOMS for module in _modules(room)):
        yield module, ast.parse(inspect.getsource(module))


def test_each_function_that_makes_patterns_is_asked_for_some() -> None:
    makers = {each for module, tree in _sources() for each in _makers(module, tree)}
    makers -= {_name(pattern), _name(text.of_words)}

    assert makers - found()[1] == set()
    assert {_name(each) for each in LATE} - {_name(text.of_words)} <= makers


def test_no_other_engine_of_patterns_is_used() -> None:
    used = {(module.__name__, each) for module, tree in _sources() for each in _engines(tree)}

    assert used == {("agent.text", "re"), ("agent.text", "re2")}


@pytest.mark.parametrize(
    "written",
    [
        "def late():\n    return pattern('a')",
        "def late(*, x):\n    return pattern(x)",
        "async def late(x):\n    return pattern(x)",
        "class Late:\n    def of(self, x):\n        return renamed(x)",
        "late = lambda x: text.pattern(x)",
        "def late(x):\n    return list(map(Pattern, x))",
    ],
)
def test_a_function_that_makes_patterns_is_found_however_it_is_written(written: str) -> None:
    module = ModuleType("late")
    vars(module).update(pattern=pattern, renamed=pattern, text=text, Pattern=Pattern)

    assert len(list(_makers(module, ast.parse(written)))) == 1


@pytest.mark.parametrize(
    "written",
    [
        "from re import compile",
        "def late():\n    import re2",
        "engine = importlib.import_module('re')",
        "from fnmatch import fnmatch",
        "late = filters.Regex('a')",
        "model_config = {'regex_engine': 'python-re'}",
    ],
)
def test_an_engine_is_found_however_it_is_had(written: str) -> None:
    assert list(_engines(ast.parse(written)))


def test_the_patterns_of_all_rooms_and_data_files_are_found() -> None:
    sources = "\n".join(found()[0])

    assert len(found()[0]) > 150
    for part in ("bearer", "negeer", "```tool_code", "Müller", r"\[b\]", "suicidal"):
        assert part in sources


def test_every_pattern_can_be_made() -> None:
    for made in found()[0].values():
        made.search("a")


def far() -> list[Pattern]:
    """Those whose matches may be of any length: all others are linear by their making."""
    return [made for source, made in found()[0].items() if looks_far(source)]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_pattern_takes_linear_time(part: int) -> None:
    def work(text: str) -> None:
        made.match(text)
        for _ in made.finditer(text):
            pass

    for made in far()[part::PARTS]:
        for hostile in hostile_to(made.source):
            assert superlinear(work, hostile, SIZE) is None, made.source


def test_a_pattern_that_looks_far_from_every_match_is_found() -> None:
    find = pattern(r"a(?:[^b]*b)?").findall
    found = (superlinear(find, Hostile("", "a"), SIZE) for _ in range(SEEN))

    assert any(found)


REPEATED = (
    "a", "A", "é", "_", ". ", "! ", "\n", "\n\n", " ", "\t", "[a.md] ", "[a.md]. ", "[", "]", "(",
    "“", "”", "“a” ", "> ", "> a\n", "- ", "- a [a.md]\n", "# a\n", "**", "**a** ", "__a", "'a ",
    "1", "1. ", "€1 ", "Aa 1999 ", "Château Aa ", "a: ", "`", "```\n", "e.g. ", "\u0301",
    "葡", "。",
    "\ud800", "\u200b", "{", "}", '{"a":', '"', "\\", "\\u", ",", "<think>", "</think>",
    "<a ", "&#",
    "https://a.b/", "@a", "a.b ", "red wine ", "not ", "12 ", "+", "eyJ", "sk-", "Bearer ",
    "“Lees are yeast” [a.md]. ", "| a ", "* ", "1) a\n", "~~~\n", "_a_", "{wine:a}", "Action: a\n",
)  # fmt: skip
LONE = ("", '{"intro": "', "red wine ", "[", "<think>", "# ")
EVIDENCE = Evidence(found={SUR_LIE.id: SUR_LIE}, asked=["Lees are yeast"])
ANSWER = SOMMELIER
MASKING = ("Anna Müller", "Rose")


def _in_an_answer(said: str) -> None:
    answer = {"response_type": "informational", "intro": said, "wines": [], "closing": ""}
    parsed(json.dumps(answer), ANSWER, EVIDENCE)


def _burst(said: str) -> None:
    lines = [{"text": each, "entities": []} for each in said.split("\n")[:LARGEST_BURST]]
    one_message([*lines, {"text": said[: len(said) // 2]}, {"caption": said}])


READERS: dict[str, Callable[[str], object]] = {
    "fold": text.fold,
    "words": text.words,
    "sentences": text.sentences,
    "truncate": lambda said: text.truncate_at_boundary(said, len(said) // 2),
    "language": text.language_of,
    "visible": markdown.visible,
    "escaped": markdown.escape,
    "live": lambda said: list(markdown.live(said)),
    "rendered": split_messages,
    "injection": security_flags,
    "care": read_care,
    "burst": _burst,
    "fallback": read_request,
    "answer": lambda said: parsed(said, ANSWER, EVIDENCE, ["search"]),
    "answer's field": _in_an_answer,
    "feedback": fence,
    "sendable": sendable,
    "citations": lambda said: citations(said, ["a.md"]),
    "statements": lambda said: statements(said, ["a.md"]),
    "kept": lambda said: kept(said, ["a.md"], lambda sentence: True),
    "brackets": plain_brackets,
    "misquoted": lambda said: misquoted(said, EVIDENCE),
    "ungrounded": lambda said: Grounds(EVIDENCE).wrong_figures(said),
    "verbatim": lambda said: verbatim(said, SUR_LIE.text),
    "passage": lambda said: best_passage(said, "lees"),
    "queries": queries_of_lines,
    "place": place_named,
    "masked": lambda said: mask(said, MASKING, ("0fd3c1a2",)),
    "question": read_question,
    "find": read_find,
    "chunks": lambda said: chunk([Section((), said)]),
    "terms": terms,
    "text file": lambda said: _read_file(said, "a.txt"),
    "Markdown file": lambda said: _read_file(said, "a.md"),
}


SIZES = {"rendered": 4000}
"""Characters where more than one message must be made of a text."""


def _read_file(said: str, path: str) -> None:
    with suppress(Unreadable):
        read_document(Content(said.encode("utf-8", "replace"), ""), path)


@pytest.mark.parametrize("name", READERS)
def test_whatever_meets_foreign_text_takes_linear_time(name: str) -> None:
    def work(said: str) -> None:
        with suppress(ValueError):
            READERS[name](said)

    work("a")  # what is loaded once does not count
    size = SIZES.get(name, 600)
    slow = [superlinear(work, Hostile("", part), size) for part in REPEATED]
    slow += [superlinear(work, Hostile(begun, "a"), size) for begun in LONE]

    assert [each for each in slow if each] == []


@pytest.mark.parametrize("count", [1, 2, LARGEST_BURST])
def test_a_burst_is_cut_before_anything_looks_at_it(count: int) -> None:
    said = "\n" * 9000
    marks = [{"type": "bold", "offset": at, "length": 1} for at in (0, 7000, 8999)]
    message = {"message": {"text": said, "entities": marks}}

    found = joined([{"update_id": 1, **message}] * count)["message"]

    assert len(found["text"]) == lengths.MESSAGE
    assert [each["offset"] for each in found["entities"]] == [0, 7000]
