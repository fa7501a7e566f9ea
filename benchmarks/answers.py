"""`python -m benchmarks.answers`: what is shown of altered answers and of true ones.

Judged by `agent.documents.grounding` alone, nobody is asked. Most cases are a paraphrase of a
starter article and the same with a number, name or denial changed, or a clause or link added.
Those of the set `outside` were written by others, each with the passage that it paraphrases or
alters.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import TypeAdapter

from agent.documents.grounding import Standing, standing
from agent.documents.passages import Chunk, numbers
from agent.text import pattern, sentences
from db.documents.chunking import chunk
from db.documents.indexing import STARTER
from db.documents.reading import read_bytes, read_document

Kind = Literal["number", "name", "negation", "clause", "link"]
Part = Literal["first", "second", "third", "outside"]
ALTERED: Final = pattern(r"\{([^|{}]*)\|([^{}]*)\}")
LEAST_SHARE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence that cites an article, and whether that says so; `passage` is where, if known."""

    part: Part
    path: str
    text: str
    is_true: bool
    passage: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """How many sentences of a set came to something; `others` are those that did not."""

    name: str
    part: Part
    total: int
    others: tuple[str, ...]
    is_aim: bool = True

    @property
    def value(self) -> float:
        """The share of those that came to it."""
        return 1 - len(self.others) / self.total


def cases() -> Iterator[Case]:
    """Read the cases, in their order."""
    file = Path(__file__)
    shape = TypeAdapter(dict[Part, dict[str, dict[Kind, list[str]]]])
    written = shape.validate_python(tomllib.loads(file.with_suffix(".toml").read_text("utf-8")))
    for part, articles in written.items():
        for path, kinds in articles.items():
            for text in (each for texts in kinds.values() for each in texts):
                yield Case(part, path, _as_written(text, 1), is_true=True)
                yield Case(part, path, _as_written(text, 2), is_true=False)
    for line in file.with_suffix(".jsonl").read_text("utf-8").splitlines():
        of = json.loads(line)
        is_true = of["label"] == "true"
        yield Case("outside", of["article"], of["sentence"], is_true, passage=of["passage"])


def _as_written(text: str, side: int) -> str:
    return ALTERED.sub(lambda found: found[side], text)


def shares() -> list[Share]:
    """Judge every case by the chunks of its article: what became of the sentences of each set."""
    judged = [(each, standing(each.text, chunks_of(each.path))) for each in cases()]
    made = []
    for part in get_args(Part):
        altered = [pair for pair in judged if pair[0].part == part and not pair[0].is_true]
        true = [pair for pair in judged if pair[0].part == part and pair[0].is_true]
        shown = [pair for pair in true if _says_it(*pair, chunks_of(pair[0].path))]
        kept, replaced = (
            [pair for pair in shown if pair[1].kind == kind] for kind in ("kept", "replaced")
        )
        right = [pair for pair in altered if pair[1].kind != "kept"]
        made += [
            _share_of("altered, not shown", part, altered, right),
            _share_of("true, shown", part, true, shown),
            _share_of("… as worded", part, true, kept, is_aim=False),
            _share_of("… in the source's words", part, true, replaced, is_aim=False),
        ]
    return made


def _share_of(
    name: str,
    part: Part,
    of: Sequence[tuple[Case, Standing]],
    these: Sequence[tuple[Case, Standing]],
    *,
    is_aim: bool = True,
) -> Share:
    others = tuple(case.text for case, told in of if (case, told) not in these)
    return Share(name, part, len(of), others, is_aim)


def _says_it(case: Case, told: Standing, chunks: Sequence[Chunk]) -> bool:
    """Whether a person is told what a true sentence says.

    Passages in its place hold a sentence of the one it paraphrases; where that is not known, all
    its numbers that the article has.
    """
    if told.kind != "replaced":
        return told.kind == "kept"
    shown = " ".join(passage.text for passage in told.passages)
    if case.passage:
        return any(said in shown for said in sentences(case.passage))
    article = numbers(" ".join(chunk.text for chunk in chunks))
    return numbers(case.text) & article <= numbers(shown)


@cache
def chunks_of(path: str) -> tuple[Chunk, ...]:
    """The chunks of a starter article."""
    read = read_document(read_bytes(STARTER / path), path)
    pieces = chunk(read.sections)
    return tuple(
        Chunk(f"{path}#{at}", path, path, read.title, each.headings, at, len(pieces), each.text)
        for at, each in enumerate(pieces, 1)
    )


def main() -> None:
    """Print the shares, and the sentences that fared otherwise than they should."""
    found = shares()
    for each in found:
        missed = " ✗" if each.is_aim and each.value < LEAST_SHARE else ""
        told = f"{each.total - len(each.others)} of {each.total}"
        print(f"{each.name:28} {each.part:8} {told:>12} {each.value:6.1%}{missed}")
    for each in found:
        for text in each.others if each.is_aim else ():
            print(f"not {each.name}: {text}")


if __name__ == "__main__":
    main()
