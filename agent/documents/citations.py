"""Citations in an answer: what counts as one, which statements have one, what may be kept.

A statement is covered by a citation in its own sentence, or by one that comes later in the same
paragraph or list item, so that one citation can close a paragraph, from a line of its own too.
Headings, phrases that only lead in (they end in a colon), questions, courtesies and the admission
that the excerpts do not suffice state nothing that could be cited. What admits something or is
courteous is told by a classifier, fitted by `python -m benchmarks.classifiers`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Final, Literal, cast

from agent.classifier import classifier
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.tables import read_toml
from agent.text import Match, Pattern, escape, pattern, sentences

INSIDE: Final = r"[^\[\]\n]+"
BRACKETS: Final = pattern(rf"\[({INSIDE})\]")
LEADING: Final = pattern(r"\A((?:\s*\[[^\[\]\n]+\][.,;]?)+)\s*(?:\Z|[^\P{L}a-z])")
MARKER: Final = pattern(r"\A\s*(?:(?:[-*•–]|\d{1,2}[.)])\s+|>\s?)")
HEADING: Final = pattern(r"\A(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|__[^_]+__:?)\Z")
SOURCE_LINE: Final = pattern(r"\A\W*(?:\w+\s?:)?\W*\Z")
STUCK: Final = pattern(r"([.!?…。！？])\[")
ENDS: Final = tuple(".!?…。！？")
SUFFIXES: Final = (".md", ".markdown", ".txt", ".htm", ".html", ".pdf")
CLAUSE: Final = pattern(r"\s*[,;–—]\s")
ADMISSIONS: Final = Path(__file__).with_name("admissions.bin")
LABELS: Final = ("statement", "courtesy", "en", "de", "fr", "es", "it", "nl", "pt", "ru")
"""What a sentence without a citation is: an admission by its language."""
LEAST_LIKELY: Final = 0.3
"""How likely an admission or a courtesy must be."""
LEAST_WORDS: Final = 4
"""Words of an admission that a sentence begins with."""

Kind = Literal["statement", "admission", "courtesy", "heading"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer, what it is, and all that is cited where it is covered.

    A phrase that leads in is a heading, a question a courtesy.
    """

    text: str
    cites: tuple[str, ...]
    kind: Kind

    @property
    def is_covered(self) -> bool:
        """Whether it has a citation, or needs none."""
        return bool(self.cites) or self.kind != "statement"


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list item or heading: the gap and marker before it, and its sentences."""

    gap: str
    marker: str
    sentences: tuple[str, ...]
    heading: bool = False

    @property
    def text(self) -> str:
        """The block as it is written."""
        return self.marker + " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class Cited:
    """A bracket of an answer, and the retrieved paths it names; `unknown` is what else it names."""

    start: int
    end: int
    paths: tuple[str, ...]
    unknown: tuple[str, ...]


def citations(text: str, paths: Collection[str]) -> list[Cited]:
    """Return everything in square brackets, held against the paths that may be cited.

    Several paths may share brackets, with commas or semicolons between them. Brackets without a
    letter or digit, an ellipsis say, are no citation.
    """
    return [
        _cited(match, paths)
        for match in _brackets(paths).finditer(text)
        if any(character.isalnum() for character in match[1])
    ]


def _brackets(paths: Collection[str]) -> Pattern:
    """Brackets, those around paths that hold brackets themselves first."""
    odd = [escape(path) for path in paths if "[" in path or "]" in path]
    return pattern(rf"\[({'|'.join([*odd, INSIDE])})\]") if odd else BRACKETS


def _cited(match: Match, paths: Collection[str]) -> Cited:
    named = [_named(match[1], paths)]
    if named[0] not in paths:
        named = [
            _named(part, paths) for part in match[1].replace(";", ",").split(",") if part.strip()
        ]
    known = tuple(path for path in named if path in paths)
    return Cited(*match.span(), known, tuple(path for path in named if path not in paths))


def _named(path: str, paths: Collection[str]) -> str:
    """A path as it is, or without the marks that a model put around it."""
    said = path.strip()
    return said if said in paths else said.strip(" \t`'\"*_")


def unretrieved_path(text: str, evidence: Evidence) -> str | None:
    """Return feedback on the first path in brackets that no tool of the turn returned, or None.

    For answers that cite documents beside other things: other brackets are left alone.
    """
    paths = {found.path for found in evidence.found.values() if isinstance(found, Chunk)}
    for cited in citations(text, paths):
        for name in cited.unknown:
            if is_path(name):
                return f"the text cites [{fence(name)}], which no tool returned; leave it out"
    return None


def is_path(name: str) -> bool:
    """Say whether what stands in brackets reads like a path: a folder in it, or a file's ending."""
    one_word = name.split() == [name]
    return one_word and ("/" in name[:-1] or name[1:].lower().endswith(SUFFIXES))


def blocks(text: str) -> list[Block]:
    """Return the paragraphs, list items and headings of an answer, in order."""
    made: list[Block] = []
    lines: list[str] = []
    gap = ""
    for line in [*text.strip().splitlines(), ""]:
        heading = HEADING.match(line.strip()) is not None
        if lines and (not line.strip() or heading or MARKER.match(line)):
            made.append(_block("\n".join(lines), gap if made else ""))
            lines, gap = [], "\n"
        if heading:
            made.append(Block(gap if made else "", "", (line,), heading=True))
            gap = "\n"
        elif line.strip():
            lines.append(line)
        else:
            gap = "\n\n"
    return made


def _block(text: str, gap: str) -> Block:
    marker = MARKER.match(text)
    lead = marker[0] if marker else ""
    return Block(gap, lead, tuple(_with_citations_after(text[len(lead) :])))


def _with_citations_after(text: str) -> Iterator[str]:
    """Sentences, each with the citations that follow its full stop."""
    held = ""
    for sentence in sentences(STUCK.sub(lambda found: f"{found[1]} [", text)):
        leading = LEADING.match(sentence) if _is_ended(held) else None
        rest = sentence
        if leading:
            held = f"{held} {leading[1].strip()}"
            rest = sentence[leading.end(1) :].strip()
        if held and rest:
            yield held
        held = rest or held
    if held:
        yield held


def _is_ended(said: str) -> bool:
    return said.rstrip("\"'»”’)*_").endswith(ENDS)


def statements(text: str, paths: Collection[str] = ()) -> list[Statement]:
    """Return the sentences of an answer in order, with what each of them cites."""
    return [each for _, found in stated_in(blocks(text), paths) for each in found]


def uncited(text: str) -> list[str]:
    """Return the statements of an answer that no citation covers, in order."""
    return [each.text for each in statements(text) if not each.is_covered]


def reworded(text: str, say: Callable[[Statement], str], paths: Collection[str] = ()) -> str:
    """Return an answer with what `say` makes of each sentence; nothing where that is empty."""
    left = [
        replace(block, sentences=tuple(filter(None, map(say, stated))))
        for block, stated in stated_in(blocks(text), paths)
    ]
    return "".join(block.gap + block.text for block in without_idle(left)).strip()


def kept(text: str, accept: Callable[[Statement], bool], paths: Collection[str] = ()) -> str:
    """Return an answer without sentences that `accept` rejects, or no citation covers then."""
    left = reworded(text, lambda each: each.text if accept(each) else "", paths)
    return reworded(left, lambda each: each.text if each.is_covered else "", paths)


def stated_in(
    found: Sequence[Block], paths: Collection[str]
) -> Iterator[tuple[Block, list[Statement]]]:
    """Yield each block with its sentences; a line of citations behind a block closes it."""
    for block, following in zip_longest(found, found[1:]):
        closing = following.text if following is not None and only_cites(following.text) else ""
        cites = _names(closing, paths)
        stated: list[Statement] = []
        for sentence in reversed(block.sentences):
            cites = _names(sentence, paths) or cites
            kind = "heading" if block.heading else _kind(sentence)
            stated.append(Statement(sentence, cites, kind))
        yield block, stated[::-1]


def without_citations(text: str, paths: Collection[str] = ()) -> str:
    """Return a text without what is in its square brackets, if that is a citation."""
    parts, end = [], 0
    for cited in citations(text, paths):
        parts.append(text[end : cited.start].rstrip())
        end = cited.end
    return "".join([*parts, text[end:]])


def _names(text: str, paths: Collection[str]) -> tuple[str, ...]:
    return tuple(name for cited in citations(text, paths) for name in cited.paths + cited.unknown)


def without_idle(found: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks that say something: not empty, no heading or lead-in with nothing below."""
    filled = [block for block in found if block.sentences]
    for block, following in zip_longest(filled, filled[1:]):
        leads_in = block.heading or block.text.rstrip().endswith(":")
        if not leads_in or (following is not None and not following.heading):
            yield block


def only_cites(text: str) -> bool:
    """Say whether a text is nothing but citations: "Sources: [a.md]"."""
    return has_citation(text) and SOURCE_LINE.match(BRACKETS.sub("", text)) is not None


def has_citation(sentence: str) -> bool:
    """Say whether there are brackets in it that hold more than signs."""
    return any(any(map(str.isalnum, match[1])) for match in BRACKETS.finditer(sentence))


def _kind(sentence: str) -> Kind:
    said = sentence.strip().strip("*_")
    if has_citation(said):
        return "statement"
    if said.endswith((":", "：")):
        return "heading"
    if said.endswith(("?", "？")) or not any(map(str.isalpha, said)):
        return "courtesy"
    label = _label(said)
    return cast(Kind, label) if label in LABELS[:2] else "admission"


@lru_cache(maxsize=1024)
def _label(sentence: str) -> str:
    """What a sentence is, or what it begins with if that is an admission: one by its language."""
    begun = (sentence[: found.start()] for found in CLAUSE.finditer(sentence))
    for said in (sentence, *(each for each in begun if len(each.split()) >= LEAST_WORDS)):
        likely = classifier(ADMISSIONS).likelihoods(said)
        admits = 1 - likely["statement"] - likely["courtesy"]
        if admits >= max(LEAST_LIKELY, likely["courtesy"]):
            return max(LABELS[2:], key=likely.__getitem__)
    likely = classifier(ADMISSIONS).likelihoods(sentence)
    return "courtesy" if likely["courtesy"] >= LEAST_LIKELY else "statement"


def admits(sentence: str) -> bool:
    """Say whether a sentence says of the documents that they do not say something."""
    return _kind(sentence) == "admission"


def admission(sentence: str, *, rest: bool = False) -> str:
    """Return the admission in the language of a sentence; `rest` if something was answered."""
    return _admissions()["rest" if rest else "all"][_label(sentence.strip().strip("*_"))]


@cache
def _admissions() -> Mapping[str, Mapping[str, str]]:
    return read_toml(dict[str, dict[str, str]], Path(__file__).with_name("admissions.toml"))


def admits_not_enough(text: str) -> bool:
    """Say whether a text opens with "I don't have enough information", in whichever words."""
    found = blocks(text)
    return bool(found and found[0].sentences) and admits(found[0].sentences[0])
