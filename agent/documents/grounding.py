"""Quotes and statements against what documents say: which stand there, and where.

Whether a sentence says what its source says is not judged by words: no rule of them and no model
fitted to them could (docs/decisions/0006-answers.md). A sentence stands as it is worded if it is a
whole sentence of the source, word for word. In the place of any other stand the sentences that
share most with it, numbers, names and words in six languages, those weighing most that few
sentences have.

A passage counts as a quote of a document when it stands in quotation marks and its sentence has a
citation, or when it is a Markdown block quote. Shorter ones may be terms, and what the guest wrote,
the names of wines and the titles of documents may stand in quotation marks as they are.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final, Literal

from pydantic import Field

from agent.documents.citations import (
    Cited,
    Statement,
    blocks,
    citations,
    is_path,
    stated_in,
    without_citations,
    without_idle,
)
from agent.documents.passages import (
    PASSAGE_CHARS,
    WIDE,
    WORD,
    Chunk,
    Keys,
    as_data,
    comparable,
    in_its_sentences,
    is_anaphor,
    is_whole,
    items,
    numbers,
    quoted,
    stands_in,
)
from agent.engine.contract import Evidence, OutputContract
from agent.engine.feedback import fence
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.prompts import prompt_for
from agent.tables import Strict
from agent.text import language_of, pattern, sentences, truncate_at_boundary, words

LEAST_WORDS: Final = 5
LEAST_CHARS: Final = 25
LEAST_WIDE_CHARS: Final = 12
"""In scripts that put no space between words."""
LONGEST_TITLE: Final = 12
SHOWN_CHARS: Final = 120

BLOCK_QUOTE: Final = pattern(r"(?m)(?:^[ \t]*(?:\*\*)?>[^\n]*(?:\n|\Z))+")
QUOTE_MARK: Final = pattern(r"(?m)^[ \t]*(?:\*\*)?(?:>[ \t]?)+")
BYLINE: Final = pattern(r"\A\s*(?:[–—]|--)[^.!?\n]{1,80}\Z")
BYLINE_AFTER: Final = pattern(r"\s(?:[–—]|--)\s*[\"“*_]*[^\P{L}a-z][^.!?\n]{1,80}\Z")
PRIVATE: Final = pattern(r"[\ue000-\ue002]")
HIDDEN: Final = pattern(r"[\ue000\ue002](\d+)\ue001")
HIDDEN_WHOLE: Final = pattern(r"(?:> \ue002|\ue000)(\d+)\ue001(?:[.!?…。！？]?”)?")


def misquoted(text: str, evidence: Evidence) -> str | None:
    """Return feedback on the first quote in `text` that stands in no source, or None."""
    hidden = hide(text)
    if not hidden.passages:
        return None
    sources = _Sources(evidence)
    found = (_problem(hidden, sentence, sources) for sentence in _sentences(hidden.text))
    return next((problem for problem in found if problem), None)


def without_misquotes(text: str, evidence: Evidence) -> str:
    """Return `text` without the sentences and block quotes that misquote; as it is if none does."""
    if misquoted(text, evidence) is None:
        return text
    hidden, sources = hide(text), _Sources(evidence)

    def right(sentence: str) -> bool:
        return _problem(hidden, sentence, sources) is None

    left = [
        replace(block, sentences=tuple(filter(right, block.sentences)))
        for block in blocks(hidden.text)
    ]
    return hidden.shown("".join(block.gap + block.text for block in without_idle(left))).strip()


@dataclass(frozen=True, slots=True)
class Hidden:
    """A text with a mark in place of each quote, so that no sentence ends within one."""

    text: str
    passages: tuple[str, ...]

    def within(self, sentence: str) -> list[str]:
        """Return the quotes that a sentence of the text holds, with their marks."""
        return [self.passages[int(found[1])] for found in HIDDEN.finditer(sentence)]

    def shown(self, text: str) -> str:
        """Return a part of the text with its quotes in place again."""
        return HIDDEN_WHOLE.sub(lambda found: self.passages[int(found[1])].rstrip("\n"), text)


def hide(text: str) -> Hidden:
    """Put a mark in place of every block quote, and of every long passage in quotation marks."""
    passages: list[str] = []
    parts: list[str] = []

    def mark(quote: str) -> str:
        passages.append(quote)
        return f"{len(passages) - 1}\ue001"

    def marked(text: str) -> Iterator[str]:
        end = 0
        for start, behind in quoted(text):
            said = text[start + 1 : behind - 1].rstrip()
            if is_long(said):
                stop = said[-1] if said[-1] in ".!?…。！？" else ""
                yield from (text[end:start], f"\ue000{mark(text[start:behind])}{stop}”")
                end = behind
        yield text[end:]

    plain, end = PRIVATE.sub("", text), 0
    for block in BLOCK_QUOTE.finditer(plain):
        parts += [*marked(plain[end : block.start()]), f"> \ue002{mark(block[0])}\n"]
        end = block.end()
    parts += marked(plain[end:])
    return Hidden("".join(parts), tuple(passages))


def is_long(passage: str) -> bool:
    """Say whether a passage is too long for a term."""
    many_words = len(WORD.findall(passage)) >= LEAST_WORDS and len(passage) >= LEAST_CHARS
    return many_words or len(WIDE.findall(passage)) >= LEAST_WIDE_CHARS


def _sentences(text: str) -> Iterator[str]:
    for block in blocks(text):
        yield from block.sentences


def _problem(hidden: Hidden, sentence: str, sources: "_Sources") -> str | None:
    """What is wrong with the quotes of a sentence, None if nothing is."""
    quotes = hidden.within(sentence)
    cited = sources.citations(sentence) if quotes else []
    problems = (sources.problem(quote, cited) for quote in quotes)
    return next((problem for problem in problems if problem), None)


class _Sources:
    """What tools and the guest said, made comparable on first need."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._chunks: dict[str, list[str]] = {}
        for found in evidence.found.values():
            if isinstance(found, Chunk):
                self._chunks.setdefault(found.path, []).append(comparable(as_data(found.text)))

    @cached_property
    def _other_texts(self) -> list[str]:
        """Results of tools as the model saw them, the guest's words, names and titles."""
        found = self._evidence.found.values()
        names = [str(each.label) for each in found if hasattr(each, "label")]
        titles = [f"{each.title} · {each.location}" for each in found if isinstance(each, Chunk)]
        texts = (text.replace('\\"', '"').replace("\\n", " ") for text in self._evidence.texts)
        return [comparable(text) for text in (*texts, *names, *titles)]

    def problem(self, quote: str, around: Sequence[Cited]) -> str | None:
        """Say what is wrong with a quote; None if nothing is or nobody is quoted.

        `around` are the citations of its sentence; it may hold more itself.
        """
        cited = [*around, *self.citations(quote)]
        paths = [path for each in cited for path in each.paths]
        if QUOTE_MARK.match(quote):
            return self._problem_of_block(QUOTE_MARK.sub("", quote), paths)
        return self._problem_of(quote[1:-1], paths) if cited else None

    def _problem_of_block(self, quote: str, paths: Sequence[str]) -> str | None:
        """As `problem`, for a block quote: all of it is one passage, or each line is."""
        said = map(self._without_citations, quote.splitlines())
        lines = [line for line in said if line.strip() and not BYLINE.match(line)]
        whole = " ".join(lines)
        if not is_long(whole) or (problem := self._problem_of_line(whole, paths)) is None:
            return None
        if len(lines) == 1:
            return problem
        problems = (self._problem_of_line(line, paths) for line in lines)
        return next((each for each in problems if each), None)

    def _problem_of_line(self, line: str, paths: Sequence[str]) -> str | None:
        """As `problem`; who is quoted may stand behind a dash at the end."""
        shortened = BYLINE_AFTER.sub("", line.strip())
        if is_long(shortened) and self._problem_of(shortened, paths) is None:
            return None
        return self._problem_of(line, paths)

    def _problem_of(self, passage: str, paths: Sequence[str]) -> str | None:
        said = comparable(as_data(self._without_citations(passage))).strip(" '.,;:!?()-。、，")
        standing = [
            path for path, texts in self._chunks.items() if any(stands_in(said, t) for t in texts)
        ]
        if not said or any(path in paths for path in standing):
            return None
        shown = fence(passage, SHOWN_CHARS)
        if standing and paths:
            return f"the quote {shown} stands in [{standing[0]}], not in [{paths[0]}]; cite that"
        if (
            standing
            or is_title(passage)
            or any(stands_in(said, text) for text in self._other_texts)
        ):
            return None
        return (
            f"the quote {shown} does not stand word for word in anything a tool returned; copy it "
            "letter for letter and in one piece, or say it in your own words, not as a quote"
        )

    def citations(self, text: str) -> list[Cited]:
        """Return the citations in a text; a number counts as one, as it is shown like one."""
        return [
            cited
            for cited in citations(text, self._chunks)
            if cited.paths or any(is_path(name) or name.isdigit() for name in cited.unknown)
        ]

    def _without_citations(self, text: str) -> str:
        parts, end = [], 0
        for cited in self.citations(text):
            parts.append(text[end : cited.start].rstrip())
            end = cited.end
        return "".join([*parts, text[end:]])


def is_title(passage: str) -> bool:
    """Say whether a passage reads like a title: few words, the longer ones capitalised."""
    words = WORD.findall(passage)
    longer = [word for word in words if len(word) > 3]
    return (
        bool(longer)
        and len(words) <= LONGEST_TITLE
        and passage.rstrip()[-1:] not in {".", "!", "?", "…"}
        and all(word[0].isupper() or word[0].isdigit() for word in longer)
    )


MOST_SENTENCES: Final = 3
"""Sentences of its sources that one sentence may rest on, beside those that these point back to."""
LEAST_SHARED: Final = 2.0
"""What a sentence shares at least with the first that it rests on, and adds by each further one."""
NEXT: Final = 2.0
"""How many times more a sentence beside one that was found counts than it shares."""
ELSEWHERE: Final = 0.3
"""The same of any other sentence."""
TOPIC: Final = 0.3
"""What a word counts that only the title and headings above a sentence have."""
TYPICAL: Final = 20
"""Sentences of an article: in a shorter text words are as telling as in that."""


StandingKind = Literal["kept", "replaced", "stopped"]


@dataclass(frozen=True, slots=True)
class Passage:
    """Sentences of a source that follow each other, as they stand there."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What is shown of a sentence: itself (kept), passages in its place (replaced), or nothing."""

    kind: StandingKind
    passages: tuple[Passage, ...] = ()


class Source:
    """Passages by their sentences, read once."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._language = language_of(" ".join(chunk.text for chunk in chunks))
        self._said = [(chunk, said) for chunk in chunks for said in sentences(chunk.text)]
        self._keys = [self._of(said) for _, said in self._said]
        topics = {chunk.id: self._of(f"{chunk.title} {chunk.location}") for chunk in chunks}
        self._topics = [topics[chunk.id] for chunk, _ in self._said]
        counts = Counter(key for keys in self._keys for key in keys)
        total = max(len(self._said), TYPICAL) + 1
        self._weights = {key: math.log(total / (count + 0.5)) for key, count in counts.items()}

    def _of(self, text: str) -> Keys:
        return Keys().union(*items(text, self._language))

    def standing(self, text: str) -> Standing:
        """Tell what is shown of a sentence."""
        if self.has(text):
            return Standing("kept")
        found = self._passages(self._places(text))
        return Standing("replaced", found) if found else Standing("stopped")

    def has(self, text: str) -> bool:
        """Say whether a text stands there, as one or more whole sentences."""
        return any(is_whole(text, chunk.text) for chunk in self._chunks)

    def _places(self, text: str) -> list[int]:
        """The sentences that a text rests on: those that share most with it, in their order."""
        said = list(dict.fromkeys(items(text, language_of(text))))
        held, chosen = [0.0] * len(said), list[int]()
        while len(chosen) < min(MOST_SENTENCES, len(self._said)):
            adds = [self._adds(at, said, held, chosen) for at in range(len(self._said))]
            best = max(range(len(adds)), key=adds.__getitem__)
            if adds[best] < LEAST_SHARED:
                break
            chosen.append(best)
            held = [max(self._weight(keys, at) for at in chosen) for keys in said]
        return sorted(chosen)

    def _adds(
        self, at: int, said: Sequence[Keys], held: Sequence[float], chosen: Sequence[int]
    ) -> float:
        """What a sentence shares with a text that those chosen before it do not."""
        weights = (self._weight(keys, at) for keys in said)
        added = sum(max(0.0, each - was) for each, was in zip(weights, held, strict=True))
        if not chosen:
            return added
        beside = any(self._follows(*sorted((at, each))) for each in chosen)
        return added * (NEXT if beside else ELSEWHERE)

    def _weight(self, keys: Keys, at: int) -> float:
        if shared := keys & self._keys[at]:
            return max(self._weights[key] for key in shared)
        return TOPIC if keys & self._topics[at] else 0.0

    def _follows(self, one: int, other: int) -> bool:
        return other == one + 1 and self._said[one][0] is self._said[other][0]

    def _passages(self, places: Sequence[int]) -> tuple[Passage, ...]:
        """Sentences as they stand, with those that they point back to; neighbours together."""
        back = {at - 1 for at in places if at and self._follows(at - 1, at) and self._points(at)}
        runs: list[list[int]] = []
        for at in sorted({*places, *back}):
            if runs and self._follows(runs[-1][-1], at):
                runs[-1].append(at)
            else:
                runs.append([at])
        return tuple(Passage(self._said[run[0]][0].path, self._text(run)) for run in runs)

    def _points(self, at: int) -> bool:
        return any(map(is_anaphor, words(self._said[at][1][:20])[:1]))

    def _text(self, run: Sequence[int]) -> str:
        said = " ".join(self._said[at][1] for at in run)
        return _on_a_line(in_its_sentences(said, self._said[run[0]][0].text) or said)


@lru_cache(maxsize=64)
def source_of(chunks: tuple[Chunk, ...]) -> Source:
    """Read passages, each set of them once."""
    return Source(chunks)


async def read_sources(chunks: Sequence[Chunk]) -> None:
    """Read what may be cited of these passages, each document and all together, beside the loop."""
    paths = dict.fromkeys(chunk.path for chunk in chunks)
    apart = (tuple(chunk for chunk in chunks if chunk.path == path) for path in paths)
    for each in (*apart, tuple(chunks)):
        await asyncio.to_thread(source_of, each)


def standing(text: str, chunks: Sequence[Chunk]) -> Standing:
    """Tell what is shown of a sentence that cites these passages."""
    return source_of(tuple(chunks)).standing(text)


LEAST_TAKEN: Final = 3
"""Words in a row by which a statement is taken from a passage; all of a shorter one."""


def in_whole_sentences(text: str, chunks: Sequence[Chunk]) -> str:
    """Return a text in which what is taken from passages, word for word, is whole sentences.

    A part of a sentence may say the contrary of it. Taken are quotes, and statements that cite a
    passage and have half of their words from it in a row. What is said in other words stays.
    """
    if not chunks:
        return text
    hidden, paths = hide(text), {chunk.path for chunk in chunks}
    quotes = tuple(_whole_quote(quote, chunks) for quote in hidden.passages)

    def said(each: Statement) -> str:
        cited = tuple(chunk for chunk in chunks if chunk.path in each.cites)
        bare = HIDDEN.sub("", without_citations(each.text, paths)).strip(" *_#”")
        return _in_words_of(bare, cited) if _is_taken(bare, cited) else each.text

    stated = list(stated_in(blocks(hidden.text), paths))
    told = [[said(each) for each in found] for _, found in stated]
    if quotes == hidden.passages and told == [[each.text for each in found] for _, found in stated]:
        return text
    parts = (
        block.gap + replace(block, sentences=tuple(filter(None, each))).text
        for (block, _), each in zip(stated, told, strict=True)
    )
    return replace(hidden, passages=quotes).shown("".join(parts))


def _whole_quote(quote: str, chunks: Sequence[Chunk]) -> str:
    """The whole sentences that a quote is of, in its marks; as it is if it is no part of any."""
    if QUOTE_MARK.match(quote):
        lines = [QUOTE_MARK.sub("", line) for line in quote.splitlines()]
        whole = _sentences_of(" ".join(lines), chunks)
        shown = [whole] if whole else [_sentences_of(line, chunks) or line for line in lines]
        return quote if shown == lines else "\n".join(f"> {line}" for line in shown)
    whole = _sentences_of(quote[1:-1], chunks)
    return f"{quote[0]}{whole}{quote[-1]}" if whole else quote


def _sentences_of(said: str, chunks: Sequence[Chunk]) -> str:
    """The whole sentences that words are a part of; empty if they are whole, or of none."""
    if any(is_whole(said, chunk.text) for chunk in chunks):
        return ""
    found = (in_its_sentences(said, chunk.text) for chunk in chunks)
    return _on_a_line(next(filter(None, found), ""))


def _is_taken(said: str, chunks: Sequence[Chunk]) -> bool:
    """Whether half of these words stand in a row in a passage; whole sentences are not taken."""
    told = words(said)
    run = max(math.ceil(len(told) / 2), min(len(told), LEAST_TAKEN))
    if run < 2 or any(is_whole(said, chunk.text) for chunk in chunks):
        return False
    runs = (f" {' '.join(told[at : at + run])} " for at in range(len(told) - run + 1))
    return any(each in _in_a_row(chunk.text) for each in runs for chunk in chunks)


@lru_cache(maxsize=64)
def _in_a_row(text: str) -> str:
    return f" {' '.join(words(text))} "


def _in_words_of(said: str, chunks: tuple[Chunk, ...]) -> str:
    """What passages say in place of a statement, as quotes; empty if nothing is near enough."""
    parts = ((chunk.path, in_its_sentences(said, chunk.text)) for chunk in chunks)
    found = [Passage(path, _on_a_line(whole)) for path, whole in parts if whole][:1]
    passages = found or source_of(chunks).standing(said).passages
    return " ".join(f"“{each.text}” [{each.path}]" for each in passages)


def _on_a_line(text: str) -> str:
    said = " ".join(text.split()).replace("[", "(").replace("]", ")")
    return truncate_at_boundary(said, PASSAGE_CHARS)


PROMPT: Final = "<statements>\n{statements}\n</statements>\n\nJudge each statement."
SECONDS: Final = 20.0


class Verdict(Strict):
    """What one statement is, beside its passage."""

    number: int = Field(description="The number of the statement.")
    verdict: Literal["supported", "not_supported", "contradicted"]
    differs: str = Field(description="The words of it that the passage does not say, or none.")


class Verdicts(Strict):
    """A verdict for each statement."""

    verdicts: list[Verdict]


async def supported(doubtful: Mapping[str, str], run: Run) -> frozenset[str]:
    """Return those statements that a model finds to say what their passages say.

    A number that the passage lacks is not believed. Nothing is asked without statements, a model
    for it (`aside["check"]`) or a request left. Never raises, except when cancelled.
    """
    model, stated = run.aside.get("check"), list(doubtful.items())
    if not stated or model is None or run.ledger.requests_left(run.limits) < 1:
        return frozenset()
    limits = replace(
        run.limits,
        structured_output_max_retries=0,
        model_tries=1,
        seconds=min(SECONDS, run.limits.seconds),
    )
    contract = OutputContract(Verdicts, temperature=0)
    asked = run.instructed(prompt_for(run, "documents-check"), schema=contract.output.text)
    listed = (
        f"{number}. {as_data(said)}\nPASSAGE: {as_data(passage)}"
        for number, (said, passage) in enumerate(stated, 1)
    )
    with run.span.child("check", "span", input=[said for said, _ in stated]) as step:
        response = await generate_agentic_response(
            PROMPT.format(statements="\n\n".join(listed)),
            run=replace(asked, models=[model], limits=limits, span=step),
            contract=contract,
        )
        verdicts = response.answer.verdicts if response.ok and response.answer else []
        held = {each.number for each in verdicts if each.verdict == "supported"}
        held -= {each.number for each in verdicts if each.verdict != "supported" or each.differs}
        found = frozenset(
            said
            for number, (said, passage) in enumerate(stated, 1)
            if number in held and numbers(said) <= numbers(passage)
        )
        step.update(output=sorted(found), level=None if response.ok else "WARNING")
    return found
