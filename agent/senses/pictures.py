"""Read pictures of labels and wine lists: one request per picture, checked by its transcript.

The words of a picture are data: bounded, and a line that gives orders or has an address is no
wine. Numbers that a model adds to a line that it copied are left out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from agent import size_limits
from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import log_failure
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.markdown import find_auto_links
from agent.prompts import get_prompt, with_instructions
from agent.senses.sent_files import Unusable
from agent.sommelier.attachment import (
    LABEL_ID_PREFIX,
    LIST_ID_PREFIX,
    Attachment,
    Contents,
    Line,
    ReadWine,
    parse_numbers,
    with_known_id,
)
from agent.sommelier.sommelier_prompts import compact_schema
from agent.sommelier.wine import Catalogue
from agent.text import split_words
from agent.turn import find_security_flags, get_deps

VISION: Final = "vision"
"""The key of the model for pictures in `Deps.models`."""
QUESTION: Final = "What stands in this picture?"
KEPT_BACK: Final = 4
"""Requests of a turn that are left for its answer."""
LIST_TOKENS: Final = 6000
ADDRESSES: Final = ("://", "www.", "@", "t.me/")
LONGEST_NAME: Final = 16
"""Words of a wine's name."""

Download = Callable[[], Awaitable[str]]
"""Fetches a picture as a model is shown it; raises Unusable if it cannot be had."""


class PictureText(BaseModel):
    """The text of a picture."""

    model_config = ConfigDict(json_schema_extra=compact_schema)

    shows: Contents
    wines: list[ReadWine] = Field(default_factory=list)
    unreadable: int = Field(default=0, ge=0, le=1000)
    seen: Line = Field(default="", description="Of anything else: what it is, in five words.")


def _is_empty(text: PictureText) -> str | None:
    if text.shows == "wine_list" and not (text.wines or text.unreadable):
        return "a wine list has wines, or lines that cannot be read"
    return None


def _whole_entries(written: Mapping[str, Any], evidence: Evidence) -> PictureText | None:
    """Return the wines that are written whole in a transcription that was cut off."""
    begun = written.get("wines")
    if not isinstance(begun, list) or len(begun) < 2:
        return None
    # The last may lack its end; it counts as a line that was not read.
    return PictureText.model_validate({**written, "wines": begun[:-1], "unreadable": 1})


CONTRACT: Final = OutputContract(
    PictureText,
    semantic=_is_empty,
    temperature=0.0,
    partial=_whole_entries,
    salvage=lambda text, _: text,
)


async def read_pictures(
    downloads: Sequence[Download], run: Run, catalogue: Catalogue, *, left_out: int = 0
) -> Attachment:
    """Read the pictures of a message side by side; that counts in the run's ledger.

    `left_out` counts pictures that are not among the `downloads`.
    """
    remaining = max(1, run.requests_left - KEPT_BACK)
    looked_at = downloads[: min(size_limits.IMAGES, remaining)]
    readings = await asyncio.gather(*(_read(run, download) for download in looked_at))
    return await _attachment(readings, catalogue, left_out + len(downloads) - len(looked_at))


async def _read(run: Run, download: Download) -> PictureText | None:
    """Return the wines of a picture, on a span of its own; None if that fails."""
    with run.span.child("read.picture", "span") as span:
        try:
            read = await _transcribe(replace(run.for_tool(span), stop=run.stop), await download())
        except Exception as error:
            why = str(error)
            if not isinstance(error, Unusable):
                why = log_failure("A picture could not be read", error)
            span.update(metadata={"error_type": why}, level="WARNING")
            return None
        span.update(
            output={"shows": read.shows, "wines": [wine.line for wine in read.wines]},
            metadata={"unreadable": read.unreadable},
        )
    return read


async def _transcribe(run: Run, picture: str) -> PictureText:
    """Ask a model for the text of a picture; raise Unusable if it gives no valid answer."""
    limits = replace(
        run.limits,
        structured_output_max_retries=1,
        answer_tokens=max(run.limits.answer_tokens, LIST_TOKENS),
    )
    asked = with_instructions(run, get_prompt(run, "picture"), schema=CONTRACT.output.schema_text)
    response = await generate_agentic_response(
        QUESTION,
        run=replace(asked, models=[get_deps(run).models[VISION]], limits=limits),
        contract=CONTRACT,
        images=[picture],
    )
    if response.answer is None:
        raise Unusable(response.outcome)
    return without_guesses(response.answer)


def without_guesses(text: PictureText) -> PictureText:
    """Return a transcription without lines that are no wines, and numbers that their line lacks.

    Lines that are left out count as unreadable.
    """
    wines = [
        _with_read_numbers(wine)
        for wine in text.wines[: size_limits.WINES_PER_LIST]
        if _is_wine(wine)
    ]
    unreadable = text.unreadable + len(text.wines) - len(wines)
    seen = text.seen if text.shows == "other" and not find_security_flags(text.seen) else ""
    return text.model_copy(update={"wines": wines, "unreadable": unreadable, "seen": seen})


def _is_wine(wine: ReadWine) -> bool:
    """Tell whether a line may be that of a wine: it names one, has no address, gives no orders."""
    facts = f"{wine.producer}; {wine.name}; {wine.region}"
    everything = f"{wine.line} {facts}".lower()
    name = split_words(wine.name or wine.producer or wine.region)
    is_named = len(name) <= LONGEST_NAME and not {*name}.isdisjoint(split_words(wine.line))
    return is_named and not (
        any(sign in everything for sign in ADDRESSES)
        or any(
            sum(map(str.isdigit, facts[part.start : part.end])) for part in find_auto_links(facts)
        )
        or find_security_flags(everything)
    )


def _with_read_numbers(wine: ReadWine) -> ReadWine:
    """Return a wine with those of its numbers alone that its line holds."""
    values = {*parse_numbers(wine.line)}
    has_year = wine.vintage is not None and {wine.vintage, wine.vintage % 100} & values
    return wine.model_copy(
        update={
            "vintage": wine.vintage if has_year else None,
            "price": wine.price if wine.price in values else None,
            "glass_price": wine.glass_price if wine.glass_price in values else None,
        }
    )


async def _attachment(
    readings: Sequence[PictureText | None], catalogue: Catalogue, left_out: int
) -> Attachment:
    """Make one attachment of the readings: of pages of a list one list, without other pictures."""
    read = [reading for reading in readings if reading]
    shown = {reading.shows for reading in read if reading.wines or reading.unreadable}
    kinds: tuple[Contents, ...] = ("wine_list", "labels")
    shows = next((kind for kind in kinds if kind in shown), "other")
    of_kind = [reading for reading in read if reading.shows == shows]
    found = [wine for reading in of_kind for wine in reading.wines][: size_limits.WINES_PER_LIST]
    prefix = LIST_ID_PREFIX if shows == "wine_list" else LABEL_ID_PREFIX
    # A model may have written facts of its own for these.
    own = ({"id": f"{prefix}{number}", "known_id": None, "known": None} for number in count(1))
    wines = [wine.model_copy(update=facts) for wine, facts in zip(found, own, strict=False)]
    unread = {
        "lines_unread": sum(reading.unreadable for reading in of_kind),
        "pictures_unread": len(readings) - len(read),
        "pictures_left_out": left_out,
    }
    return Attachment(
        shows=shows,
        wines=tuple([await with_known_id(wine, catalogue) for wine in wines]),
        seen="; ".join(reading.seen for reading in read if reading.seen),
        unread={name: number for name, number in unread.items() if number},
    )
