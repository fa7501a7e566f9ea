"""Read pictures of labels and wine lists with a model, in one request per picture.

The text of a picture is untrusted. A line is not taken for a wine if it has an address or looks
like a prompt injection. The model copies each line and says what it means. A number that it names
is removed if the line does not have it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from agent import size_limits
from agent.auto_links import find_auto_links
from agent.engine.contract import Evidence, OutputContract, Part
from agent.engine.errors import log_failure
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.prompts import get_prompt, with_instructions
from agent.senses.sent_files import UnusableFile
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
from agent.sommelier.queries import Catalogue
from agent.sommelier.sommelier_prompts import compact_schema
from agent.text import split_words
from agent.turn import find_security_flags, get_deps

VISION: Final = "vision"
"""The key of the model for pictures in `Deps.models`."""
QUESTION: Final = "What does this picture show?"
ANSWER_REQUESTS: Final = 4
"""The requests of a turn that are kept for its answer, and not used for pictures."""
MIN_ANSWER_TOKENS: Final = 6000
"""The lowest token limit of a transcription, because wine lists are long."""
ADDRESS_MARKERS: Final = ("://", "www.", "@", "t.me/")
MAX_NAME_WORDS: Final = 16
"""A longer name is not the name of a wine, but a sentence."""

Download = Callable[[], Awaitable[str]]
"""Returns a picture as a data URL, or raises UnusableFile if it is not available."""


class PictureText(BaseModel):
    """A model's transcription of a picture."""

    model_config = ConfigDict(json_schema_extra=compact_schema)

    shows: Contents
    wines: list[ReadWine] = Field(default_factory=list)
    unreadable: int = Field(default=0, ge=0, le=1000)
    """The number of lines that the model could not read."""
    seen: Line = Field(
        default="", description="Of anything else: what it is, in five words."
    )
    """A description of the picture, if it shows neither labels nor a wine list."""


def _find_problem(text: PictureText) -> str | None:
    has_lines = text.wines or text.unreadable
    if text.shows == "wine_list" and not has_lines:
        return "a wine list has wines, or lines that cannot be read"
    return None


def _parse_truncated(written: Mapping[str, Any]) -> PictureText | None:
    """Return the complete wines of a truncated transcription, or None if there are none."""
    wines = written.get("wines")
    if not isinstance(wines, list) or len(wines) < 2:
        return None
    # The last wine may be incomplete, so it counts as an unreadable line.
    complete = {**written, "wines": wines[:-1], "unreadable": 1}
    return PictureText.model_validate(complete)


def _keep_all(text: PictureText, evidence: Evidence) -> Part[PictureText]:
    """Return all of a transcription, for the contract: no part of it depends on evidence."""
    return Part(text)


CONTRACT: Final = OutputContract(
    PictureText,
    semantic=_find_problem,
    temperature=0.0,
    read_unfinished=_parse_truncated,
    keep_valid=_keep_all,
)


async def read_pictures(
    downloads: Sequence[Download],
    run: Run,
    catalogue: Catalogue,
    *,
    left_out: int = 0,
) -> Attachment:
    """Read the pictures of a message concurrently, within the limits of the run.

    `left_out` is the number of pictures that are not among the `downloads`.
    """
    requests = max(1, run.requests_left - ANSWER_REQUESTS)
    selected = downloads[: min(size_limits.IMAGES, requests)]
    left_out += len(downloads) - len(selected)
    readings = [read_picture(run, download) for download in selected]
    texts = await asyncio.gather(*readings)
    return await _merge(texts, catalogue, left_out)


async def read_picture(run: Run, download: Download) -> PictureText | None:
    """Return the text of a picture, or None if it cannot be read. Record either on a new span."""
    with run.span.child("read.picture", "span") as span:
        # The run of a tool has a `Stop` of its own. With that of the turn, /stop ends the reading.
        picture_run = replace(run.for_tool(span), stop=run.stop)
        try:
            picture = await download()
            text = await _transcribe(picture_run, picture)
        except UnusableFile as error:
            span.update(metadata={"error_type": str(error)}, level="WARNING")
            return None
        except Exception as error:
            log_failure("A picture could not be read", error)
            error_type = type(error).__name__
            span.update(metadata={"error_type": error_type}, level="WARNING")
            return None
        lines = [wine.line for wine in text.wines]
        span.update(
            output={"shows": text.shows, "wines": lines},
            metadata={"unreadable": text.unreadable},
        )
    return text


async def _transcribe(run: Run, picture: str) -> PictureText:
    """Ask a model for the text of a picture.

    Raises:
        UnusableFile: the model gave no valid answer.
    """
    answer_tokens = max(run.limits.answer_tokens, MIN_ANSWER_TOKENS)
    limits = replace(run.limits, answer_tokens=answer_tokens)
    model = get_deps(run).models[VISION]
    prompt = get_prompt(run, "picture")
    run = with_instructions(run, prompt, schema=CONTRACT.output.schema_text)
    response = await generate_agentic_response(
        QUESTION,
        run=replace(run, models=[model], limits=limits),
        contract=CONTRACT,
        images=[picture],
    )
    if response.answer is None:
        raise UnusableFile(response.outcome)
    return remove_invented(response.answer)


def remove_invented(text: PictureText) -> PictureText:
    """Return a transcription without what the picture may not show.

    Lines that are not wines are removed, and count as unreadable. Numbers that are not in their
    line are removed, and so is a description that looks like a prompt injection.
    """
    wines = []
    for wine in text.wines[: size_limits.WINES_PER_LIST]:
        if _is_wine(wine):
            wines.append(_remove_invented_numbers(wine))
    removed_count = len(text.wines) - len(wines)
    unreadable = text.unreadable + removed_count
    seen = ""
    if text.shows == "other" and not find_security_flags(text.seen):
        seen = text.seen
    return text.model_copy(
        update={"wines": wines, "unreadable": unreadable, "seen": seen}
    )


def _is_wine(wine: ReadWine) -> bool:
    """Return whether a line names a wine, and has neither an address nor a prompt injection."""
    name_words = split_words(wine.name or wine.producer or wine.region)
    if len(name_words) > MAX_NAME_WORDS:
        return False
    # If no word of a name is in the line, the model has invented the name.
    line_words = split_words(wine.line)
    if set(name_words).isdisjoint(line_words):
        return False
    facts = f"{wine.producer}; {wine.name}; {wine.region}"
    text = f"{wine.line} {facts}".lower()
    if any(marker in text for marker in ADDRESS_MARKERS):
        return False
    for link in find_auto_links(facts):
        # The name of a wine may look like a domain. A link with digits, however, is an address or a
        # telephone number.
        part = facts[link.start : link.end]
        if any(map(str.isdigit, part)):
            return False
    return not find_security_flags(text)


def _remove_invented_numbers(wine: ReadWine) -> ReadWine:
    """Return a wine without the numbers that are not in its line."""
    values = set(parse_numbers(wine.line))
    invented: dict[str, None] = {}
    if wine.vintage is not None:
        # A list may print the vintage 2019 as 19.
        forms = {wine.vintage, wine.vintage % 100}
        if values.isdisjoint(forms):
            invented["vintage"] = None
    if wine.price not in values:
        invented["price"] = None
    if wine.glass_price not in values:
        invented["glass_price"] = None
    return wine.model_copy(update=invented)


async def _merge(
    texts: Sequence[PictureText | None],
    catalogue: Catalogue,
    left_out: int,
) -> Attachment:
    """Return one attachment with the wines of all wine lists.

    If no picture shows a wine list, the attachment has the wines of all labels.
    """
    successful = [text for text in texts if text is not None]
    shows = _find_contents(successful)
    read_wines: list[ReadWine] = []
    unread: Counter[str] = Counter()
    for text in successful:
        if text.shows == shows:
            read_wines += text.wines
            unread["lines_unread"] += text.unreadable
    unread["pictures_unread"] = len(texts) - len(successful)
    unread["pictures_left_out"] = left_out
    prefix = LIST_ID_PREFIX if shows == "wine_list" else LABEL_ID_PREFIX
    wines = []
    for number, wine in enumerate(read_wines[: size_limits.WINES_PER_LIST], start=1):
        # Only the code sets these fields, but the model may have written them.
        fields = {"id": f"{prefix}{number}", "known_id": None, "known": None}
        numbered = wine.model_copy(update=fields)
        wines.append(await with_known_id(numbered, catalogue))
    seen = [text.seen for text in successful if text.seen]
    return Attachment(
        shows=shows,
        wines=tuple(wines),
        seen="; ".join(seen),
        unread={name: count for name, count in unread.items() if count},
    )


def _find_contents(texts: Sequence[PictureText]) -> Contents:
    """Return the contents of the pictures of a message: a wine list, or else labels, or neither."""
    contents = {text.shows for text in texts if text.wines or text.unreadable}
    if "wine_list" in contents:
        return "wine_list"
    if "labels" in contents:
        return "labels"
    return "other"
