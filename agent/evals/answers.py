"""How many altered answers the rule of `agent.documents.claims` stops, and how many true ones pass.

Each case is a paraphrase of a starter article and the same with a number, a name or a denial
changed, or with a clause or a link added. Nobody is asked: the rule alone is measured.
"""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import TypeAdapter

from agent.documents.claims import unsupported
from agent.documents.store import Chunk
from agent.text import pattern

Kind = Literal["number", "name", "negation", "clause", "link"]
Set = Literal["first", "second", "third"]
ALTERED: Final = pattern(r"\{([^|{}]*)\|([^{}]*)\}")
LEAST_SHARE: Final = 0.95


@dataclass(frozen=True, slots=True)
class AlteredAnswer:
    """A true answer from an article, and the same made false; `part` is the set it is of."""

    part: Set
    path: str
    kind: Kind
    true: str
    altered: str


@dataclass(frozen=True, slots=True)
class Share:
    """How many cases were judged rightly; `wrong` are the answers of the others."""

    name: str
    part: Set
    total: int
    wrong: tuple[str, ...]

    @property
    def value(self) -> float:
        """The share of those that were judged rightly."""
        return 1 - len(self.wrong) / self.total


def altered_answers() -> Iterator[AlteredAnswer]:
    """Read the cases, in their order."""
    file = Path(__file__).with_suffix(".toml")
    shape = TypeAdapter(dict[Set, dict[str, dict[Kind, list[str]]]])
    for part, articles in shape.validate_python(tomllib.loads(file.read_text("utf-8"))).items():
        for path, kinds in articles.items():
            for kind, written in kinds.items():
                for text in written:
                    true, altered = _as_written(text, 1), _as_written(text, 2)
                    yield AlteredAnswer(part, path, kind, true, altered)


def _as_written(text: str, side: int) -> str:
    return ALTERED.sub(lambda found: found[side], text)


def shares(chunks_of: Callable[[str], Sequence[Chunk]]) -> list[Share]:
    """Judge every case by the chunks of its article: the shares of each set, by kind and all."""
    cases = list(altered_answers())
    passed = {
        text
        for each in cases
        for text in (each.true, each.altered)
        if unsupported(text, chunks_of(each.path)) is None
    }
    made = []
    for part in get_args(Set):
        these = [each for each in cases if each.part == part]
        for kind in (*get_args(Kind), "altered"):
            texts = [each.altered for each in these if kind in (each.kind, "altered")]
            missed = tuple(text for text in texts if text in passed)
            made.append(Share(f"{kind}, stopped", part, len(texts), missed))
        lost = tuple(each.true for each in these if each.true not in passed)
        made.append(Share("true, kept", part, len(these), lost))
    return made
