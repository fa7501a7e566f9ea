"""/ask, /quotes and /find, in Telegram and in the terminal: what they read and show.

Titles, passages, snippets and queries come from documents, models and the web: they are escaped.
The buttons need nothing stored: what they are about stands in the message itself.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import eq
from typing import Any, Final

from telegram import Message, MessageEntity, Update
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.documents.answer import Answer, Citation, answer_question
from agent.documents.passages import LONGEST_QUESTION
from agent.documents.quotes import Quote, Quotes, find_quotes
from agent.documents.refine import refinement_wanted
from agent.engine.errors import or_else
from agent.engine.limits import Spent
from agent.engine.run import Run
from agent.i18n import say, spoken
from agent.markdown import escape, link, visible
from agent.places.categories import categories, category_named, languages
from agent.places.find import FoundPlace, Places, find_places
from agent.places.queries import LONGEST_PLACE, QueryGenerationFailed
from agent.text import pattern, truncate_at_boundary
from agent.turn import Reply, Work, guard_input, worked_on
from bot.telegram.buttons import acknowledge, is_first_press, pressed_message
from bot.telegram.conversation import (
    TYPED,
    AnyHandler,
    Context,
    Conversation,
    behind_command,
    destination,
    is_addressed,
    message_of,
    press_of,
    question_of,
)
from bot.telegram.sender import Button, Destination, Outgoing
from bot.turn import Question, Show

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


def quote_texts(found: Quotes) -> list[str]:
    """Each quote with its source, then the summary; the model's words are marked as such."""
    shown = [_quote(number, quote) for number, quote in enumerate(found.quotes, start=1)]
    summary = in_model_words(found.summary) if found.by_model else escape(found.summary)
    return [*shown, summary] if summary else shown


def _quote(number: int, quote: Quote) -> str:
    source = f"**{number}. {_line(quote.source_title)}** · {_line(quote.source_location)}"
    parts = [source, quoted(quote.content), in_model_words(quote.relevance)]
    return "\n".join(filter(None, parts))


def in_model_words(text: str) -> str:
    """Mark a text as the model's own words; empty if there are none."""
    return f"_{say('model_words', text=_line(text))}_" if text.strip() else ""


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
    parts = [answer_text(answer), sources_text(answer)]
    offered = may_refine and not answer.enough_information and answer.outcome != "refused"
    if offered:
        # The button finds the question here, however much later it is pressed.
        parts.append(quoted(answer.question))
    buttons = ((Button(say("refine_button"), REFINE),),) if offered else ()
    return [Outgoing("\n\n".join(filter(None, parts)), buttons)]


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


FILE_NAME: Final = "queries.txt"
DEFAULT_CATEGORY: Final = "WINE_SHOP"


@dataclass(frozen=True, slots=True)
class LookUps:
    """/ask, /quotes, /find, their buttons, and locations.

    Without models the best passages are shown as they are; without a search places are links.
    """

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers; the last takes any button."""
        new = filters.UpdateType.MESSAGE
        return [
            CommandHandler("ask", self.ask, filters=TYPED),
            CommandHandler("quotes", self.quotes, filters=TYPED),
            CommandHandler("find", self.find, filters=TYPED),
            MessageHandler(new & filters.LOCATION, self.location),
            CallbackQueryHandler(self.refine, pattern=f"^{REFINE}$"),
            CallbackQueryHandler(self.as_file, pattern=f"^{AS_FILE}$"),
            CallbackQueryHandler(self.unknown_button),
        ]

    async def ask(self, update: Update, context: Context) -> None:
        """/ask QUESTION: an answer from the documents, each statement cited."""
        words = behind_command(message_of(update).text or "")
        question, refine = read_question(words)
        if not await self._objected(update, question, say("ask_usage")):
            asked = question_of(update, context.bot, question, kind="ask")
            await self._ask(asked, refine=refine)

    async def quotes(self, update: Update, context: Context) -> None:
        """/quotes QUERY: passages word for word, one by one, then a summary."""
        query = behind_command(message_of(update).text or "")
        if await self._objected(update, query, say("quotes_usage")):
            return

        def reply(found: Quotes) -> Reply:
            return found.reply("\n\n".join(quote_texts(found)))

        def show(found: Quotes) -> list[Outgoing]:
            return [*map(Outgoing, quote_texts(found))]

        asked = question_of(update, context.bot, f"/quotes {query}", kind="quotes")
        look_up = partial(find_quotes, cache=self.talk.resources.cache)
        await self._turn(asked, self._in_documents(query, look_up, reply), show)

    async def find(self, update: Update, context: Context) -> None:
        """/find CATEGORY PLACE: places, or ten searches for them."""
        said = (message_of(update).text or "").strip()
        category, place = read_find(behind_command(said))
        if category is None:
            if not await self.talk.turns.helped(question_of(update, context.bot, said)):
                await self.talk.say(update, say("find_usage"))
        elif not any(map(str.isalnum, place)):
            where = say("find_where", what=label(category).lower())
            await self.talk.say(update, where)
            # A location that comes next is where to look for it.
            asked = question_of(update, context.bot, said)
            await self.talk.turns.remember(asked, Reply(text=where))
        elif len(place) > LONGEST_PLACE:
            await self.talk.say(update, say("place_too_long"))
        else:
            named = f"/find {category} {place}"
            asked = question_of(update, context.bot, named, kind="find")
            await self._find(asked, category, place)

    async def location(self, update: Update, context: Context) -> None:
        """A location, or a venue: what was looked for last, near it; else wine shops."""
        message = message_of(update)
        if not is_addressed(message, context.bot) or message.location is None:
            return
        look = partial(self._category_just_asked, destination(update))
        category = await self.talk.step("category", look)
        place = coordinates(message.location.latitude, message.location.longitude)
        venue = message.venue
        if venue is not None and (name := place_of(venue.title, venue.address)):
            place = name
        named = f"/find {category} {place}"
        # Where somebody is stays out of the conversation that is kept; a house's name does not.
        is_named = venue is not None
        asked = question_of(update, context.bot, named, kind="find", remembered=is_named)
        await self._find(asked, category, place)

    async def refine(self, update: Update, context: Context) -> None:
        """The button under a weak answer: the same question, refined."""
        message = await self._pressed(update)
        if message is None:
            return
        asked_before = list(message.parse_entities([MessageEntity.BLOCKQUOTE]).values())
        if asked_before:
            asked = question_of(update, context.bot, asked_before[-1], kind="ask")
            await self._ask(asked, refine=True)
        else:
            await self.talk.say(update, say("button_too_old"))

    async def as_file(self, update: Update, context: Context) -> None:
        """The button under ten searches: the same as a text file."""
        message = await self._pressed(update)
        if message is None:
            return
        queries = queries_of(message.text or "")
        if not queries:
            await self.talk.say(update, say("button_too_old"))
        else:
            content = queries_file(queries)
            await self.talk.sender.send_file(destination(update), FILE_NAME, content)

    async def unknown_button(self, update: Update, context: Context) -> None:
        """A button of an earlier version, or of nobody."""
        if update.callback_query:
            await acknowledge(update.callback_query, say("button_too_old"))

    async def _objected(self, update: Update, question: str, usage: str) -> bool:
        """Whether a question is none, which the person is told then."""
        objection = "" if any(map(str.isalnum, question)) else usage
        if len(question) > LONGEST_QUESTION:
            objection = say("question_too_long")
        if objection:
            await self.talk.say(update, objection)
        return bool(objection)

    async def _ask(self, question: Question, *, refine: bool) -> None:
        server = self.talk.resources.refinement
        wanted = refinement_wanted(server, True if refine else None)
        look_up = partial(answer_question, refine=wanted)
        may_refine = not refine and server is not False and bool(self.talk.turns.run.models)
        show = partial(answer_messages, may_refine=may_refine)
        await self._turn(question, self._in_documents(question.text, look_up, answer_reply), show)

    def _in_documents(
        self, words: str, look_up: Callable[..., Awaitable[Any]], reply: Callable[[Any], Reply]
    ) -> Work:
        """The work of looking something up in the documents, if there are any."""
        documents = self.talk.resources.documents

        async def work(run: Run) -> Reply:
            found = await look_up(guard_input(words, run.span), documents=documents, run=run)
            if not found.chunks and not await documents.count():
                return Reply(text=say("no_documents"))
            return reply(found)

        return work

    async def _find(self, question: Question, category: str, place: str) -> None:
        async def look_up(run: Run) -> Reply:
            named = guard_input(place, run.span)
            find = partial(find_places, category, named, search=self.talk.resources.search)
            try:
                return places_reply(await find(run=run))
            except QueryGenerationFailed as error:
                retries, errors = error.retry_count, error.error_types
            if not run.ledger.exhausted(run.limits):
                return Reply(
                    text=say("no_queries"), outcome="failed", retries=retries, error_types=errors
                )
            by_rules = places_reply(await find(run=replace(run, models=())))
            return replace(by_rules, outcome="fallback", retries=retries, error_types=errors)

        await self._turn(question, look_up, places_messages)

    async def _turn(self, question: Question, look_up: Work, show: Show) -> None:
        """One turn: a look-up, which is one step of it."""

        async def work(run: Run) -> Reply:
            async def looked_up() -> tuple[Reply, Spent]:
                inner = replace(run.of_tool(run.span), stop=run.stop)
                return await worked_on(inner, look_up), run.ledger.spent

            reply, spent = await run.step("research", looked_up, run.span)
            run.ledger.restore(spent)
            return reply

        await self.talk.turns.turn(question, work, show)

    async def _category_just_asked(self, to: Destination) -> str:
        """What the newest message of a conversation looked for, if it was a /find."""
        messages, thread = self.talk.repositories.messages, to.thread_id or 0
        recent = partial(messages.recent, to.chat_id, 2, thread_id=thread)
        what = f"The history of chat {to.chat_id} could not be read; answering without"
        asked = [each.content for each in await or_else(recent, (), what) if each.role == "user"]
        if not asked or not asked[-1].startswith("/find"):
            return DEFAULT_CATEGORY
        return read_find(behind_command(asked[-1]))[0] or DEFAULT_CATEGORY

    async def _pressed(self, update: Update) -> Message | None:
        """The message whose button is pressed for the first time; None if nothing is to be done."""
        query, journal = press_of(update), self.talk.sender.journal
        if (message := await pressed_message(query, say("button_too_old"))) is None:
            return None
        await acknowledge(query)
        is_first = await is_first_press(journal, message, partial(eq, query.data))
        return message if is_first else None
