"""Citations in an answer: what counts as one, which statements have one, what may be kept.

A statement is covered by a citation in its own sentence, or by one that comes later in the same
paragraph or list item, so that one citation can close a paragraph, from a line of its own too.
Headings, questions, phrases that only lead in (they end in a colon), courtesies and the admission
that the excerpts do not suffice state nothing that could be cited; what an admission goes on to say
behind a "but" is a statement like any other.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from agent.documents.lexicon import lexicon
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
TURN: Final = pattern(r"\p{L}+|[;–—]")
SHORT: Final = 3
"""Words of a sentence that is too short to state anything: "Sorry about that." """


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer, and all that is cited where it is covered.

    What does not `state` anything needs no citation.
    """

    text: str
    cites: tuple[str, ...]
    states: bool

    @property
    def is_covered(self) -> bool:
        """Whether it has a citation, or needs none."""
        return bool(self.cites) or not self.states


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
    found = _with_citations_after(text[len(lead) :])
    return Block(
        gap, lead, tuple(part for sentence in found for part in _admission_apart(sentence))
    )


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


def _admission_apart(sentence: str) -> tuple[str, ...]:
    """A sentence; one that admits something and goes on with a claim as two."""
    for before, behind in _turns(sentence):
        if admits(before):
            return before.rstrip(), behind
    return (sentence,)


def _turns(sentence: str) -> Iterator[tuple[str, str]]:
    """A sentence before and from each "but" within it."""
    for found in TURN.finditer(sentence):
        before, behind = sentence[: found.start()], sentence[found.start() :]
        is_turn = fold(found[0]) in lexicon().contrasts and words(before)
        if is_turn and words(behind.removeprefix(found[0])):
            yield before, behind


def statements(text: str, paths: Collection[str] = ()) -> list[Statement]:
    """Return the sentences of an answer in order, with what each of them cites."""
    return [each for _, found in _stated(blocks(text), paths) for each in found]


def uncited(text: str) -> list[str]:
    """Return the statements of an answer that no citation covers, in order."""
    return [each.text for each in statements(text) if not each.is_covered]


def kept(
    text: str,
    accept: Callable[[Statement], bool],
    paths: Collection[str] = (),
    *,
    cited: bool = True,
) -> str:
    """Return an answer without sentences that `accept` rejects, or no citation covers then.

    Of a text that is not `cited`, those that are accepted.
    """
    left = _filtered(blocks(text), accept, paths)
    if cited:
        left = _filtered(left, lambda statement: statement.is_covered, paths)
    return "".join(block.gap + block.text for block in without_idle(left)).strip()


def _filtered(
    found: Sequence[Block], accept: Callable[[Statement], bool], paths: Collection[str]
) -> list[Block]:
    return [
        replace(block, sentences=tuple(_ended([each.text for each in stated if accept(each)])))
        for block, stated in _stated(found, paths)
    ]


def _ended(left: list[str]) -> list[str]:
    """Sentences of which the last does not end in a comma: what followed it is gone."""
    return [*left[:-1], f"{left[-1].rstrip(',; ')}."] if left and left[-1][-1] in ",;" else left


def _stated(
    found: Sequence[Block], paths: Collection[str]
) -> Iterator[tuple[Block, list[Statement]]]:
    """Each block with its sentences; a line of citations behind a block closes it."""
    opened = bool(found) and bool(found[0].sentences) and admits(found[0].sentences[0])
    for at, (block, following) in enumerate(zip_longest(found, found[1:])):
        closing = following.text if following is not None and _only_cites(following.text) else ""
        cites = _names(closing, paths)
        stated: list[Statement] = []
        for place, sentence in reversed(list(enumerate(block.sentences))):
            own = _names(sentence, paths)
            cites = own or cites
            excused = opened and at == 0 and place == 1 and is_reason(sentence)
            states = not block.heading and not excused and _states(sentence)
            stated.append(Statement(sentence, cites, states))
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


def _only_cites(text: str) -> bool:
    return has_citation(text) and SOURCE_LINE.match(BRACKETS.sub("", text)) is not None


def has_citation(sentence: str) -> bool:
    """Say whether there are brackets in it that hold more than signs."""
    return any(any(map(str.isalnum, match[1])) for match in BRACKETS.finditer(sentence))


def _states(sentence: str) -> bool:
    said = sentence.strip().strip("*_")
    return (
        any(character.isalpha() for character in said)
        and not said.endswith((":", "?", "？", "："))
        and not admits(said)
        and not is_courtesy(said)
    )


def admits_not_enough(text: str) -> bool:
    """Say whether a text opens with "I don't have enough information", in whichever words."""
    found = blocks(text)
    return bool(found and found[0].sentences) and admits(found[0].sentences[0])


def admits(sentence: str) -> bool:
    """Say whether a sentence says of the sources that they lack something, and claims nothing.

    Told by a word for what a source is or gives, and one that denies, with neither a number nor
    anything that goes on behind a "but".
    """
    for before, behind in _turns(sentence):
        return lexicon().courtesies.issuperset(words(before)) and admits(behind)
    said, told = words(sentence), lexicon()
    denies = any(word in told.lacking or word in told.denying for word in said)
    names_source = any(word in told.sources for word in said)
    return denies and names_source and not any(map(str.isdigit, sentence))


def is_reason(sentence: str) -> bool:
    """Say whether a sentence behind the admission is on what the sources lack, not on wine."""
    said = words(sentence)
    return len(said) <= SHORT or (
        any(word in lexicon().sources for word in said) and not any(map(str.isdigit, sentence))
    )


def is_courtesy(sentence: str) -> bool:
    """Say whether a sentence is nothing but courtesy: "I hope this helps!", "Let me know!"."""
    said, told = set(words(sentence)), lexicon()
    return bool(said & told.courteous) and said <= told.courteous | told.courtesies
