"""The statements of an answer from documents, the paths that they cite, and their numbers.

A statement is covered by a citation in its sentence, directly after its full stop, later in its
paragraph or list item, or on a following line of citations. Headings, lead-ins (they end in a
colon), questions, and the sentence "I don't have enough information" need no citation.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.documents.passages import Chunk
from agent.engine.contract import Evidence
from agent.engine.errors import quoted
from agent.language import sentences
from agent.numerals import NUMBER, numbers, value
from agent.text import Match, pattern, words

NOT_ENOUGH: Final = "I don't have enough information"
"""The sentence by which a model says that the excerpts do not hold the answer."""

CITATION_PATTERN: Final = pattern(r"\[([^\[\]\n]*[\p{L}\p{N}][^\[\]\n]*)\]")
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


@dataclass(frozen=True, slots=True)
class Cited:
    """A pair of brackets: the retrieved paths that it cites, and the `unknown_paths`."""

    start: int
    end: int
    paths: tuple[str, ...]
    unknown_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer: the paths that cover it, and the `unknown_paths`."""

    text: str
    needs_citation: bool = False
    cites: tuple[str, ...] = ()
    unknown_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph, list item or heading: the list marker before it, and its sentences."""

    marker: str = ""
    stated: Sequence[Statement] = ()
    is_heading: bool = False


def find_citations(text: str, paths: Collection[str]) -> list[Cited]:
    """Return everything in square brackets as citations of `paths`.

    Several paths may share brackets, with commas or semicolons between them. Brackets without a
    letter or digit, such as an ellipsis, are no citation.
    """
    return [_cited(found, paths) for found in CITATION_PATTERN.finditer(text)]


def _cited(found: Match, paths: Collection[str]) -> Cited:
    names = [found[1], *found[1].replace(";", ",").split(",")]
    # A model may have put marks around a path.
    bare = [name.strip(" \t`'\"*_") for name in names if name.strip()]
    named = bare[:1] if bare[0] in paths else bare[1:]
    known = tuple(path for path in named if path in paths)
    return Cited(*found.span(), known, tuple(path for path in named if path not in paths))


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
    for name in _unknown_names(find_citations(text, paths)):
        if is_path(name):
            return f"the text cites [{quoted(name)}], which no tool returned; leave it out"
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
    if not statement.needs_citation or CITATION_PATTERN.search(statement.text):
        return statement.text
    return " ".join([statement.text, *(f"[{path}]" for path in statement.cites)])


def _lines(text: str, paths: Collection[str]) -> list[Line]:
    """Return the lines of an answer with their sentences; a blank line has none.

    The lines are read from the last to the first: a citation covers the sentences before it in its
    line, and a line of citations covers the line before it.
    """
    found, covering = list[Line](), list[Cited]()
    for line in reversed(_unwrapped(text)):
        if _only_cites(line):
            covering = find_citations(line, paths)
            if unknown := _unknown_names(covering):
                found.append(Line("", [Statement(line, unknown_paths=unknown)]))
            continue
        marker, is_heading = MARKER.match(line), HEADING.match(line) is not None
        lead = marker[0] if marker and not is_heading else ""
        stated = list[Statement]()
        for sentence in reversed(_cited_sentences(line[len(lead) :].strip())):
            covering = find_citations(sentence, paths) or covering
            cites = tuple(dict.fromkeys(path for cited in covering for path in cited.paths))
            is_statement = not is_heading and _needs_citation(sentence)
            stated.append(Statement(sentence, is_statement, cites, _unknown_names(covering)))
        covering = [] if stated else covering
        found.append(Line(lead, stated[::-1], is_heading))
    return found[::-1]


def _unknown_names(found: Iterable[Cited]) -> tuple[str, ...]:
    return tuple(name for cited in found for name in cited.unknown_paths)


def _unwrapped(text: str) -> list[str]:
    """Return the paragraphs, list items and headings of a text, each as one line."""
    joined = list[str]()
    for line in text.strip().splitlines():
        begins = not line.strip() or MARKER.match(line) or HEADING.match(line.strip())
        is_open = joined and joined[-1].strip() and not HEADING.match(joined[-1])
        if begins or not is_open or _only_cites(line) or _only_cites(joined[-1]):
            joined.append(line.rstrip())
        else:
            joined[-1] += f" {line.strip()}"
    return joined


def _cited_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the citations that follow its full stop."""
    found: list[str] = []
    for sentence in sentences(STUCK.sub(lambda stuck: f"{stuck[1]} [", text)):
        is_ended = bool(found) and found[-1].rstrip("\"'»”’)*_").endswith(ENDS)
        leading = LEADING.match(sentence) if is_ended else None
        rest = sentence[leading.end(1) :].strip() if leading else sentence
        if leading:
            found[-1] = f"{found[-1]} {leading[1].strip()}"
        if rest:
            found.append(rest)
    return found


def _only_cites(text: str) -> bool:
    """Return whether a text consists of citations only, such as "Sources: [a.md]"."""
    rest = CITATION_PATTERN.sub("", text)
    return rest != text and SOURCE_LINE.match(rest) is not None


def _needs_citation(sentence: str) -> bool:
    """Return whether a sentence is a statement, by its form alone."""
    bare = sentence.strip().strip("*_")
    if admits_not_enough(bare):
        return False
    is_plain = any(map(str.isalpha, bare)) and not bare.endswith((":", "：", "?", "？"))
    return is_plain or CITATION_PATTERN.search(bare) is not None


def admits_not_enough(text: str) -> bool:
    """Return whether a text begins with "I don't have enough information"."""
    admission = words(NOT_ENOUGH)
    return words(text[: 2 * len(NOT_ENOUGH)])[: len(admission)] == admission


def unsupported_number(statement: str, sources: str) -> str | None:
    """Return the first number in figures that its sources do not hold, in figures or words."""
    stated = NUMBER.findall(statement)
    known = numbers(sources) if stated else frozenset[float]()
    return next((number for number in stated if value(number) not in known), None)
