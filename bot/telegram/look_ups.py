"""/ask, /quotes and /find in Telegram: their arguments, messages and buttons.

Titles, passages, snippets and queries come from documents, models and the web: they are escaped.
Nothing is stored for the buttons: the question or the queries are read from the message itself.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from telegram import Location, Message, MessageEntity, Update, Venue
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.documents.answer import Answer, answer_question
from agent.documents.passages import LONGEST_QUESTION, LookupResult
from agent.documents.quotes import Quote, Quotes, find_quotes
from agent.documents.refine import refinement_wanted
from agent.engine.run import Run
from agent.i18n import current_language, translate
from agent.markdown import escape, link, visible
from agent.places.categories import category_named, name_in
from agent.places.find import FoundPlace, Places, find_places
from agent.places.queries import LONGEST_PLACE, QueryGenerationFailed
from agent.text import pattern, truncate_at_boundary
from agent.turn import Reply, guard_input
from bot.outgoing import Button, ButtonRows, Destination, Outgoing
from bot.question import Question
from bot.telegram.buttons import acknowledge, pressed_message, remove_buttons
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import (
    TYPED,
    behind_command,
    destination,
    is_addressed,
    message_of,
    press_of,
)

REFINE: Final = "refine"
"""The data of the button under a weak answer."""
AS_FILE: Final = "queries"
"""The data of the button under ten searches."""
FILE_NAME: Final = "queries.txt"
DEFAULT_CATEGORY: Final = "WINE_SHOP"

SHOWN_PLACES: Final = 10
SNIPPET_CHARS: Final = 200
FLAG: Final = pattern(r"(?i)(?:\A|\s)(?:--|[—–])refine(?:\s|\Z)")
"""`--refine`; telephones make a dash of two hyphens."""

BEFORE_PLACE: Final = pattern(r"(?:[Ii]n|[Nn]ear|around|at|à|en|bei|um|cerca de|a)\s+")
LONGEST_NAME: Final = 6
"""Words in the longest name of a category."""


def read_question(text: str) -> tuple[str, bool]:
    """Return the question of /ask, and whether it is to be refined."""
    flag = FLAG.search(text)
    if flag is None:
        return text.strip(), False
    return f"{text[: flag.start()]} {text[flag.end() :]}".strip(), True


def read_find(text: str) -> tuple[str | None, str]:
    """Return the category and the place of /find: "WINE_BAR Lyon", "wine bars in Lyon".

    The category is None if there is none of that name.
    """
    parts = text.replace(",", " , ").split()
    for count in range(min(len(parts), LONGEST_NAME), 0, -1):
        with suppress(ValueError):
            category = category_named(" ".join(parts[:count]))
            place = " ".join(parts[count:]).replace(" ,", ",").strip(" ,")
            before = BEFORE_PLACE.match(place)
            return category, place[before.end() if before else 0 :]
    return None, text.strip()


def place_of(location: Location, venue: Venue | None) -> str:
    """Return a location as a place: the venue's name, else its coordinates to ten metres."""
    if venue is not None:
        named = (_one_line(visible(part)) for part in (venue.title, venue.address))
        if place := ", ".join(filter(None, named))[:LONGEST_PLACE].strip(" ,"):
            return place
    return f"{location.latitude:.4f}, {location.longitude:.4f}"


def label(category: str) -> str:
    """Return a category's name in the user's language, capitalised."""
    named = name_in(current_language(), category)
    return named[0].upper() + named[1:]


def answer_text(answer: Answer) -> str:
    """Return an answer with numbered footnotes, below the refined question if there is one."""
    if answer.refined_question is None:
        return escape(answer.footnoted)
    also = translate("also_searched", question=_line(answer.refined_question))
    return f"{also}\n\n{escape(answer.footnoted)}"


def sources_text(answer: Answer, *, with_passages: bool = True) -> str:
    """Return the footnotes: title, section and the passage, folded; empty without any.

    An answer without a model consists of the passages and does not repeat them.
    """
    lines = []
    for cited in answer.citations:
        lines.append(f"[{cited.number}] {_line(cited.title)} · {_line(cited.location)}")
        if with_passages and answer.by_model:
            lines.append(quoted(cited.passage, "**>"))
    return "\n".join([f"**{translate('sources')}**", *lines]) if lines else ""


def quote_texts(found: Quotes) -> list[str]:
    """Return each quote with its source, then the summary; the model's words are marked as such."""
    shown = [_quote(number, quote) for number, quote in enumerate(found.quotes, start=1)]
    summary = in_model_words(found.summary) if found.by_model else escape(found.summary)
    return [*shown, summary] if summary else shown


def _quote(number: int, quote: Quote) -> str:
    source = f"**{number}. {_line(quote.source_title)}** · {_line(quote.source_location)}"
    parts = [source, quoted(quote.content), in_model_words(quote.relevance)]
    return "\n".join(filter(None, parts))


def in_model_words(text: str) -> str:
    """Return a text marked as the model's own words; empty if it is."""
    return f"_{translate('model_words', text=_line(text))}_" if text.strip() else ""


def places_text(found: Places) -> str:
    """Return the places as links, in their sources' words; empty if there are none."""
    shown = [_place(number, place, found) for number, place in enumerate(found.results, start=1)]
    return "\n\n".join([_heading(found), *shown[:SHOWN_PLACES]]) if shown else ""


def _place(number: int, place: FoundPlace, found: Places) -> str:
    hits = translate("found_by", count=len(place.queries), all=len(found.queries.queries))
    lines = [
        " · ".join(filter(None, [f"{number}. {_line(place.title)}", link(place.url)])),
        escape(truncate_at_boundary(_one_line(place.snippet), SNIPPET_CHARS)),
        " · ".join(filter(None, [place.distance, hits])),
    ]
    return "\n".join(filter(None, lines))


def searches_text(found: Places) -> str:
    """Return the ten queries as links, with the reason if there is nothing else."""
    lead = found.note or translate("searches")
    if found.failed_searches and not found.note:
        lead = translate("searches_failed", count=found.failed_searches)
    listed = [
        f"{number}. {_line(search.query)} · {link(search.url)}"
        for number, search in enumerate(found.links, start=1)
    ]
    head = [lead] if found.results else [_heading(found), lead]
    return "\n\n".join([*head, "\n".join(listed)])


def queries_of(searches: str) -> list[str]:
    """Return the queries in a message that `searches_text` made."""
    listed = (line.rpartition(" · ")[0].partition(". ") for line in searches.splitlines())
    return [query for number, _, query in listed if number.isdecimal()]


def _heading(found: Places) -> str:
    return f"**{label(found.queries.category)} · {_line(found.queries.place)}**"


def quoted(text: str, mark: str = ">") -> str:
    """Return a text as a quote; `**>` marks a folded one."""
    return "\n".join(f"{mark} {escape(line)}" for line in text.strip().splitlines() if line.strip())


def _line(text: str) -> str:
    return escape(_one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def stored_text(answer: Answer) -> str:
    """Return an answer with its sources as the conversation remembers it."""
    parts = [answer_text(answer), sources_text(answer, with_passages=False)]
    return "\n\n".join(filter(None, parts))


def answer_messages(answer: Answer, *, may_refine: bool) -> list[Outgoing]:
    """Return an answer with its sources; under a weak one a button, if refining may help."""
    parts = [answer_text(answer), sources_text(answer)]
    buttons: ButtonRows = ()
    if may_refine and not answer.enough_information and answer.outcome != "refused":
        # The button finds the question here, however much later it is pressed.
        parts.append(quoted(answer.question))
        buttons = ((Button(translate("refine_button"), REFINE),),)
    return [Outgoing("\n\n".join(filter(None, parts)), buttons)]


def places_reply(found: Places) -> Reply:
    """Return the places, or else the searches, as the reply that is remembered."""
    return found.reply(places_text(found) or searches_text(found))


def places_messages(found: Places) -> list[Outgoing]:
    """Return the places if there are any, then the searches with a button for a text file."""
    places, searches = places_text(found), searches_text(found)
    return [
        *([Outgoing(places)] if places else []),
        Outgoing(searches, ((Button(translate("as_file_button"), AS_FILE),),)),
    ]


@dataclass(frozen=True, slots=True)
class LookUps:
    """/ask, /quotes, /find, their buttons, and locations.

    Without models the best passages are shown as they are; without a search places are links.
    """

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers; the last takes any button."""
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
        """Answer /ask QUESTION from the documents, each statement cited."""
        question, refine = read_question(behind_command(message_of(update).text or ""))
        if problem := problem_of(question, translate("ask_usage")):
            await self.talk.say(update, problem)
        else:
            await self._ask(self.talk.build_question(update, question, kind="ask"), refine=refine)

    async def quotes(self, update: Update, context: Context) -> None:
        """Answer /quotes QUERY with passages word for word, one by one, then a summary."""
        query = behind_command(message_of(update).text or "")
        if problem := problem_of(query, translate("quotes_usage")):
            await self.talk.say(update, problem)
            return
        documents, cache = self.talk.resources.documents, self.talk.resources.cache

        async def work(run: Run) -> Reply:
            text = guard_input(query, run.span)
            found = await find_quotes(text, documents=documents, run=run, cache=cache)
            return await self._reply_from(found, "\n\n".join(quote_texts(found)))

        def show(found: Quotes) -> list[Outgoing]:
            return [*map(Outgoing, quote_texts(found))]

        question = self.talk.build_question(update, f"/quotes {query}", kind="quotes")
        await self.talk.turns.run_turn(question, work, show)

    async def find(self, update: Update, context: Context) -> None:
        """Answer /find CATEGORY PLACE with places, or ten searches for them."""
        text, talk = (message_of(update).text or "").strip(), self.talk
        category, place = read_find(behind_command(text))
        if category is None:
            if not await talk.turns.offer_help(talk.build_question(update, text)):
                await talk.say(update, translate("find_usage"))
        elif not any(map(str.isalnum, place)):
            await self._ask_where(talk.build_question(update, text), category)
        elif len(place) > LONGEST_PLACE:
            await talk.say(update, translate("place_too_long"))
        else:
            question = talk.build_question(update, f"/find {category} {place}", kind="find")
            await self._find(question, category, place)

    async def location(self, update: Update, context: Context) -> None:
        """Look near a location, or a venue, for the category of the last /find, or wine shops."""
        message = message_of(update)
        if not is_addressed(message) or message.location is None:
            return
        category = await self._last_category(destination(update))
        place = place_of(message.location, message.venue)
        # Where a user is stays out of the history; the name of a venue does not.
        question = self.talk.build_question(
            update,
            f"/find {category} {place}",
            kind="find",
            in_history=message.venue is not None,
        )
        await self._find(question, category, place)

    async def refine(self, update: Update, context: Context) -> None:
        """Ask the question of a weak answer again, refined."""
        if (message := await self._pressed(update)) is None:
            return
        if questions := [*message.parse_entities([MessageEntity.BLOCKQUOTE]).values()]:
            await self._ask(
                self.talk.build_question(update, questions[-1], kind="ask"), refine=True
            )
        else:
            await self.talk.say(update, translate("button_too_old"))

    async def as_file(self, update: Update, context: Context) -> None:
        """Send the queries of a message as a text file, one a line."""
        if (message := await self._pressed(update)) is None:
            return
        if queries := queries_of(message.text or ""):
            content = "".join(f"{query}\n" for query in queries).encode()
            await self.talk.sender.send_file(destination(update), FILE_NAME, content)
        else:
            await self.talk.say(update, translate("button_too_old"))

    async def unknown_button(self, update: Update, context: Context) -> None:
        """Acknowledge a button of an earlier version."""
        await acknowledge(press_of(update), translate("button_too_old"))

    async def _ask(self, question: Question, *, refine: bool) -> None:
        server, documents = self.talk.resources.refinement, self.talk.resources.documents
        is_refined = refinement_wanted(server, True if refine else None)
        may_refine = not refine and server is not False and bool(self.talk.turns.run.models)

        async def work(run: Run) -> Reply:
            text = guard_input(question.text, run.span)
            answer = await answer_question(text, documents=documents, run=run, refine=is_refined)
            return await self._reply_from(answer, stored_text(answer))

        def show(answer: Answer) -> list[Outgoing]:
            return answer_messages(answer, may_refine=may_refine)

        await self.talk.turns.run_turn(question, work, show)

    async def _reply_from(self, found: LookupResult, text: str) -> Reply:
        if not found.chunks and not await self.talk.resources.documents.count():
            return Reply(text=translate("no_documents"))
        return found.reply(text)

    async def _find(self, question: Question, category: str, place: str) -> None:
        """Find places, by the rules' queries where the budget forbade those of the model."""
        search = self.talk.resources.search

        async def work(run: Run) -> Reply:
            named = guard_input(place, run.span)
            try:
                return places_reply(await find_places(category, named, run=run, search=search))
            except QueryGenerationFailed as error:
                failed = error
            retries, errors = failed.retry_count, failed.error_types
            if not run.ledger.exhausted(run.limits):
                text = translate("no_queries")
                return Reply(text=text, outcome="failed", retries=retries, error_types=errors)
            without_models = replace(run, models=())
            found = await find_places(category, named, run=without_models, search=search)
            reply = places_reply(found)
            return replace(reply, outcome="fallback", retries=retries, error_types=errors)

        await self.talk.turns.run_turn(question, work, places_messages)

    async def _ask_where(self, question: Question, category: str) -> None:
        """Ask for the place of a /find; it is remembered, so a location that comes next is it."""

        async def work(run: Run) -> Reply:
            return Reply(text=translate("find_where", what=label(category).lower()))

        await self.talk.turns.run_turn(question, work)

    async def _last_category(self, to: Destination) -> str:
        """Return the category of a conversation's newest message, if it was a /find."""
        messages, thread = self.talk.repositories.messages, to.thread_id or 0
        stored = await messages.recent(to.chat_id, 2, thread_id=thread)
        asked = [message.content for message in stored if message.role == "user"]
        if not asked or not asked[-1].startswith("/find"):
            return DEFAULT_CATEGORY
        return read_find(behind_command(asked[-1]))[0] or DEFAULT_CATEGORY

    async def _pressed(self, update: Update) -> Message | None:
        """Return the message whose button is pressed for the first time, or None."""
        query = press_of(update)
        if (message := await pressed_message(query, translate("button_too_old"))) is None:
            return None
        await acknowledge(query)
        is_first = await remove_buttons(message, lambda data: data == query.data)
        return message if is_first else None


def problem_of(question: str, usage: str) -> str:
    """Return the sentence for a text that is no question, or too long; else empty."""
    if len(question) > LONGEST_QUESTION:
        return translate("question_too_long")
    return "" if any(map(str.isalnum, question)) else usage
