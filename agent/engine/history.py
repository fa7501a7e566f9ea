"""What is remembered of a conversation, and the window of it that a model is shown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from agent.engine.messages import Message

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a conversation as it is remembered: text, and the wines it recommended.

    `turn_id` says of which turn, where that is kept.
    """

    role: Role
    content: str
    wine_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    turn_id: int | None = None


ABBREVIATIONS: Final = frozenset(
    "dr mr mrs ms prof st ste mt ca cf vs e.g i.e etc approx no nr vol fig inc ltd co jr sr dept "
    "ch dom ex min max z.b u.a d.h bzw ggf usw evtl p.ex env av sig sr.a ecc es p.es "
    "tel".split()
)
"""Words whose full stop ends no sentence; a missed boundary is better than a false one."""

SENTENCE_END: Final = re.compile(
    r"""(?P<stop>[.!?…]+["'»”’)\]]*)(?=\s)   # western: a stop, then white space
      | (?P<full>[。！？]+[」』”’）]*)          # CJK: no space follows
    """,
    re.VERBOSE,
)
PARAGRAPH_END: Final = re.compile(r"\n[ \t]*\n")
LAST_WORD: Final = re.compile(r"(\S+)$")
NEXT_CHARACTER: Final = re.compile(r"\s*(\S)")


def truncate_at_boundary(text: str, limit: int) -> str:
    """`text` cut at the last paragraph or sentence boundary within `limit` characters.

    A text with no such boundary is cut at the last white space, or at `limit` if there is none.
    Source of the rule: R-006 of the structured-output research.
    """
    if len(text) <= limit:
        return text
    cut = max(_last_paragraph_end(text, limit), _last_sentence_end(text, limit))
    if cut <= 0:
        cut = _last_white_space(text, limit)
    return text[:cut].rstrip()


def _last_paragraph_end(text: str, limit: int) -> int:
    ends = [match.start() for match in PARAGRAPH_END.finditer(text, 0, limit + 2)]
    return max((end for end in ends if end <= limit and text[:end].strip()), default=0)


def _last_sentence_end(text: str, limit: int) -> int:
    ends = (
        match.end()
        for match in SENTENCE_END.finditer(text, 0, limit + 1)
        if match.end() <= limit and _ends_sentence(text, match)
    )
    return max(ends, default=0)


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Whether a stop really ends a sentence: not in "1.5 l", "Dr. No", "e.g. this", "3. item"."""
    if match["full"] or match["stop"].strip("\"'»”’)]") != ".":
        return True
    before = LAST_WORD.search(text, max(0, match.start() - 40), match.start())
    word = (before[1] if before else "").strip("([\"'«„“").lower()
    if word in ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
        return False
    line_start = not before or text[: before.start()].rstrip(" \t*#>-")[-1:] in {"", "\n"}
    if word.isdigit() and line_start:
        return False
    following = NEXT_CHARACTER.match(text, match.end())
    return following is None or not following[1].islower()


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order; a missed boundary is better than a false one."""
    ends = [match.end() for match in SENTENCE_END.finditer(text) if _ends_sentence(text, match)]
    parts = (text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [part.strip() for part in parts if part.strip()]


def _last_white_space(text: str, limit: int) -> int:
    head = text[: limit + 1]
    return max((match.start() for match in re.finditer(r"\s+", head)), default=0) or limit


def window(stored: Sequence[StoredMessage]) -> list[Message]:
    """Stored messages as a model is shown them; ids let a follow-up look a shown wine up again.

    Blank ones are left out: an empty content is a 400 with some servers.
    """
    return [
        {"role": message.role, "content": _with_wine_ids(message)}
        for message in stored
        if message.content.strip()
    ]


def _with_wine_ids(message: StoredMessage) -> str:
    if not message.wine_ids:
        return message.content
    return f"{message.content}\n\n[wine ids: {', '.join(message.wine_ids)}]"
