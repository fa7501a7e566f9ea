"""The statements of an answer from documents, and the paths that they cite.

A statement is covered by a citation in its sentence, directly after its full stop, later in its
paragraph or list item, or on a following line of citations. Headings, lead-ins (they end in a
colon), questions, and the sentence "I don't have enough information" need no citation.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.documents.passages import Chunk
from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.text import Match, Pattern, escape, pattern, sentences, words

NOT_ENOUGH: Final = "I don't have enough information"
"""The sentence by which a model says that the excerpts do not hold the answer."""

INSIDE: Final = r"[^\[\]\n]+"
BRACKETS: Final = pattern(rf"\[({INSIDE})\]")
LEADING: Final = pattern(r"\A((?:\s*\[[^\[\]\n]+\][.,;]?)+)\s*(?:\Z|[^\P{L}a-z])")
MARKER: Final = pattern(r"\A\s*(?:(?:[-*•–]|\d{1,2}[.)])\s+|>\s?)")
HEADING: Final = pattern(r"\A(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|__[^_]+__:?)\Z")
SOURCE_LINE: Final = pattern(r"\A\W*(?:\w+\s?:)?\W*\Z")
BLANK_LINES: Final = pattern(r"\n{3,}")
STUCK: Final = pattern(r"([.!?…。！？])\[")
CITING_LINK: Final = pattern(
    r"\[(?P<label>[^\[\]\n]+)\]\((?P<target>[^()\n]+)\)|【(?P<wide>[^【】\n]+)】"
)
ENDS: Final = tuple(".!?…。！？")
SUFFIXES: Final = (".md", ".markdown", ".txt", ".htm", ".html", ".pdf")

Kind = Literal["statement", "heading", "question", "admission"]


@dataclass(frozen=True, slots=True)
class Cited:
    """A pair of brackets: the retrieved paths that it cites, and the `unknown` ones."""

    start: int
    end: int
    paths: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer: its kind, the paths that cover it, and the `unknown` ones."""

    text: str
    kind: Kind
    cites: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def needs_citation(self) -> bool:
        """Return whether this is a statement, not a heading, a question or an admission."""
        return self.kind == "statement"


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph, list item or heading: the list marker before it, and its sentences."""

    marker: str = ""
    stated: Sequence[Statement] = ()
    is_heading: bool = False


def citations(text: str, paths: Collection[str]) -> list[Cited]:
    """Return everything in square brackets as citations of `paths`.

    Several paths may share brackets, with commas or semicolons between them. Brackets without a
    letter or digit, such as an ellipsis, are no citation.
    """
    return [
        _cited(found, paths)
        for found in _brackets(paths).finditer(text)
        if any(map(str.isalnum, found[1]))
    ]


def _brackets(paths: Collection[str]) -> Pattern:
    """Return the pattern of brackets; paths that hold brackets themselves are tried first."""
    odd = [escape(path) for path in paths if "[" in path or "]" in path]
    return pattern(rf"\[({'|'.join([*odd, INSIDE])})\]") if odd else BRACKETS


def _cited(found: Match, paths: Collection[str]) -> Cited:
    named = [_unmarked(found[1], paths)]
    if named[0] not in paths:
        parts = found[1].replace(";", ",").split(",")
        named = [_unmarked(part, paths) for part in parts if part.strip()]
    known = tuple(path for path in named if path in paths)
    return Cited(*found.span(), known, tuple(path for path in named if path not in paths))


def _unmarked(path: str, paths: Collection[str]) -> str:
    """Return a path without the marks that a model may have put around it."""
    bare = path.strip()
    return bare if bare in paths else bare.strip(" \t`'\"*_")


def without_citations(text: str, paths: Collection[str] = ()) -> str:
    """Return a text without its citations."""
    parts, end = [], 0
    for cited in citations(text, paths):
        parts.append(text[end : cited.start].rstrip())
        end = cited.end
    return "".join([*parts, text[end:]])


def plain_brackets(text: str) -> str:
    """Return a text with every citation in plain brackets.

    Some models make links of them, `[Sur lie](sur-lie.md)`, or write wide brackets.
    """
    return CITING_LINK.sub(_as_citation, text)


def _as_citation(found: Match) -> str:
    label, path = found["label"] or "", found["target"] or found["wide"]
    if not is_path(path) or "://" in path:
        return found[0]
    return f"[{path}]" if label in {"", path} else f"{label} [{path}]"


def unretrieved_path(text: str, evidence: Evidence) -> str | None:
    """Return feedback on the first path in brackets that no tool of the turn returned, or None.

    For answers that cite documents beside other things: other brackets are left alone.
    """
    paths = {found.path for found in evidence.sources.values() if isinstance(found, Chunk)}
    for cited in citations(text, paths):
        for name in cited.unknown:
            if is_path(name):
                return f"the text cites [{fence(name)}], which no tool returned; leave it out"
    return None


def is_path(name: str) -> bool:
    """Return whether a text in brackets reads like a path: with a folder, or a file's ending."""
    is_one_word = name.split() == [name]
    return is_one_word and ("/" in name[:-1] or name[1:].lower().endswith(SUFFIXES))


def statements(text: str, paths: Collection[str]) -> list[Statement]:
    """Return the sentences of an answer in order, each with the paths that cover it."""
    return [statement for line in _lines(text, paths) for statement in line.stated]


def keep_sentences(text: str, paths: Collection[str], accept: Callable[[Statement], bool]) -> str:
    """Return an answer without the sentences that `accept` rejects, otherwise unchanged.

    A statement that was covered by the citation of a later sentence gets this citation itself. A
    heading or lead-in is removed if no sentence remains below it.
    """
    lines = _lines(text, paths)
    every = [statement for line in lines for statement in line.stated]
    if all(accept(found) and _with_citation(found) == found.text for found in every):
        return text.strip()
    left, has_below = list[str](), False
    for line in reversed(lines):
        said = " ".join(_with_citation(found) for found in line.stated if accept(found))
        leads_in = line.is_heading or said.endswith((":", "："))
        if line.stated and (not said or (leads_in and not has_below)):
            continue
        has_below = not line.is_heading if said else has_below
        left.append(line.marker + said)
    return BLANK_LINES.sub("\n\n", "\n".join(reversed(left))).strip()


def _with_citation(statement: Statement) -> str:
    if not statement.needs_citation or has_citation(statement.text):
        return statement.text
    return " ".join([statement.text, *(f"[{path}]" for path in statement.cites)])


def _lines(text: str, paths: Collection[str]) -> list[Line]:
    """Return the lines of an answer with their sentences; a blank line has none.

    The lines are read from the last to the first: a citation covers the sentences before it in its
    line, and a line of citations covers the line before it.
    """
    found, covering = list[Line](), list[Cited]()
    for line in reversed(_unwrapped(text)):
        if only_cites(line):
            covering = citations(line, paths)
            if unknown := _unknown_names(covering):
                found.append(Line("", [Statement(line, "heading", unknown=unknown)]))
            continue
        marker, is_heading = MARKER.match(line), HEADING.match(line) is not None
        lead = marker[0] if marker and not is_heading else ""
        stated = list[Statement]()
        for sentence in reversed(cited_sentences(line[len(lead) :].strip())):
            covering = citations(sentence, paths) or covering
            cites = tuple(dict.fromkeys(path for cited in covering for path in cited.paths))
            kind = "heading" if is_heading else kind_of(sentence)
            stated.append(Statement(sentence, kind, cites, _unknown_names(covering)))
        covering = covering if not stated else []
        found.append(Line(lead, stated[::-1], is_heading))
    return found[::-1]


def _unknown_names(found: Iterable[Cited]) -> tuple[str, ...]:
    return tuple(name for cited in found for name in cited.unknown)


def _unwrapped(text: str) -> list[str]:
    """Return the paragraphs, list items and headings of a text, each as one line."""
    joined = list[str]()
    for line in text.strip().splitlines():
        begins = not line.strip() or MARKER.match(line) or HEADING.match(line.strip())
        is_open = joined and joined[-1].strip() and not HEADING.match(joined[-1])
        if begins or not is_open or only_cites(line) or only_cites(joined[-1]):
            joined.append(line.rstrip())
        else:
            joined[-1] += f" {line.strip()}"
    return joined


def cited_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the citations that follow its full stop."""
    found: list[str] = []
    for sentence in sentences(STUCK.sub(lambda stuck: f"{stuck[1]} [", text)):
        leading = LEADING.match(sentence) if found and _is_ended(found[-1]) else None
        rest = sentence[leading.end(1) :].strip() if leading else sentence
        if leading:
            found[-1] = f"{found[-1]} {leading[1].strip()}"
        if rest:
            found.append(rest)
    return found


def _is_ended(sentence: str) -> bool:
    return sentence.rstrip("\"'»”’)*_").endswith(ENDS)


def only_cites(text: str) -> bool:
    """Return whether a text consists of citations only, such as "Sources: [a.md]"."""
    return has_citation(text) and SOURCE_LINE.match(BRACKETS.sub("", text)) is not None


def has_citation(sentence: str) -> bool:
    """Return whether a sentence has brackets with a letter or digit in them."""
    return any(any(map(str.isalnum, found[1])) for found in BRACKETS.finditer(sentence))


def kind_of(sentence: str) -> Kind:
    """Return the kind of a sentence, by its form alone."""
    bare = sentence.strip().strip("*_")
    if admits_not_enough(bare):
        return "admission"
    if has_citation(bare):
        return "statement"
    if bare.endswith((":", "：")):
        return "heading"
    if bare.endswith(("?", "？")) or not any(map(str.isalpha, bare)):
        return "question"
    return "statement"


def admits_not_enough(text: str) -> bool:
    """Return whether a text begins with "I don't have enough information"."""
    admission = words(NOT_ENOUGH)
    return words(text[: 2 * len(NOT_ENOUGH)])[: len(admission)] == admission
