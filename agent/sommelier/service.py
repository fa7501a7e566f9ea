"""Answer a message: safety first, then a model with tools, else the rules of the fallback."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from agent.care.concerns import Care, read_care_in_talk
from agent.care.help import Help
from agent.engine.contract import Evidence
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.mcp import McpServers, Proposal
from agent.engine.messages import Message, ToolCall
from agent.engine.run import Run
from agent.engine.span import Prompt
from agent.engine.tools import Tool, Toolbox
from agent.fallback import Fallback, certain_query, language_of, search_in_words
from agent.i18n import current_language, is_language_chosen, translate, use_language
from agent.prompts import has_reason, prompt_for, render, research_rules
from agent.sommelier.answer import SOMMELIER, wine_ids
from agent.sommelier.attachment import READ, Attached, unread_notes, what_was_read
from agent.sommelier.history import as_written, ids_shown_in
from agent.sommelier.safety import allowed_part, care_in, instructions, person_in
from agent.sommelier.small import WINES, ask_small_model
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import Catalogue, of_catalogue
from agent.sommelier.wine_tools import wine_tools
from agent.turn import TOLD, Change, Person, Reply, deps_of, guard_input
from agent.turn_trace import Outcome, error_types

PLACES: Final = "find_places"
"""The tool that finds shops and bars: it is not offered to a person who must not drink."""
OWN_CELLAR: Final = "own_cellar"
"""The tool that tells of a person's own bottles: it is offered to those who have some."""
OF_MEMORY: Final = frozenset({"remember", "forget", "change_cellar"})
"""The tools that change what is kept of a person: not offered where nothing can be kept."""
CATALOGUE_TOOLS: Final = frozenset({"search_wines", "get_wine"})
"""The tools that find wines of the catalogue: beside a wine list they are not offered."""
FEW: Final = 2
MOST_SHOWN: Final = 8
"""Wines whose facts go along with a follow-up."""
CHOSEN: Final = "- Answer in {language}, as the guest chose, whatever language they write in."
ABOVE: Final = (
    '- Above your answer the guest reads: "{lead}" Go on from there, do not say it again.'
)
PROGRESS: Final[Mapping[str, str]] = {
    "search_wines": "searching",
    "get_wine": "looking",
    "search_documents": "reading",
    READ: "reading_pictures",
}
"""The sentence that tells of the work of a tool."""

Response = AgenticResponse[SommelierResponse]


class Answerer(Protocol):
    """What a handler needs of the agent."""

    async def answer(self, message: str, run: Run, attached: Attached | None = None) -> Reply:
        """Answer `message` within the limits of `run`, with what was read from pictures."""
        ...


class Sommelier:
    """Answers messages from a catalogue, by a model or by rules.

    `research_tools` are offered beside those of the catalogue: documents, places, memory. The
    `fallback` answers where there is no model or none that answers. `help` holds what is said to
    those who should not drink. For a `small` model the search is made first (`small.py`). The
    tools of `servers` are offered as well, to those who may drink.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        research_tools: Sequence[Tool] = (),
        help: Help | None = None,
        small: bool = False,
        fallback: Fallback | None = None,
        servers: McpServers | None = None,
    ) -> None:
        self._tools = [*wine_tools(catalogue), *research_tools]
        self._research = [tool.name for tool in research_tools]
        self._servers = servers or McpServers()
        self._is_small = small
        self._prompt = WINES if small else "sommelier"
        self._catalogue = catalogue
        self._fallback = fallback or Fallback(catalogue=catalogue)
        self._help = help or Help()

    async def answer(self, message: str, run: Run, attached: Attached | None = None) -> Reply:
        """Answer `message`, with the prompt that the run's prompts have when it begins.

        What is known of the person is in the run's deps; without a person it is what they say. From
        a wine list that is `attached` now only its wines can be recommended. Without a message the
        answer is what was read, without a model.
        """
        person = self._person(message, run)
        if person.care.is_crisis:
            text, concerns = self._help.in_crisis(person.care), person.care.own
            return Reply(text=text, outcome="care", concerns=concerns)
        chosen = CHOSEN.format(language=translate("language_name")) if is_language_chosen() else ""
        with use_language(
            current_language() if is_language_chosen() else self.language_in(message, run)
        ):
            if attached and attached.now and not message:
                reply = await what_was_read(attached.attachment, self._catalogue, person)
            else:
                run = replace(run, deps=replace(deps_of(run), person=person, told=set()))
                reply = await self._answer(guard_input(message, run.span), run, attached, chosen)
            unread = unread_notes(attached.attachment) if attached and attached.now else ()
            return replace(reply, notes=(*reply.notes, *unread))

    async def _answer(
        self, message: str, run: Run, attached: Attached | None, chosen: str
    ) -> Reply:
        """Return the answer of a model, held to what the person may be shown, or by rules."""
        before, prompt = care_in(run), prompt_for(run, self._prompt)
        response = None
        if run.models and self._is_small:
            response = await self._ask_small(message, run, attached)
        elif run.models:
            response = await self._ask(message, run, attached, prompt, chosen)
        care = self._heard(run, response)
        person = replace(person_in(run), care=care)
        run = replace(run, deps=replace(deps_of(run), person=person))
        if response is not None and care.is_crisis:
            reply = Reply(text=self._help.in_crisis(care), outcome="care")
        else:
            response = response and self._allowed(response, person_in(run))
            reply = await self._reply(message, run, response, attached)
            if response and response.ok and (lead := self._lead(run)):
                reply = replace(reply, text=f"{lead}\n\n{reply.text}")
        found = response.sources.values() if response else ()
        proposals = [proposal for proposal in found if isinstance(proposal, Proposal)]
        proposals = proposals if response and response.ok else []
        return replace(
            reply,
            notes=(*reply.notes, *map(proposal_note, proposals)),
            proposals=tuple(proposals),
            concerns=care.own - before.own,
            changes=tuple(change for change in found if isinstance(change, Change)),
            retries=response.retry_count if response else 0,
            error_types=error_types(response) if response else (),
            prompt=prompt.ref,
        )

    def _person(self, message: str, run: Run) -> Person:
        """Return what is known of the person; where nothing is, the care that their words need."""
        if deps_of(run).person is not None:
            return person_in(run)
        care = read_care_in_talk(_own_words(message, run), self._help.full_age)
        return replace(person_in(run), care=care)

    def _offered(self, message: str, run: Run, attached: Attached | None) -> list[Tool]:
        """Return the tools that a model is offered in a turn: few turns need all."""
        person, said = person_in(run), _own_words(message, run)
        hidden = set(CATALOGUE_TOOLS) if attached and attached.is_list else set[str]()
        if person.care.forbids_alcohol:
            hidden.add(PLACES)
        if not person.bottles:
            hidden.add(OWN_CELLAR)
        if not person.user_id:
            hidden |= OF_MEMORY
        elif not any(fact.kind in TOLD for fact in person.facts):
            hidden.add("forget")
        due = {"change_cellar"} if person.bottles else set()
        offered = [
            tool
            for tool in self._tools
            if tool.name not in hidden and (tool.name in due or has_reason(tool.name, said))
        ]
        if not person.care.forbids_alcohol:  # nothing keeps wine out of what other programs return
            offered += [tool for tool in self._servers.tools if person.user_id or not tool.asks]
        return [attached.tool(self._catalogue), *offered] if attached else offered

    async def _ask_small(
        self, message: str, run: Run, attached: Attached | None
    ) -> Response | None:
        """Ask a small model about what a search found; None if it found nothing."""
        if attached and attached.now:
            return None
        asked: Message = {"role": "user", "content": message}
        look_up = await self._fallback.look_up(
            [*run.history, asked], person=person_in(run), language=current_language(), span=run.span
        )
        return await ask_small_model(message, run, look_up)

    async def _ask(
        self, message: str, run: Run, attached: Attached | None, prompt: Prompt, chosen: str
    ) -> Response:
        """Ask the run's models, with the facts of the wines shown last, or of the pictures."""
        tools = self._offered(message, run, attached)
        names = [tool.name for tool in tools if tool.name in (*self._research, READ)]
        lead = self._lead(run)
        above = ABOVE.format(lead=lead) if lead else ""
        lines = (research_rules(names), instructions(person_in(run)), above, chosen)
        rules, schema = "\n".join(filter(None, lines)), SOMMELIER.output.schema_text
        history = [as_written(said) for said in run.history]
        return await generate_agentic_response(
            message,
            run=replace(
                run,
                instructions=render(prompt, research_rules=rules, schema=schema),
                history=history,
            ),
            contract=SOMMELIER,
            tools=Toolbox(tools),
            initial_calls=self._initial_calls(message, run, attached),
            progress=self._progress,
        )

    def _initial_calls(
        self, message: str, run: Run, attached: Attached | None
    ) -> tuple[ToolCall, ...]:
        """Return the calls that are made before the model is asked, as if it had wanted them."""
        shown = _shown_last(run)
        if attached and (attached.now or not shown):
            return (ToolCall("", READ, "{}"),)
        if shown and not care_in(run).forbids_alcohol:
            return (ToolCall("", "get_wine", json.dumps({"wine_ids": shown})),)
        # An earlier message may hold a limit that this one does not repeat.
        query = None if attached or run.history else certain_query(message, current_language())
        if query is None:
            return ()
        filters = query.model_dump_json(exclude_defaults=True, exclude={"limit"})
        return (ToolCall("", "search_wines", filters),)

    def _heard(self, run: Run, response: Response | None) -> Care:
        """Return the care of the person with the concern that a model heard: it adds, never lifts.

        A small model is not asked for one: it names concerns at random.
        """
        care, answer = care_in(run), response.answer if response else None
        if answer is None or answer.concern == "none" or self._is_small:
            return care
        heard = care.adding(answer.concern)
        if added := heard.all - care.all:
            with run.span.child("guard.care", "guardrail") as guard:
                guard.update(output=sorted(added), metadata={"heard_by": "model"})
        return heard

    def _allowed(self, response: Response, person: Person) -> Response:
        """Return a response with the wines that may be shown; with no text if none is left."""
        if response.answer is None or not response.ok:
            return response
        answer = allowed_part(response.answer, response.sources, person)
        if answer is None:
            return replace(response, answer=None, text="", wine_ids=(), outcome="exhausted")
        if answer == response.answer:
            return response
        text = SOMMELIER.render(answer, Evidence(sources=dict(response.sources)))
        return replace(response, answer=answer, text=text, wine_ids=tuple(wine_ids(answer)))

    async def _reply(
        self, message: str, run: Run, response: Response | None, attached: Attached | None
    ) -> Reply:
        if response is None:
            return await self._by_rules(
                message, run, attached, "" if run.history or run.models else "no_model"
            )
        if response.ok and response.outcome == "stopped":
            return _shown(response, "stopped", translate("stopped_here"))
        if response.ok:
            return _shown(response, "salvaged" if response.outcome == "salvaged" else "answered")
        if response.outcome == "stopped":
            return Reply(text=translate("stopped"), outcome="stopped")
        if response.outcome in {"refusal", "content_filter"}:
            return Reply(text=translate("declined"), outcome="refused")
        reply = await self._by_rules(message, run, attached, "model_down")
        return replace(reply, outcome="fallback")

    async def _by_rules(
        self, message: str, run: Run, attached: Attached | None, note: str
    ) -> Reply:
        """Return what was read from pictures of this message, else the answer of the fallback."""
        if attached and attached.now and attached.attachment.wines:
            return await what_was_read(attached.attachment, self._catalogue, person_in(run))
        asked: Message = {"role": "user", "content": message}
        reply = await self._fallback.answer(
            [*run.history, asked], person=person_in(run), language=current_language(), span=run.span
        )
        care = care_in(run)
        if reply.wine_ids and (care.is_cautious or care.forbids_alcohol):
            reply = replace(reply, text=f"{self._help.why(care)}\n\n{reply.text}")
        return replace(reply, notes=(translate(note),) if note else ())

    def _lead(self, run: Run) -> str:
        """Return the words above a model's answer when a concern is first told; else nothing."""
        care = care_in(run)
        why = self._help.why(care) if care.new_concern else ""
        answers = (str(said["content"]) for said in run.history if said["role"] == "assistant")
        return "" if any(why in said for said in answers) else why

    def language_in(self, message: str, run: Run) -> str:
        """Return the language of a message, or of what was said before it."""
        language = current_language()
        for text in _own_words(message, run):
            language = language_of(text, language)
        return language

    def _progress(self, calls: Sequence[ToolCall]) -> str:
        """Tell of the work of tools in our own words: those of the model are not checked yet."""
        name = calls[0].name
        query = (
            search_in_words(calls[0].arguments, current_language())
            if name == "search_wines"
            else ""
        )
        return f"_{translate(PROGRESS.get(name, 'at_work'))}{f': {query}' if query else ''} …_"


def proposal_note(proposal: Proposal) -> str:
    """Return the note that shows a user the call that a button below it runs."""
    return f"{translate('tool_proposed')}\n```\n{proposal.tool} {proposal.arguments}\n```"


def _own_words(message: str, run: Run) -> list[str]:
    """Return what the person said in a conversation, the message last."""
    said = (str(one["content"]) for one in run.history if one["role"] == "user")
    return [*said, message]


def _shown_last(run: Run) -> tuple[str, ...]:
    """Return the ids of the wines that the last answer showed, or the two last if it had few."""
    answers = [str(said["content"]) for said in run.history if said["role"] == "assistant"]
    shown = ids_shown_in(answers[-1]) if answers else ()
    if len(shown) < FEW and len(answers) > 1:
        shown = tuple(dict.fromkeys((*shown, *ids_shown_in(answers[-2]))))
    return shown[:MOST_SHOWN]


def _shown(response: Response, outcome: Outcome, note: str = "") -> Reply:
    ids, found = response.wine_ids, response.sources
    return Reply(
        text=response.text,
        outcome=outcome,
        notes=(note,) if note else (),
        wine_ids=tuple(of_catalogue(ids)),
        wines=tuple(found[wine_id] for wine_id in ids if wine_id in found),
        answer=response.answer,
    )
