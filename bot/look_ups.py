"""/ask, /quotes, /find and proposed tool calls: their arguments, work and messages in Markdown.

Titles, passages, snippets and queries come from documents, models and the web: they are escaped.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Literal, NamedTuple

from agent.documents.answer import Answer, answer_question
from agent.documents.passages import LONGEST_QUESTION, LookupResult
from agent.documents.quotes import Quote, Quotes, find_quotes
from agent.documents.refine import refinement_wanted
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import ERROR_PREFIX, Toolbox
from agent.i18n import current_language, translate
from agent.language import truncate_at_boundary
from agent.markdown import escape, format_link
from agent.mcp import McpServers, Proposal
from agent.places.find import Place, Places, find_places
from agent.places.queries import MAX_PLACE_CHARS, QueryGenerationFailed, category_named, name_in
from agent.text import pattern
from agent.turn import AnswerFunction, Reply, guard_input
from bot.resources import Resources

SHOWN_PLACES: Final = 10
SNIPPET_CHARS: Final = 200
RESULT_CHARS: Final = 1_500
"""Characters of a tool's result that the user is shown."""
REFINE_FLAG: Final = pattern(r"(?i)(?:\A|\s)(?:--|[—–])refine(?:\s|\Z)")
"""`--refine`; telephones make a dash of two hyphens."""
BEFORE_PLACE: Final = pattern(r"(?:[Ii]n|[Nn]ear|around|at|à|en|bei|um|cerca de|a)\s+")
LONGEST_CATEGORY: Final = 6
"""Words in the longest name of a category."""

Name = Literal["ask", "quotes", "find"]


class LookUp(NamedTuple):
    """A look-up: its question as the conversation stores it, and its work."""

    question: str
    work: AnswerFunction


def read_look_up(name: Name, words: str, resources: Resources) -> LookUp | str:
    """Return the look-up that a command asks for, or a sentence about what its words lack."""
    if name == "find":
        return _find_look_up(*read_find(words), resources)
    question, refine = read_question(words) if name == "ask" else (words.strip(), False)
    if len(question) > LONGEST_QUESTION:
        return translate("question_too_long")
    if not any(map(str.isalnum, question)):
        return translate("ask_usage" if name == "ask" else "quotes_usage")
    if name == "ask":
        work = partial(ask, question, resources=resources, refine=refine or None)
        return LookUp(question, work)
    return LookUp(f"/quotes {question}", partial(quote, question, resources=resources))


def _find_look_up(category: str | None, place: str, resources: Resources) -> LookUp | str:
    if category is None:
        return translate("find_usage")
    if not any(map(str.isalnum, place)):
        return translate("find_where", what=label(category).lower())
    if len(place) > MAX_PLACE_CHARS:
        return translate("place_too_long")
    work = partial(find, category, place, resources=resources)
    return LookUp(f"/find {category} {place}", work)


def read_question(text: str) -> tuple[str, bool]:
    """Return the question of /ask, and whether it is to be refined."""
    flag = REFINE_FLAG.search(text)
    if flag is None:
        return text.strip(), False
    return f"{text[: flag.start()]} {text[flag.end() :]}".strip(), True


def read_find(text: str) -> tuple[str | None, str]:
    """Return the category and the place of /find: "WINE_BAR Lyon", "wine bars in Lyon".

    The category is None if there is none of that name.
    """
    parts = text.replace(",", " , ").split()
    for count in range(min(len(parts), LONGEST_CATEGORY), 0, -1):
        with suppress(ValueError):
            category = category_named(" ".join(parts[:count]))
            place = " ".join(parts[count:]).replace(" ,", ",").strip(" ,")
            before = BEFORE_PLACE.match(place)
            return category, place[before.end() if before else 0 :]
    return None, text.strip()


async def run_proposal(proposal: Proposal, run: Run, servers: McpServers) -> Reply:
    """Make a tool call that the user consented to, and return its result for the user."""
    name, tool = escape(proposal.tool), servers.confirmed(proposal.tool)
    if tool is None:
        return Reply(text=translate("tool_down", tool=name), outcome="failed")
    result = await Toolbox([tool]).call(ToolCall("pressed", proposal.tool, proposal.arguments), run)
    text = truncate_at_boundary(result.text.removeprefix(ERROR_PREFIX), RESULT_CHARS)
    if result.error_type is None:
        return Reply(text=f"{translate('tool_done', tool=name)}\n\n{escape(text)}")
    return Reply(text=f"{translate('tool_failed', tool=name)}\n\n{escape(text)}", outcome="failed")


async def ask(question: str, run: Run, resources: Resources, *, refine: bool | None) -> Reply:
    """Answer a question from the documents, each statement cited; see `refinement_wanted`."""
    text = guard_input(question, run.span)
    is_refined = refinement_wanted(resources.refinement, refine)
    answer = await answer_question(text, documents=resources.documents, run=run, refine=is_refined)
    return await _reply(answer, [answer_text(answer)], resources)


async def quote(query: str, run: Run, resources: Resources) -> Reply:
    """Find passages that answer a query, word for word."""
    text = guard_input(query, run.span)
    documents, cache = resources.documents, resources.cache
    found = await find_quotes(text, documents=documents, run=run, cache=cache)
    return await _reply(found, quote_texts(found), resources)


async def _reply(found: LookupResult, messages: Sequence[str], resources: Resources) -> Reply:
    if not found.chunks and not await resources.documents.count():
        return Reply(text=translate("no_documents"))
    return found.reply(*messages)


async def find(category: str, place: str, run: Run, resources: Resources) -> Reply:
    """Find places of a category, or ten searches for them."""
    place = guard_input(place, run.span)
    try:
        found = await find_places(category, place, run=run, search=resources.search)
    except QueryGenerationFailed as error:
        return Reply(
            text=translate("no_queries"),
            outcome="failed",
            retries=error.retry_count,
            error_types=error.error_types,
        )
    return found.reply(*place_texts(found))


def answer_text(answer: Answer) -> str:
    """Return an answer, its numbered sources, and first the refined question if there is one.

    Passages are folded. An answer without a model consists of them and does not repeat them.
    """
    parts = [escape(answer.footnoted)]
    if answer.refinement.used:
        parts.insert(0, translate("also_searched", question=_line(answer.refinement.refined)))
    if answer.citations:
        sources = [f"**{translate('sources')}**"]
        for cited in answer.citations:
            sources.append(cited.source_line)
            if answer.by_model:
                sources.append(quoted(cited.passage, "**>"))
        parts.append("\n".join(sources))
    return "\n\n".join(filter(None, parts))


def quote_texts(found: Quotes) -> list[str]:
    """Return each quote with its source, then the summary; the model's words are marked as such."""
    shown = [_quote(number, quote) for number, quote in enumerate(found.quotes, start=1)]
    summary = _in_model_words(found.summary) if found.by_model else escape(found.summary)
    return [*shown, summary] if summary else shown


def _quote(number: int, found: Quote) -> str:
    source = f"**{number}. {_line(found.source_title)}** · {_line(found.source_location)}"
    parts = [source, quoted(found.content), _in_model_words(found.relevance)]
    return "\n".join(filter(None, parts))


def _in_model_words(text: str) -> str:
    """Return a text marked as the model's own words; empty if it is."""
    return f"_{translate('model_words', text=_line(text))}_" if text.strip() else ""


def place_texts(found: Places) -> list[str]:
    """Return the places as links in their sources' words, if there are any, then the searches."""
    head = f"**{label(found.queries.category)} · {_line(found.queries.place)}**"
    lead = found.note or translate("searches")
    searches = "\n".join(
        f"{number}. {_line(search.query)} · {format_link(search.url)}"
        for number, search in enumerate(found.links, start=1)
    )
    if not found.results:
        return ["\n\n".join([head, lead, searches])]
    shown = [_place(number, place, found) for number, place in enumerate(found.results, start=1)]
    return ["\n\n".join([head, *shown[:SHOWN_PLACES]]), f"{lead}\n\n{searches}"]


def _place(number: int, place: Place, found: Places) -> str:
    lines = [
        f"{number}. {_line(place.title)} · {format_link(place.url)}",
        escape(truncate_at_boundary(" ".join(place.snippet.split()), SNIPPET_CHARS)),
        translate("found_by", count=len(place.queries), all=len(found.queries.queries)),
    ]
    return "\n".join(filter(None, lines))


def label(category: str) -> str:
    """Return a category's name in the user's language, capitalised."""
    named = name_in(current_language(), category)
    return named[0].upper() + named[1:]


def quoted(text: str, mark: str = ">") -> str:
    """Return a text as a quote; `**>` marks a folded one."""
    return "\n".join(f"{mark} {escape(line)}" for line in text.strip().splitlines() if line.strip())


def _line(text: str) -> str:
    return escape(" ".join(text.split()))
