"""Find, check and number the citations in answers from documents.

A statement is covered by a citation in its sentence, directly after its full stop, later in its
paragraph or list item, or on a following line of citations. Headings, lead-ins (which end in a
colon), questions, and the sentence "I don't have enough information" need no citation.

In the chat, an answer may also say what no excerpt says. There a citation covers its own sentence
only, and a sentence that repeats the words of an excerpt gets a citation if it has none.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from agent.documents.passages import (
    Chunk,
    find_best_passage,
    format_source_line,
    list_content_words,
)
from agent.engine.contract import Evidence
from agent.engine.errors import clip_quote
from agent.language import all_common_words, split_sentences, stem
from agent.numerals import NUMBER, find_numbers, parse_number
from agent.text import Match, pattern, split_words

NOT_ENOUGH_PHRASE: Final = "I don't have enough information"
"""A model writes this sentence if the excerpts do not contain the answer."""

CITATION_PATTERN: Final = pattern(r"\[([^\[\]\n]*[\p{L}\p{N}][^\[\]\n]*)\]")
"""Square brackets with a letter or digit: "[wine/barolo.md]"."""
LEADING_CITATIONS: Final = pattern(
    r"\A((?:\s*\[[^\[\]\n]+\][.,;]?)+)\s*(?:\Z|[^\P{L}a-z])"
)
"""Citations at the beginning of a text, before its end or a new sentence: "[a.md]. [b.md] The"."""
LIST_MARKER: Final = pattern(r"\A\s*(?:(?:[-*•–]|\d{1,2}[.)])\s+|>\s?)")
"""The marker of a list item or a quote: "- ", "2) ", "> "."""
HEADING: Final = pattern(r"\A(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|__[^_]+__:?)\Z")
"""A line that is a heading: "## Barolo", "**Barolo:**"."""
SOURCES_LABEL: Final = pattern(r"\A\W*(?:\w+\s?:)?\W*\Z")
"""The rest of a line of citations without them: "", "- ", "Sources:"."""
BLANK_LINES: Final = pattern(r"\n{3,}")
UNSPACED_CITATION: Final = pattern(r"([.!?…。！？])\[")
"""A full stop directly before a citation: "tannic.[a.md]"."""
SENTENCE_ENDS: Final = tuple(".!?…。！？")
LEAD_IN_ENDS: Final = (":", "：")
"""The colons of Latin and of East Asian scripts, in which a lead-in ends."""
AROUND_PATHS: Final = " \t`'\"*_"
"""Spaces, quotation marks and Markdown that a model may put around a path."""
FILE_SUFFIXES: Final = (".md", ".markdown", ".txt", ".htm", ".html", ".pdf")
PATHS_SHOWN: Final = 8
"""The most paths that feedback lists as allowed."""
PROBLEMS_SHOWN: Final = 3
"""The most problems that feedback lists."""
MAX_QUOTED_CHARS: Final = 120
"""The length to which feedback cuts a statement."""
MIN_SHARED_WORDS: Final = 4
"""The fewest content words that a sentence shares with a passage that it repeats."""
MIN_SHARED_SHARE: Final = 0.7
"""The share of content words from which a sentence is said to repeat a passage of an excerpt."""


@dataclass(frozen=True, slots=True)
class CitationBrackets:
    """Square brackets in an answer, from `start` to `end`, and the paths in them.

    `paths` are those of retrieved documents, `unknown_paths` all others.
    """

    start: int
    end: int
    paths: tuple[str, ...]
    unknown_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer, and the paths in the citations that cover it.

    `cited_paths` are those of retrieved documents, `unknown_paths` all others.
    """

    text: str
    needs_citation: bool = False
    cited_paths: tuple[str, ...] = ()
    unknown_paths: tuple[str, ...] = ()

    @property
    def cited_text(self) -> str:
        """Return the sentence with its citations, even if they stand in a later sentence."""
        has_own_citation = CITATION_PATTERN.search(self.text) is not None
        if has_own_citation or not self.needs_citation:
            return self.text
        citations = [f"[{path}]" for path in self.cited_paths]
        return " ".join([self.text, *citations])


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an answer: its list marker and its sentences. A blank line has no sentences."""

    marker: str = ""
    statements: Sequence[Statement] = ()
    is_heading: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered citation: the document, and the passage retrieved from it."""

    number: int
    path: str
    title: str
    location: str
    passage: str

    @property
    def source_line(self) -> str:
        """Return a Markdown line that names the source, to show below the answer."""
        return format_source_line(self.number, self.title, self.location)


class CitationRules:
    """Checks the statements of an answer against the chunks that they cite.

    Numbers that the question contains need no source.
    """

    def __init__(self, chunks: Sequence[Chunk], question: str) -> None:
        self._question = question
        self._sources: dict[str, str] = {}
        for chunk in chunks:
            earlier_text = self._sources.get(chunk.path, "")
            self._sources[chunk.path] = f"{earlier_text}\n{chunk.source_text}"

    def find_grounding_error(self, text: str) -> str | None:
        """Return feedback on an answer, or None if it is valid."""
        stripped = text.strip()
        if stripped.startswith("{") and stripped.endswith("}"):
            return "the answer is JSON; write plain text"
        problems = []
        for statement in split_statements(text, self._sources):
            problem = self._find_statement_problem(statement)
            if problem and problem not in problems:
                problems.append(problem)
        if problems:
            return "; ".join(problems[:PROBLEMS_SHOWN])
        if self.keep_valid_part(text):
            return None
        return f"the answer cites nothing; cite [path], or say: {NOT_ENOUGH_PHRASE}"

    def keep_valid_part(self, text: str) -> str:
        """Return the valid sentences unchanged, or "" if they are not an answer.

        An answer cites a source or admits that there is not enough information.
        """
        valid = keep_sentences(text, self._sources, self._is_valid)
        if admits_not_enough(valid) or find_citations(valid, self._sources):
            return valid
        return ""

    def find_invalid_statements(self, text: str) -> tuple[str, ...]:
        """Return the sentences of an answer that are not valid."""
        invalid = []
        for statement in split_statements(text, self._sources):
            if not self._is_valid(statement):
                invalid.append(statement.text)
        return tuple(invalid)

    def _is_valid(self, statement: Statement) -> bool:
        return self._find_statement_problem(statement) is None

    def _find_statement_problem(self, statement: Statement) -> str | None:
        if statement.unknown_paths:
            unknown_path = clip_quote(statement.unknown_paths[0])
            allowed_paths = list(self._sources)[:PATHS_SHOWN]
            allowed = _list_in_brackets(allowed_paths)
            return f"[{unknown_path}] is not one of the excerpts; cite only {allowed}"
        if not statement.needs_citation:
            return None
        quoted_text = clip_quote(statement.text, MAX_QUOTED_CHARS)
        if not statement.cited_paths:
            return (
                f"this statement has no citation: {quoted_text}; put the [path] of its source "
                "after it, or leave it out"
            )
        cited_texts = [self._sources[path] for path in statement.cited_paths]
        sources = "\n".join([self._question, *cited_texts])
        uncited_text = remove_citations(statement.text)
        number = find_unsupported_number(uncited_text, sources)
        if number is None:
            return None
        cited = _list_in_brackets(statement.cited_paths)
        return f"the number {number} in {quoted_text} does not occur in {cited}; correct it"


def remove_citations(text: str) -> str:
    """Return a text without its citations and their square brackets."""
    return CITATION_PATTERN.sub("", text)


def _list_in_brackets(paths: Iterable[str]) -> str:
    return ", ".join(f"[{path}]" for path in paths)


def number_citations(
    text: str, chunks: Sequence[Chunk]
) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer with numbers instead of paths, and the citations in order of their numbers.

    Every chunk has its own number. A path gets the number of the chunk of its document that
    shares most words with the statement before it.
    """
    paths = {chunk.path for chunk in chunks}
    citations: dict[str, Citation] = {}  # by the id of their chunk
    parts = []
    previous_end = 0
    statement = ""
    for brackets in find_citations(text, paths):
        text_before = text[previous_end : brackets.start]
        parts.append(text_before)
        previous_end = brackets.end
        # Adjacent citations share the statement before them.
        if list_content_words(text_before):
            statement = text_before
        for path in brackets.paths:
            chunk = _find_cited_chunk(statement, path, chunks)
            if chunk.id not in citations:
                number = len(citations) + 1
                citations[chunk.id] = _make_citation(number, chunk, statement)
            citation = citations[chunk.id]
            parts.append(f"[{citation.number}]")
    parts.append(text[previous_end:])
    return "".join(parts), tuple(citations.values())


def _find_cited_chunk(
    statement: str,
    path: str,
    chunks: Sequence[Chunk],
) -> Chunk:
    """Return the chunk of a document that shares most words with a statement."""
    words = list_content_words(statement)

    def count_shared(chunk: Chunk) -> int:
        chunk_words = list_content_words(chunk.text)
        return len(chunk_words & words)

    of_document = [chunk for chunk in chunks if chunk.path == path]
    return max(of_document, key=count_shared)


def _make_citation(
    number: int,
    chunk: Chunk,
    statement: str,
) -> Citation:
    return Citation(
        number=number,
        path=chunk.path,
        title=chunk.title,
        location=chunk.location,
        passage=find_best_passage(chunk.text, statement),
    )


def find_citations(text: str, paths: Collection[str]) -> list[CitationBrackets]:
    """Return all square brackets of a text in order. A path that is not in `paths` is unknown.

    Commas or semicolons may separate several paths. Brackets without a letter or digit, as in
    `[…]`, are ignored.
    """
    matches = CITATION_PATTERN.finditer(text)
    return [_read_brackets(match, paths) for match in matches]


def _read_brackets(match: Match, paths: Collection[str]) -> CitationBrackets:
    content = match[1]
    if content.strip(AROUND_PATHS) in paths:  # a path may contain a comma
        parts = [content]
    else:
        parts = content.replace(";", ",").split(",")
    known = []
    unknown = []
    for part in parts:
        if not part.strip():
            continue
        path = part.strip(AROUND_PATHS)
        if path in paths:
            known.append(path)
        else:
            unknown.append(path)
    return CitationBrackets(
        start=match.start(),
        end=match.end(),
        paths=tuple(known),
        unknown_paths=tuple(unknown),
    )


class _CitedPaths(NamedTuple):
    """The paths in the citations of a text, split as those of `CitationBrackets`."""

    known: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


_NO_PATHS: Final = _CitedPaths()


def _find_cited_paths(text: str, paths: Collection[str]) -> _CitedPaths:
    """Return the paths that a text cites, in order. Those that are not in `paths` are unknown."""
    known: dict[str, None] = {}  # each path once
    unknown: list[str] = []
    for brackets in find_citations(text, paths):
        known |= dict.fromkeys(brackets.paths)
        unknown += brackets.unknown_paths
    return _CitedPaths(tuple(known), tuple(unknown))


def find_unretrieved_path(text: str, evidence: Evidence) -> str | None:
    """Return feedback on the first path in brackets that no tool of the turn returned, or None.

    Brackets without the form of a path are ignored, because they need not be a citation.
    """
    retrieved_paths = set()
    for source in evidence.sources.values():
        if isinstance(source, Chunk):
            retrieved_paths.add(source.path)
    cited_paths = _find_cited_paths(text, retrieved_paths)
    for path in cited_paths.unknown:
        if looks_like_path(path):
            return f"the text cites [{clip_quote(path)}], which no tool returned; leave it out"
    return None


def find_wrong_number(
    text: str,
    chunks: Sequence[Chunk],
    other_texts: Iterable[str],
) -> str | None:
    """Return feedback on the first cited sentence with a number that nothing supports, or None.

    The number must be in a document that the sentence cites, or in one of the other texts.
    """
    paths = {chunk.path for chunk in chunks}
    for sentence in split_cited_sentences(text):
        cited_paths = _find_cited_paths(sentence, paths).known
        if not cited_paths:
            continue
        cited_texts = [
            chunk.source_text for chunk in chunks if chunk.path in cited_paths
        ]
        sources = "\n".join([*cited_texts, *other_texts])
        number = find_unsupported_number(remove_citations(sentence), sources)
        if number is not None:
            cited = _list_in_brackets(sorted(cited_paths))
            return f"the number {number} does not occur in {cited}; correct it, or leave it out"
    return None


def list_cited(sentence: str, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks of the documents that a sentence cites or repeats."""
    paths = {chunk.path for chunk in chunks}
    cited_sentence = cite_excerpts(sentence, chunks)
    cited_paths = _find_cited_paths(cited_sentence, paths).known
    return [chunk for chunk in chunks if chunk.path in cited_paths]


class _Passage(NamedTuple):
    """The stems of the content words in one or two sentences of a document."""

    path: str
    stems: frozenset[str]


def cite_excerpts(text: str, chunks: Sequence[Chunk]) -> str:
    """Return a text in which each sentence that repeats an excerpt cites it."""
    passages = []
    for chunk in chunks:
        for stems in _list_passage_stems(chunk.text):
            passages.append(_Passage(chunk.path, stems))
    lines = []
    for line in text.splitlines():
        sentences = []
        for sentence in split_cited_sentences(line):
            cited_sentence = _cite_passage(sentence, passages)
            sentences.append(cited_sentence)
        lines.append(" ".join(sentences))
    return "\n".join(lines)


def _cite_passage(sentence: str, passages: Iterable[_Passage]) -> str:
    """Return a sentence with a citation of the passage that it repeats, if there is one."""
    has_citation = CITATION_PATTERN.search(sentence) is not None
    if has_citation or not _needs_citation(sentence):
        return sentence
    path = _find_repeated_path(sentence, passages)
    if not path:
        return sentence
    return f"{sentence} [{path}]"


@lru_cache(64)  # the drafts of an answer read the same excerpts
def _list_passage_stems(text: str) -> tuple[frozenset[str], ...]:
    """Return the stems of the content words of each sentence, and of each two neighbours."""
    singles = [_list_content_stems(sentence) for sentence in split_sentences(text)]
    pairs = [first | second for first, second in pairwise(singles)]
    return (*singles, *pairs)


def _find_repeated_path(sentence: str, passages: Iterable[_Passage]) -> str:
    """Return the path of the first passage that repeats the words of a sentence, or ""."""
    stems = _list_content_stems(sentence)
    if len(stems) < MIN_SHARED_WORDS:
        return ""
    min_shared = max(MIN_SHARED_WORDS, MIN_SHARED_SHARE * len(stems))
    for passage in passages:
        shared = stems & passage.stems
        if len(shared) >= min_shared:
            return passage.path
    return ""


def _list_content_stems(text: str) -> frozenset[str]:
    words = list_content_words(text) - all_common_words()
    return frozenset(map(stem, words))


def looks_like_path(name: str) -> bool:
    """Return whether a text in brackets has the form of a path, with a folder or a file suffix."""
    has_spaces = name.split() != [name]
    if has_spaces:
        return False
    has_folder = "/" in name[:-1]
    has_suffix = name[1:].lower().endswith(FILE_SUFFIXES)  # ".md" alone is no file
    return has_folder or has_suffix


def split_statements(text: str, paths: Collection[str]) -> list[Statement]:
    """Return the sentences of an answer in order, each with the paths of its citations."""
    statements: list[Statement] = []
    for line in _parse_lines(text, paths):
        statements += line.statements
    return statements


def keep_sentences(
    text: str,
    paths: Collection[str],
    accept: Callable[[Statement], bool],
) -> str:
    """Return an answer without the sentences that `accept` rejects, otherwise unchanged.

    A sentence that shares the citation of a later sentence gets its own copy. A heading or lead-in
    is removed if no sentence remains below it.
    """
    kept_lines = []
    is_changed = False
    has_text_below = False
    for line in reversed(_parse_lines(text, paths)):
        original = [sentence.text for sentence in line.statements]
        accepted = [
            sentence.cited_text for sentence in line.statements if accept(sentence)
        ]
        if accepted != original:
            is_changed = True
        if original and not accepted:
            continue
        kept = " ".join(accepted)
        leads_in = line.is_heading or kept.endswith(LEAD_IN_ENDS)
        if kept and leads_in and not has_text_below:
            continue
        # Blank lines change nothing. A heading needs text of its own below it.
        if kept:
            has_text_below = not line.is_heading
        kept_lines.append(line.marker + kept)
    if not is_changed:
        return text.strip()
    kept_text = "\n".join(reversed(kept_lines))
    return BLANK_LINES.sub("\n\n", kept_text).strip()


def _parse_lines(text: str, paths: Collection[str]) -> list[Line]:
    """Return the lines of an answer with their sentences.

    The lines are read from the last to the first, because a citation covers the sentences before it
    in its paragraph or list item, and a line of citations covers the paragraph before it.
    """
    lines: list[Line] = []
    covering = _NO_PATHS
    text_lines = text.strip().splitlines()
    for text_line in reversed(text_lines):
        if _is_citations_only(text_line):
            covering = _find_cited_paths(text_line, paths)
            if covering.unknown:
                statement = Statement(text_line, unknown_paths=covering.unknown)
                lines.append(Line(statements=[statement]))
            continue
        # Citations cover nothing before a blank line, unless they have a line of their own.
        if not text_line.strip() and lines and lines[-1].statements:
            covering = _NO_PATHS
        line, covering = _parse_line(text_line, paths, covering)
        lines.append(line)
    lines.reverse()
    return lines


def _parse_line(
    text: str,
    paths: Collection[str],
    covering: _CitedPaths,
) -> tuple[Line, _CitedPaths]:
    """Return a line with its sentences, and the paths that cover the line before it.

    `covering` are the paths that cover the line, unless it has citations itself.
    """
    is_heading = HEADING.match(text.strip()) is not None
    marker = "" if is_heading else _read_list_marker(text)
    content = text.removeprefix(marker).strip()
    statements = []
    sentences = split_cited_sentences(content)
    for sentence in reversed(sentences):
        own_paths = _find_cited_paths(sentence, paths)
        if own_paths != _NO_PATHS:
            covering = own_paths
        needs_citation = not is_heading and _needs_citation(sentence)
        statement = Statement(
            sentence, needs_citation, covering.known, covering.unknown
        )
        statements.append(statement)
    statements.reverse()
    line = Line(marker, statements, is_heading)
    if marker or is_heading:
        return line, _NO_PATHS
    return line, covering


def _read_list_marker(line: str) -> str:
    """Return the marker with which a line begins, or "" if it is no list item."""
    match = LIST_MARKER.match(line)
    return match[0] if match is not None else ""


def split_cited_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the citations that follow its full stop."""
    sentences: list[str] = []
    spaced_text = UNSPACED_CITATION.sub(lambda match: f"{match[1]} [", text)
    for sentence in split_sentences(spaced_text):
        rest = sentence
        if sentences and _ends_in_full_stop(sentences[-1]):
            match = LEADING_CITATIONS.match(sentence)
            if match is not None:  # these citations belong to the sentence before
                citations = match[1]
                sentences[-1] += f" {citations.strip()}"
                rest = sentence.removeprefix(citations).strip()
        if rest:
            sentences.append(rest)
    return sentences


def _ends_in_full_stop(sentence: str) -> bool:
    """Return whether a sentence ends in a full stop or a similar mark, perhaps within quotes."""
    return sentence.rstrip("\"'»”’)*_").endswith(SENTENCE_ENDS)


def _is_citations_only(text: str) -> bool:
    """Return whether a text consists of citations only, such as "Sources: [a.md]"."""
    rest = remove_citations(text)
    has_citations = rest != text
    return has_citations and SOURCES_LABEL.match(rest) is not None


def _needs_citation(sentence: str) -> bool:
    """Return whether a sentence is a statement, judged by its form."""
    bare = sentence.strip().strip("*_")
    if admits_not_enough(bare):
        return False
    if CITATION_PATTERN.search(bare):
        return True
    has_letters = any(map(str.isalpha, bare))
    is_lead_in_or_question = bare.endswith((*LEAD_IN_ENDS, "?", "？"))
    return has_letters and not is_lead_in_or_question


def admits_not_enough(text: str) -> bool:
    """Return whether a text begins with "I don't have enough information"."""
    admission = split_words(NOT_ENOUGH_PHRASE)
    beginning = split_words(text[: 2 * len(NOT_ENOUGH_PHRASE)])
    return beginning[: len(admission)] == admission


def find_unsupported_number(statement: str, sources: str) -> str | None:
    """Return the first number in digits that the sources lack in digits and in words, or None."""
    numbers = NUMBER.findall(statement)
    if not numbers:
        return None
    supported = find_numbers(sources)
    for number in numbers:
        if parse_number(number) not in supported:
            return number
    return None
