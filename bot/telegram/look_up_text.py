"""What /ask, /quotes and /find read, and what they found as a reply. Pure.

Titles, passages, snippets and queries come from documents, models and the web: they are escaped.
The buttons need nothing stored: what they are about stands in the message itself.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from agent.documents.answer import Answer, Citation
from agent.documents.quotes import Quote, Quotes
from agent.i18n import say, spoken
from agent.markdown import escape, link, visible
from agent.places.find import FoundPlace, Places
from agent.places.queries import LONGEST_PLACE, categories, category_named, languages
from agent.text import pattern, truncate_at_boundary
from agent.turn import Reply
from bot.telegram.buttons import Button
from bot.telegram.sender import Outgoing

REFINE: Final = "refine"
AS_FILE: Final = "queries"
"""The data of the buttons under a weak answer and under ten searches."""

SHOWN_PLACES: Final = 10
SNIPPET_CHARS: Final = 200
FLAG: Final = pattern(r"(?i)(?:\A|\s)(?:--|[—–])refine(?=\s|\Z)")
"""`--refine`; telephones make a dash of two hyphens."""

BEFORE_PLACE: Final = pattern(r"(?:[Ii]n|[Nn]ear|around|at|à|en|bei|um|cerca de|a)\s+")
LONGEST_NAME: Final = 6
"""Words in the longest name of a category."""


def read_question(words: str) -> tuple[str, bool]:
    """The question of /ask, and whether it is to be refined."""
    flag = FLAG.search(words)
    if flag is None:
        return words.strip(), False
    return f"{words[: flag.start()]} {words[flag.end() :]}".strip(), True


def read_find(words: str) -> tuple[str | None, str]:
    """The category and the place of /find: "WINE_BAR Lyon", "wine bars in Lyon".

    The category is None if there is none of that name.
    """
    parts = words.replace(",", " , ").split()
    for count in range(min(len(parts), LONGEST_NAME), 0, -1):
        with suppress(ValueError):
            category = category_named(" ".join(parts[:count]))
            place = " ".join(parts[count:]).replace(" ,", ",").strip(" ,")
            before = BEFORE_PLACE.match(place)
            return category, place[before.end() if before else 0 :]
    return None, words.strip()


def coordinates(latitude: float, longitude: float) -> str:
    """A location as a place, to about ten metres."""
    return f"{latitude:.4f}, {longitude:.4f}"


def place_of(*parts: str) -> str:
    """A place as somebody's map names it, on one line."""
    named = (_one_line(visible(each)) for each in parts)
    return ", ".join(filter(None, named))[:LONGEST_PLACE].strip(" ,")


def label(category: str) -> str:
    """What people call a category, with a capital."""
    known = languages().get(spoken())
    named = known.kinds[category][0] if known else categories()[category].label
    return named[0].upper() + named[1:]


def answer_text(answer: Answer) -> str:
    """An answer with numbered footnotes, and what was searched for if the question was refined."""
    said = escape(answer.footnoted)
    if answer.refined_question is None:
        return said
    also = say("also_searched", question=_line(answer.refined_question))
    return f"{also}\n\n{said}"


def sources_text(answer: Answer, *, with_passages: bool = True) -> str:
    """The footnotes: title, section and, folded, the passage; empty without any.

    An answer that consists of the passages themselves does not repeat them.
    """
    if not answer.citations:
        return ""
    notes = [
        _source(each, with_passage=with_passages and answer.by_model) for each in answer.citations
    ]
    return "\n".join([f"**{say('sources')}**", *notes])


def _source(cited: Citation, *, with_passage: bool) -> str:
    line = f"[{cited.number}] {_line(cited.title)} · {_line(cited.location)}"
    return f"{line}\n{quoted(cited.passage, '**>')}" if with_passage else line


def is_weak(answer: Answer) -> bool:
    """Whether looking again with other words may help."""
    return not answer.enough_information and answer.outcome != "refused"


def quote_texts(found: Quotes) -> list[str]:
    """Each quote with its source, then what they come to."""
    shown = [_quote(number, each) for number, each in enumerate(found.quotes, start=1)]
    return [*shown, escape(found.summary)] if found.summary.strip() else shown


def _quote(number: int, quote: Quote) -> str:
    source = f"**{number}. {_line(quote.source_title)}** · {_line(quote.source_location)}"
    return "\n".join(filter(None, [source, quoted(quote.content), _line(quote.relevance)]))


def places_text(found: Places) -> str:
    """The places as links, with what their sources say of them; empty if there are none."""
    if not found.results:
        return ""
    shown = found.results[:SHOWN_PLACES]
    listed = [_place(number, each, found) for number, each in enumerate(shown, start=1)]
    return "\n\n".join([_heading(found), *listed])


def _place(number: int, place: FoundPlace, found: Places) -> str:
    hits = say("found_by", count=len(place.queries), all=len(found.queries.queries))
    lines = [
        " · ".join(filter(None, [f"{number}. {_line(place.title)}", link(place.url)])),
        escape(truncate_at_boundary(_one_line(place.snippet), SNIPPET_CHARS)),
        " · ".join(filter(None, [place.distance, hits])),
    ]
    return "\n".join(filter(None, lines))


def searches_text(found: Places) -> str:
    """The ten queries as links, and why there is nothing else, if so."""
    lead = found.note or say("searches")
    if found.failed_searches and not found.note:
        lead = say("searches_failed", count=found.failed_searches)
    listed = [
        f"{number}. {_line(each.query)} · {link(each.url)}"
        for number, each in enumerate(found.links, start=1)
    ]
    head = [lead] if found.results else [_heading(found), lead]
    return "\n\n".join([*head, "\n".join(listed)])


def queries_of(searches: str) -> list[str]:
    """The queries in a message that `searches_text` made."""
    listed = (line.rpartition(" · ")[0].partition(". ") for line in searches.splitlines())
    return [query for number, _, query in listed if number.isdecimal()]


def _heading(found: Places) -> str:
    return f"**{label(found.queries.category)} · {_line(found.queries.place)}**"


def quoted(text: str, mark: str = ">") -> str:
    """A text as a quote; `**>` marks a folded one."""
    return "\n".join(f"{mark} {escape(line)}" for line in text.strip().splitlines() if line.strip())


def queries_file(queries: Sequence[str]) -> bytes:
    """Queries as a text file, one a line."""
    return "".join(f"{query}\n" for query in queries).encode()


def _line(text: str) -> str:
    return escape(_one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def answer_reply(answer: Answer) -> Reply:
    """An answer with its sources."""
    parts = [answer_text(answer), sources_text(answer, with_passages=False)]
    return answer.reply("\n\n".join(filter(None, parts)))


def answer_messages(answer: Answer, *, may_refine: bool) -> list[Outgoing]:
    """An answer with its sources; under a weak one a button, if refining may help."""
    parts, offered = [answer_text(answer), sources_text(answer)], may_refine and is_weak(answer)
    if offered:
        # The button finds the question here, however much later it is pressed.
        parts.append(quoted(answer.question))
    buttons = ((Button(say("refine_button"), REFINE),),) if offered else ()
    return [Outgoing("\n\n".join(filter(None, parts)), buttons)]


def quotes_reply(found: Quotes) -> Reply:
    """The quotes, then the summary."""
    return found.reply("\n\n".join(quote_texts(found)))


def quotes_messages(found: Quotes) -> list[Outgoing]:
    """A message for each quote, then the summary."""
    return [*map(Outgoing, quote_texts(found))]


def places_reply(found: Places) -> Reply:
    """The places if there are any, else the searches."""
    return found.reply(places_text(found) or searches_text(found))


def places_messages(found: Places) -> list[Outgoing]:
    """The places if there are any, then the searches with a button for a text file of them."""
    places, searches = places_text(found), searches_text(found)
    return [
        *([Outgoing(places)] if places else []),
        Outgoing(searches, ((Button(say("as_file_button"), AS_FILE),),)),
    ]
