"""Run /ask, /quotes, /find and approved tool calls, and render their results in Markdown.

Text that comes from documents, models or the web is always escaped.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from agent.documents.answer import Answer, answer_question
from agent.documents.passages import MAX_QUESTION_CHARS, LookUpResult
from agent.documents.quotes import Quote, Quotes, find_quotes
from agent.documents.refine import should_refine
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import ERROR_PREFIX, Toolbox
from agent.i18n import current_language, translate
from agent.language import truncate_at_boundary
from agent.markdown import escape, format_link
from agent.mcp import McpServers, Proposal
from agent.places.find import Place, Places, find_places
from agent.places.queries import (
    MAX_PLACE_CHARS,
    QueryGenerationFailed,
    find_category,
    get_category_name,
    is_filler,
)
from agent.text import in_thread_if_long, pattern
from agent.turn import Lack, Reply, ReplyFunction, clean_and_flag
from bot.resources import Resources

MAX_PLACES: Final = 10
MAX_SNIPPET_CHARS: Final = 200
MAX_TOOL_RESULT_CHARS: Final = 1_500
MAX_CATEGORY_WORDS: Final = 6
"""No name of a category has more words."""
REFINE_FLAG: Final = pattern(r"(?i)(?:\A|\s)(?:--|[—–])refine(?:\s|\Z)")
"""The flag `--refine`. Phones turn `--` into a dash."""
PREPOSITION: Final = pattern(
    r"(?:[Ii]n|[Nn]ear|around|at|à|dans|près de|en|cerca de|em|no|na|perto de|bei|um|nahe|bij"
    r"|a|ad|vicino a)\s+"
)
"""A preposition before a place, in several languages."""

CommandName = Literal["ask", "quotes", "find"]


class LookUp(NamedTuple):
    """A look-up with valid arguments."""

    history_text: str
    """The text that is stored in the conversation as the user's message."""
    make_reply: ReplyFunction
    """Runs the look-up."""


def parse_look_up(
    name: CommandName, arguments: str, resources: Resources
) -> LookUp | str:
    """Return the look-up, or the text that tells the user what is wrong with the arguments."""
    match name:
        case "ask":
            return _parse_ask_look_up(arguments, resources)
        case "quotes":
            return _parse_quotes_look_up(arguments, resources)
        case "find":
            return _parse_find_look_up(arguments, resources)


def _parse_ask_look_up(arguments: str, resources: Resources) -> LookUp | str:
    """Return the look-up of `/ask QUESTION`, or the text that says what is wrong."""
    question, refine = parse_ask(arguments)
    if len(question) > MAX_QUESTION_CHARS:
        return translate("question_too_long")
    if not _has_letters_or_digits(question):
        return translate("ask_usage")

    async def make_reply(run: Run) -> Reply:
        return await run_ask(question, run, resources, refine=refine)

    # A question is understood in the history without its command. Other look-ups are not.
    return LookUp(question, make_reply)


def _parse_quotes_look_up(arguments: str, resources: Resources) -> LookUp | str:
    """Return the look-up of `/quotes QUERY`, or the text that says what is wrong."""
    query = arguments.strip()
    if len(query) > MAX_QUESTION_CHARS:
        return translate("question_too_long")
    if not _has_letters_or_digits(query):
        return translate("quotes_usage")

    async def make_reply(run: Run) -> Reply:
        return await run_quotes(query, run, resources)

    return LookUp(f"/quotes {query}", make_reply)


def _parse_find_look_up(arguments: str, resources: Resources) -> LookUp | str:
    """Return the look-up of `/find CATEGORY PLACE`, or the text that says what is wrong."""
    category, place = parse_find(arguments)
    if category is None:
        return translate("find_usage")
    if not _has_letters_or_digits(place):
        what = get_category_name(current_language(), category)
        name = get_category_label(category)
        return translate("find_where", name=name, what=what)
    if len(place) > MAX_PLACE_CHARS:
        return translate("place_too_long")

    async def make_reply(run: Run) -> Reply:
        return await run_find(category, place, run, resources)

    return LookUp(f"/find {category} {place}", make_reply)


def _has_letters_or_digits(text: str) -> bool:
    return any(character.isalnum() for character in text)


def parse_ask(arguments: str) -> tuple[str, bool | None]:
    """Return the question of /ask, and whether to refine it.

    The second value is True if the arguments contain the flag `--refine`. Otherwise it is None, and
    the setting decides.
    """
    flag = REFINE_FLAG.search(arguments)
    if flag is None:
        return arguments.strip(), None
    before = arguments[: flag.start()]
    behind = arguments[flag.end() :]
    return f"{before} {behind}".strip(), True


def parse_find(arguments: str) -> tuple[str | None, str]:
    """Return the category and the place in a text like "a good wine bar in Lyon".

    The category is the longest one with which the text begins, or None. Articles and words such as
    "good" before it are skipped.
    """
    # A comma may end the category. The commas of the place are joined to their words again below.
    words = arguments.replace(",", " , ").split()
    while words and is_filler(words[0]):
        del words[0]
    most_words = min(len(words), MAX_CATEGORY_WORDS)
    for count in range(most_words, 0, -1):
        try:
            category = find_category(" ".join(words[:count]))
        except ValueError:
            # These words are not a category. Fewer words may be one.
            continue
        rest = " ".join(words[count:])
        place = rest.replace(" ,", ",").strip(" ,")
        preposition = PREPOSITION.match(place)
        if preposition:
            place = place[preposition.end() :]
        return category, place
    return None, arguments.strip()


async def run_proposal(proposal: Proposal, run: Run, servers: McpServers) -> Reply:
    """Make a tool call that the user has approved, and return its result as a reply."""
    name = escape(proposal.tool_name)
    tool = servers.get_tool_without_confirmation(proposal.tool_name)
    if tool is None:
        return Reply(text=translate("tool_down", tool=name), outcome="failed")
    # By the id, a model knows which of its calls a result answers. No model reads this result.
    call = ToolCall(
        id="approved", name=proposal.tool_name, arguments=proposal.arguments
    )
    result = await Toolbox([tool]).call(call, run)
    result_text = result.text.removeprefix(ERROR_PREFIX)
    shown = escape(truncate_at_boundary(result_text, MAX_TOOL_RESULT_CHARS))
    if result.error_type is not None:
        heading = translate("tool_failed", tool=name)
        return Reply(text=f"{heading}\n\n{shown}", outcome="failed")
    heading = translate("tool_done", tool=name)
    return Reply(text=f"{heading}\n\n{shown}")


async def run_ask(
    question: str,
    run: Run,
    resources: Resources,
    *,
    refine: bool | None,
) -> Reply:
    """Answer a question from the documents. If `refine` is None, the setting decides about it."""
    question = clean_and_flag(question, run.span)
    refine = should_refine(resources.refinement, refine)
    answer = await answer_question(
        question, documents=resources.documents, run=run, refine=refine
    )
    chars = len(answer.footnoted)
    for citation in answer.citations:
        chars += len(citation.passage)
    rendered = await in_thread_if_long(chars, render_answer, answer)
    is_answered = answer.enough_information or answer.outcome == "refused"
    return await _make_reply(answer, [rendered], resources, is_answered=is_answered)


async def run_quotes(query: str, run: Run, resources: Resources) -> Reply:
    """Quote the passages of the documents that answer a query, word for word."""
    query = clean_and_flag(query, run.span)
    quotes = await find_quotes(
        query, documents=resources.documents, run=run, cache=resources.cache
    )
    messages = render_quotes(quotes)
    is_answered = bool(quotes.quotes) or quotes.outcome == "refused"
    return await _make_reply(quotes, messages, resources, is_answered=is_answered)


async def _make_reply(
    result: LookUpResult,
    messages: Sequence[str],
    resources: Resources,
    *,
    is_answered: bool,
) -> Reply:
    """Return a reply with the messages. If there are no documents at all, say that instead."""
    if not result.chunks and not await resources.documents.count():
        return Reply(text=translate("no_documents"))
    reply = result.to_reply(*messages)
    if is_answered:
        return reply
    return replace(reply, lack=Lack.DOCUMENTS)


async def run_find(
    category: str,
    place: str,
    run: Run,
    resources: Resources,
) -> Reply:
    """Find places of a category, or return links to web searches for them."""
    place = clean_and_flag(place, run.span)
    try:
        places = await find_places(category, place, run=run, search=resources.search)
    except QueryGenerationFailed as error:
        return Reply(
            text=translate("no_queries"),
            outcome="failed",
            retries=error.retry_count,
            error_types=error.error_types,
        )
    return places.to_reply(*render_places(places))


def render_answer(answer: Answer) -> str:
    """Return an answer with the refined question, if one was used, and with its numbered sources.

    Below each source, its passage can be unfolded. An answer without a model already consists of
    the passages, so it has none below its sources.
    """
    parts = []
    if answer.refinement.is_used:
        refined = _escape_line(answer.refinement.refined)
        parts.append(translate("also_searched", question=refined))
    parts.append(escape(answer.footnoted))
    if answer.citations:
        sources = [f"**{translate('sources')}**"]
        for citation in answer.citations:
            sources.append(citation.source_line)
            if answer.by_model:
                sources.append(_to_blockquote(citation.passage, "**>"))
        parts.append("\n".join(sources))
    return "\n\n".join(filter(None, parts))


def render_quotes(quotes: Quotes) -> list[str]:
    """Return a message for each quote with its source, and one with the summary.

    A model sums up the quotes after them. Without a model, the summary announces the quotes.
    """
    messages: list[str] = []
    for number, quote in enumerate(quotes.quotes, start=1):
        messages.append(_render_quote(number, quote))
    if quotes.by_model:
        messages.append(_mark_as_model_words(quotes.summary))
    else:
        messages.insert(0, escape(quotes.summary))
    return list(filter(None, messages))


def _render_quote(number: int, quote: Quote) -> str:
    """Return a quote in Markdown, with its source and why the model found it relevant."""
    title = _escape_line(quote.source_title)
    location = _escape_line(quote.source_location)
    parts = [
        f"**{number}. {title}** · {location}",
        _to_blockquote(quote.content),
        _mark_as_model_words(quote.relevance),
    ]
    return "\n".join(filter(None, parts))


def _mark_as_model_words(text: str) -> str:
    """Return a text, marked as the model's own words, or "" if the text is blank."""
    if not text.strip():
        return ""
    marked = translate("model_words", text=_escape_line(text))
    return f"_{marked}_"


def render_places(places: Places) -> list[str]:
    """Return a message with the places that were found, and one with links to web searches.

    If no places were found, return only the second one.
    """
    category = get_category_label(places.queries.category)
    place_name = _escape_line(places.queries.place)
    heading = f"**{category} · {place_name}**"
    introduction = places.note or translate("searches")
    links: list[str] = []
    for number, link in enumerate(places.links, start=1):
        links.append(f"{number}. {format_link(link.url)}")
    listed_links = "\n".join(links)
    searches_text = f"{introduction}\n\n{listed_links}"
    if not places.results:
        return [f"{heading}\n\n{searches_text}"]
    query_count = len(places.queries.texts)
    paragraphs = [heading]
    for number, result in enumerate(places.results[:MAX_PLACES], start=1):
        paragraphs.append(_render_place(number, result, query_count=query_count))
    return ["\n\n".join(paragraphs), searches_text]


def _render_place(number: int, place: Place, *, query_count: int) -> str:
    """Return a place in Markdown, with its page and how many of the queries have found it."""
    title = _escape_line(place.title)
    link = format_link(place.url)
    one_line = " ".join(place.snippet.split())
    snippet = truncate_at_boundary(one_line, MAX_SNIPPET_CHARS)
    lines = [
        f"{number}. {title} · {link}",
        escape(snippet),
        translate("found_by", found=len(place.queries), all=query_count),
    ]
    return "\n".join(filter(None, lines))


def get_category_label(category: str) -> str:
    """Return the name of a category in the user's language, with a capital letter."""
    name = get_category_name(current_language(), category)
    return name[0].upper() + name[1:]


def _to_blockquote(text: str, marker: str = ">") -> str:
    """Return a text, escaped, as a quote. With the marker `**>`, the quote is folded."""
    quoted = []
    for line in text.splitlines():
        if line.strip():
            quoted.append(f"{marker} {escape(line)}")
    return "\n".join(quoted)


def _escape_line(text: str) -> str:
    """Return a text, escaped and on one line."""
    return escape(" ".join(text.split()))
