"""What the sommelier answers: by a model, or by rules when there is none or it fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from agent.care import FORBIDDING, Care, care_in_talk, is_ordinary
from agent.care_help import Help
from agent.engine.contract import Evidence, OutputContract
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.messages import Message, ToolCall
from agent.engine.run import Run
from agent.engine.tools import Tool, Toolbox
from agent.fallback import Fallback, language_of, read_request, search_in_words
from agent.fallback.searching import limits_in, wine_listed
from agent.i18n import is_chosen, say, say_in, spoken
from agent.prompts import prompt_for, research_rules
from agent.repositories import StoredMessage
from agent.sommelier.attachment import READ, Attached, ListCatalogue, left_out, what_was_read
from agent.sommelier.contract import SMALL_SOMMELIER, SOMMELIER, wine_ids
from agent.sommelier.safety import allowed_part, care_in, instructions, person_in
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import Catalogue, of_catalogue, with_ids_shown
from agent.sommelier.wine_tools import wine_tools
from agent.turn import Change, Person, Reply, guard_input
from agent.turn_trace import Outcome, error_types

PLACES: Final = "find_places"
"""The tool that finds shops and bars: it is not offered to those who must not drink."""

OF_CELLAR: Final = frozenset({"search_wines", "get_wine", "find_similar_wines"})
"""The tools that find wines of the catalogue: of a wine list none of these is recommended."""

CHOSEN: Final = "- Answer in {language}, as the guest chose, whatever language they write in."
PROGRESS: Final[Mapping[str, str]] = {
    "search_wines": "searching",
    "find_similar_wines": "comparing",
    "get_wine": "looking",
    "search_documents": "reading",
    READ: "reading_pictures",
}
"""What is said of the work of a tool."""

Response = AgenticResponse[SommelierResponse]


class Answerer(Protocol):
    """What a handler needs of the agent."""

    async def answer(self, message: str, run: Run, attached: Attached | None = None) -> Reply:
        """Answer `message` within the limits of `run`, with what was read from pictures."""
        ...


class Offer:
    """Tools that are offered: all, and those for who must not drink."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.all = Toolbox(tools)
        self.sober = Toolbox([each for each in tools if each.name != PLACES])


@dataclass(frozen=True, slots=True)
class _Asked:
    """A message, the run of who asks, and what was read from pictures that it is about."""

    message: str
    run: Run
    attached: Attached | None = None

    @property
    def messages(self) -> list[Message]:
        """The conversation up to the message."""
        return [*self.run.history, {"role": "user", "content": self.message}]

    @property
    def said(self) -> list[str]:
        """What the person said in it."""
        return [str(each["content"]) for each in self.messages if each["role"] == "user"]

    def with_care(self, care: Care) -> "_Asked":
        """The same of somebody of whom `care` is known."""
        known = replace(person_in(self.run), care=care)
        return replace(self, run=replace(self.run, context=known))


class Sommelier:
    """Answers messages from a catalogue, by a model or by rules.

    `research_tools` are offered beside those of the catalogue: documents, quotes, places. The
    `fallback` answers where there is no model or none that answers. `help` says what is to be said
    to those who should not drink. To a `small` model prompt and schema are a third as long.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        research_tools: Sequence[Tool] = (),
        help: Help | None = None,
        small: bool = False,
        fallback: Fallback | None = None,
    ) -> None:
        self._tools = Offer([*wine_tools(catalogue), *research_tools])
        self._prompt = "sommelier-small" if small else "sommelier"
        self._contract = SMALL_SOMMELIER if small else SOMMELIER
        self._research_rules = research_rules(
            [] if small else [each.name for each in research_tools]
        )
        self._catalogue = catalogue
        self._fallback = fallback or Fallback(catalogue=catalogue)
        self._help = help or Help()

    async def answer(self, message: str, run: Run, attached: Attached | None = None) -> Reply:
        """Answer `message`, with the prompt that the run's prompts have when it begins.

        What is known of who asks is the run's context, a `Care`; without one it is what they say.
        Of a wine list that is `attached` now, only its wines can be recommended. With no message
        it is told what was read, without a model.
        """
        if attached is None or not attached.now:
            # A model tells for itself what goes on with what.
            last = str(run.history[-1]["content"]) if run.history and not run.models else ""
            about = attached and attached.for_message(message, last)
            return await self._answer(_Asked(message, run, about))
        language = self.language_in(message, run)
        if message:
            reply = await self._answer(_Asked(message, run, attached))
        else:
            reply = await self._what_was_read(attached, run, language)
        return replace(reply, notes=(*reply.notes, *left_out(attached.attachment, language)))

    async def _what_was_read(self, attached: Attached, run: Run, language: str) -> Reply:
        person = person_in(run)
        return await what_was_read(
            attached.attachment, self._catalogue, person, language, wine_listed
        )

    async def _answer(self, asked: _Asked) -> Reply:
        care = self._care(asked)
        if care.is_crisis:
            return Reply(text=self._help.in_crisis(care), outcome="care")
        run = asked.with_care(care).run
        prompt = prompt_for(run, self._prompt)
        pictures = research_rules([READ]) if asked.attached else ""
        chosen = CHOSEN.format(language=say("language_name")) if is_chosen() else ""
        parts = (self._research_rules, pictures, instructions(person_in(run)), chosen)
        rules = "\n".join(filter(None, parts))
        schema = self._contract.output.text
        text = prompt.render(research_rules=rules, schema=schema)
        run = replace(run, instructions=text, prompt=prompt.ref)
        message = guard_input(asked.message, run.span)
        run = replace(run, progress=self._progress)
        asked = replace(asked, message=message, run=run)
        response = None
        if run.models:
            response = await self._generate(asked, self._contract, self._tools)
        heard = self._heard(response, asked)
        asked = asked.with_care(heard) if heard != care else asked
        if response is not None and heard.is_crisis:
            reply = Reply(text=self._help.in_crisis(heard), outcome="care")
        else:
            response = response and self._allowed(response, asked.run)
            reply = self._introduced(await self._reply(asked, response), response, asked.run)
        found = response.found.values() if response else ()
        return replace(
            reply,
            told=(heard.all - care.all) & heard.own & FORBIDDING - {"crisis"},
            changes=tuple(each for each in found if isinstance(each, Change)),
            retries=response.retry_count if response else 0,
            error_types=error_types(response) if response else (),
            prompt=prompt.ref,
        )

    def _care(self, asked: _Asked) -> Care:
        """What is known of who asks: what the product says, or what they say themselves."""
        if isinstance(asked.run.context, Care | Person):
            return care_in(asked.run)
        return care_in_talk(asked.said, self._help.full_age)

    def _heard(self, response: Response | None, asked: _Asked) -> Care:
        """Return the care of who asks with the concern that a model heard: it adds, never lifts.

        Where every message is surely ordinary a small model heard what nobody told.
        """
        care = care_in(asked.run)
        answer = response.answer if response else None
        if answer is None or answer.concern == "none" or all(map(is_ordinary, asked.said)):
            return care
        heard = care.adding(answer.concern)
        if added := heard.all - care.all:
            with asked.run.span.child("guard.care", "guardrail") as guard:
                guard.update(output=sorted(added), metadata={"heard_by": "model"})
        return heard

    def _allowed(self, response: Response, run: Run) -> Response:
        """Return a response with the wines that may be shown; with no text if none is left."""
        if response.answer is None or not response.ok:
            return response
        answer = allowed_part(response.answer, response.found, person_in(run))
        if answer == response.answer:
            return response
        evidence = Evidence(found=dict(response.found))
        text = self._contract.render(answer, evidence) if answer else ""
        outcome = response.outcome if answer else "exhausted"
        ids = tuple(wine_ids(answer)) if answer else ()
        return replace(response, answer=answer, text=text, wine_ids=ids, outcome=outcome)

    def _introduced(self, reply: Reply, response: Response | None, run: Run) -> Reply:
        """A model's answer below what is to be said of a concern when it is first told."""
        care = care_in(run)
        if response is None or not response.ok or care.news is None:
            return reply
        why = self._help.why(care)
        if any(why in str(each["content"]) for each in run.history if each["role"] == "assistant"):
            return reply
        return replace(reply, text=f"{why}\n\n{reply.text}")

    def _explained(self, reply: Reply, run: Run) -> Reply:
        """Return an answer by rules below why no alcohol is offered, or why it comes second."""
        care = care_in(run)
        if not (reply.wine_ids and (care.is_cautious or care.forbids_alcohol)):
            return reply
        return replace(reply, text=f"{self._help.why(care)}\n\n{reply.text}")

    async def _reply(self, asked: _Asked, response: Response | None) -> Reply:
        if response is not None and response.ok and response.outcome != "stopped":
            return _shown(response, "salvaged" if response.outcome == "salvaged" else "answered")
        language = self.language_in(asked.message, asked.run)
        if response is not None and response.ok:
            return _shown(response, "stopped", say_in(language, "stopped_here"))
        if response is not None and response.outcome == "stopped":
            return Reply(text=say_in(language, "stopped"), outcome="stopped")
        if response is not None and response.outcome in {"refusal", "content_filter"}:
            return Reply(text=say_in(language, "declined"), outcome="refused")
        return await self._without_model(asked, response, language)

    async def _without_model(
        self, asked: _Asked, response: Response | None, language: str
    ) -> Reply:
        """The answer by rules: from a list that is meant, of what was read, or the catalogue."""
        attached, by_rules = asked.attached, replace(asked, attached=None)
        if (
            attached
            and attached.is_choice
            and (attached.is_about or read_request(asked.message).says_what)
        ):
            return await self._of_list(by_rules, attached, response, language)
        if attached and attached.now and attached.attachment.wines:
            reply = await self._what_was_read(attached, asked.run, language)
            return reply if response is None else replace(reply, outcome="fallback")
        return await self._by_rules(by_rules, response, language, self._fallback)

    async def _of_list(
        self, asked: _Asked, attached: Attached, response: Response | None, language: str
    ) -> Reply:
        """The answer by rules from a list, in place of the catalogue."""
        read = await attached.attachment.known_in(self._catalogue, person_in(asked.run))
        listed = ListCatalogue(read.wines, wine_listed)
        if attached.now:
            asked = replace(asked, run=replace(asked.run, history=()))
        reply = await self._by_rules(asked, response, language, Fallback(catalogue=listed))
        unknown = len(read.wines) - len(listed.wines)
        note = say_in(language, "list_unknown", count=unknown) if unknown else ""
        ids = tuple(of_catalogue(reply.wine_ids))
        return replace(reply, wine_ids=ids, notes=(*reply.notes, *filter(None, [note])))

    async def _by_rules(
        self, asked: _Asked, response: Response | None, language: str, fallback: Fallback
    ) -> Reply:
        """Return the answer by rules, with a note that says why no model made it."""
        reply = await fallback.answer(
            asked.messages, person=person_in(asked.run), language=language, span=asked.run.span
        )
        reply = self._explained(reply, asked.run)
        if response is not None:
            note = say_in(language, "model_down")
            return replace(reply, outcome="fallback", notes=(note,))
        note = "" if asked.run.history else say_in(language, "no_model")
        return replace(reply, notes=(note,) if note else ())

    def language_in(self, message: str, run: Run) -> str:
        """Return the language of a message, or of what was said before it."""
        return _language_of(_Asked(message, run).said)

    async def language_of(self, message: str) -> str:
        """Return the language of a message by itself."""
        return _language_of([message])

    def _progress(self, calls: Sequence[ToolCall]) -> str:
        """What tools do, in words of ours alone: what the model wrote is not checked yet."""
        name = calls[0].name
        asked = search_in_words(calls[0].arguments, spoken())
        looked = f": {asked}" if asked and name == "search_wines" else ""
        return f"_{say(PROGRESS.get(name, 'at_work'))}{looked} …_"

    async def _generate(
        self, asked: _Asked, contract: OutputContract[SommelierResponse], offer: Offer
    ) -> Response:
        attached, care = asked.attached, care_in(asked.run)
        tools = offer.sober if care.forbids_alcohol else offer.all
        if attached is not None:
            out = OF_CELLAR if attached.is_choice else frozenset[str]()
            left = [each for each in tools.tools if each.name not in out]
            about = asked.messages[-1:] if attached.now else asked.messages
            limits = limits_in(about)
            read = attached.tool(self._catalogue, limits, wine_listed)
            tools = Toolbox([read, *left])
        first = attached.first if attached else ()
        return await generate_agentic_response(
            asked.message, run=asked.run, contract=contract, tools=tools, first=first
        )


def window(stored: Sequence[StoredMessage]) -> list[Message]:
    """Stored messages as a model is shown them; ids let a follow-up look a shown wine up again.

    Blank ones are left out: an empty content is a 400 with some servers.
    """
    return [
        {"role": message.role, "content": with_ids_shown(message.content, message.wine_ids)}
        for message in stored
        if message.content.strip()
    ]


def _language_of(said: Sequence[str]) -> str:
    """Return the language that was chosen, or else of the last message that tells one."""
    language = spoken()
    for text in said if not is_chosen() else ():
        language = language_of(text, language)
    return language


def _shown(response: Response, outcome: Outcome, note: str = "") -> Reply:
    wine_ids, found = response.wine_ids, response.found
    return Reply(
        text=response.text,
        outcome=outcome,
        notes=(note,) if note else (),
        wine_ids=tuple(of_catalogue(wine_ids)),
        wines=tuple(found[each] for each in wine_ids if each in found),
        answer=response.answer,
    )
