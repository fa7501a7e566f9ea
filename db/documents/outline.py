"""What a file says, in order and under its headings. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["markdown", "text", "html", "pdf"]


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph (`level` 0) or a heading (`level` from 1, the highest)."""

    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading: paragraphs separated by blank lines."""

    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Outline:
    """A file's title and sections; `title` is empty where the file gives none."""

    title: str
    sections: tuple[Section, ...]


@dataclass(slots=True)
class _Open:
    """A section while it is read."""

    heading: Block
    headings: tuple[str, ...]
    paragraphs: list[str] = field(default_factory=list)


def outline(blocks: Iterable[Block], title: str = "") -> Outline:
    """Blocks grouped by their headings.

    Without a `title` the first heading of level 1 is the title. The title's own heading is left
    out of the heading chains: it stands beside them already.
    """
    blocks = [block for block in blocks if block.text.strip()]
    title = title or next((block.text for block in blocks if block.level == 1), "")
    return Outline(title, tuple(_sections(_opened(blocks, title))))


def _opened(blocks: Iterable[Block], title: str) -> list[_Open]:
    found = [_Open(Block(""), ())]
    chain: list[Block] = []
    titled = False
    for block in blocks:
        if not block.level:
            found[-1].paragraphs.append(block.text)
            continue
        chain = [above for above in chain if above.level < block.level]
        if block.level == 1 and block.text == title and not titled:
            titled = True
        else:
            chain.append(block)
        found.append(_Open(block, tuple(heading.text for heading in chain)))
    return found


def _sections(opened: list[_Open]) -> Iterator[Section]:
    for number, section in enumerate(opened):
        text = "\n\n".join(section.paragraphs)
        if not text and _is_leaf(opened, number):
            text = section.heading.text
        if text:
            yield Section(section.headings, text)


def _is_leaf(opened: list[_Open], number: int) -> bool:
    """Whether nothing stands below this heading: then it is a text of its own, or would be lost."""
    following = opened[number + 1 : number + 2]
    return all(section.heading.level <= opened[number].heading.level for section in following)
