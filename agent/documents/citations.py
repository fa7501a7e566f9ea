"""Citations in an answer: what counts as one, which statements have one, what may be kept.

A statement is covered by a citation in its own sentence, or by one that comes later in the same
paragraph or list item, so that one citation can close a paragraph, from a line of its own too.
Headings, questions, phrases that only lead in (they end in a colon), courtesies and the admission
that the excerpts do not suffice state nothing that could be cited.
"""

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from agent.documents.store import Chunk
from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.text import Match, Pattern, escape, fold, pattern, sentences, words

INSIDE: Final = r"[^\[\]\n]+"
BRACKETS: Final = pattern(rf"\[({INSIDE})\]")
LEADING: Final = pattern(r"\A((?:\s*\[[^\[\]\n]+\][.,;]?)+)\s*(?:\Z|[^\P{L}a-z])")
MARKER: Final = pattern(r"\A\s*(?:(?:[-*•–]|\d{1,2}[.)])\s+|>\s?)")
HEADING: Final = pattern(r"\A(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|__[^_]+__:?)\Z")
SOURCE_LINE: Final = pattern(r"\A\W*(?:\w+\s?:)?\W*\Z")
STUCK: Final = pattern(r"([.!?…。！？])\[")
ENDS: Final = tuple(".!?…。！？")
SUFFIXES: Final = (".md", ".markdown", ".txt", ".htm", ".html", ".pdf")
TOKEN: Final = pattern(r"[\p{L}\p{N}]+|[,;:.!?]")
LONGEST_OPENING: Final = 400
"""Characters of an answer in which it may admit that it has not enough to go by."""
SHORT: Final = 3
"""Words of a sentence that is too short to state anything: "Sorry about that." """


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
    return pattern(rf"\[({'|'.join([*odd, INSIDE])})\]")


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


def uncited(text: str) -> list[str]:
    """Return the statements of an answer that no citation covers, in order."""
    found: list[str] = []
    for block, closed in _closed(_exempted(blocks(text))):
        missing = [sentence for sentence, covered in _coverage(block, closed) if not covered]
        found += reversed(missing)
    return found


def kept(text: str, accept: Callable[[str], bool]) -> str:
    """Return an answer without sentences that `accept` rejects, or no citation covers then."""
    left = [
        replace(block, sentences=tuple(filter(accept, block.sentences))) for block in blocks(text)
    ]
    covered = [_covered_part(block, closed) for block, closed in _closed(left)]
    return "".join(block.gap + block.text for block in without_idle(covered)).strip()


def _covered_part(block: Block, closed: bool) -> Block:
    keeping = [sentence for sentence, covered in _coverage(block, closed) if covered]
    return replace(block, sentences=tuple(reversed(keeping)))


def without_idle(found: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks that say something: not empty, no heading or lead-in with nothing below."""
    filled = [block for block in found if block.sentences]
    for block, following in zip_longest(filled, filled[1:]):
        leads_in = block.heading or block.text.rstrip().endswith(":")
        if not leads_in or (following is not None and not following.heading):
            yield block


def _closed(found: Sequence[Block]) -> Iterator[tuple[Block, bool]]:
    """Each block, and whether nothing but its citations stands in the one behind it."""
    for block, following in zip_longest(found, found[1:]):
        yield block, following is not None and _only_cites(following.text)


def _only_cites(text: str) -> bool:
    return has_citation(text) and SOURCE_LINE.match(BRACKETS.sub("", text)) is not None


def _coverage(block: Block, closed: bool) -> Iterator[tuple[str, bool]]:
    """Each sentence, last first, and whether it has a citation, or needs none."""
    covered = block.heading or closed
    for sentence in reversed(block.sentences):
        covered = covered or has_citation(sentence)
        yield sentence, covered or not _states(sentence)


def has_citation(sentence: str) -> bool:
    """Say whether there are brackets in it that hold more than signs."""
    return any(any(map(str.isalnum, match[1])) for match in BRACKETS.finditer(sentence))


def _states(sentence: str) -> bool:
    said = sentence.strip().strip("*_")
    return (
        any(character.isalpha() for character in said)
        and not said.endswith((":", "?", "？", "："))
        and not admits_not_enough(said)
        and not is_courtesy(said)
    )


def _exempted(found: Sequence[Block]) -> list[Block]:
    """Without the opening admission and the one sentence that may give its reason."""
    if not (found and admits_not_enough(found[0].text)):
        return list(found)
    behind = found[0].sentences[1:]
    left = behind[1:] if behind and is_reason(behind[0]) else behind
    return [replace(found[0], sentences=left), *found[1:]]


def admits_not_enough(text: str) -> bool:
    """Say whether a text opens with "I don't have enough information", in whichever words."""
    said = " ".join(TOKEN.findall(fold(text[:LONGEST_OPENING])))
    return _phrases().admission.match(f"{said} ".lstrip(" ,;:.!?")) is not None


def is_reason(sentence: str) -> bool:
    """Say whether a sentence behind the admission is on what the sources lack, not on wine."""
    said = words(sentence)
    return len(said) <= SHORT or any(word.startswith(_phrases().of_sources) for word in said)


def is_courtesy(sentence: str) -> bool:
    """Say whether a sentence is nothing but courtesy: "I hope this helps!", "Let me know!"."""
    return _phrases().courtesy.match(f"{' '.join(words(sentence))} ") is not None


class _Phrases(BaseModel):
    """What `phrases.toml` holds, and how its patterns are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    courtesies: tuple[str, ...]
    admissions: tuple[str, ...]
    lead_ins: tuple[str, ...]
    links: str
    of_sources: Annotated[tuple[str, ...], BeforeValidator(str.split)]
    parts: Mapping[str, tuple[str, ...]]

    @cached_property
    def courtesy(self) -> Pattern:
        """A whole sentence of courtesy."""
        return pattern(rf"\A{self._any(self.courtesies)}\Z")

    @cached_property
    def admission(self) -> Pattern:
        """The beginning of an answer that admits it has not enough to go by."""
        lead_in = f"{self._any(self.lead_ins)}(?:, )?{self._token(self.links)}?"
        return pattern(rf"\A(?:{lead_in})?{self._any(self.admissions)}")

    def _any(self, patterns: Sequence[str]) -> str:
        read = ("".join(map(self._token, pattern.split())) for pattern in patterns)
        return f"(?:{'|'.join(read)})"

    def _token(self, token: str) -> str:
        said = "|".join(map(self._word, token.removesuffix("?").split("|")))
        return f"(?:{said}){'?' if token.endswith('?') else ''}"

    def _word(self, word: str) -> str:
        if word.startswith("{"):
            return self._any(self.parts[word.strip("{}")])
        any_word = "[^ ,;:.!?]+ "
        known = {".": any_word, "*": f"(?:{any_word}){{1,14}}"}
        return known.get(word) or escape(word.replace("_", " ")) + " "


@cache
def _phrases() -> _Phrases:
    file = Path(__file__).with_name("phrases.toml")
    return _Phrases.model_validate(tomllib.loads(file.read_text("utf-8")))
