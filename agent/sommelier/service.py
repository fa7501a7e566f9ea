"""Answer a message: safety first, then a model with tools, else the rules of the fallback."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from agent.care.concerns import Care, read_care_in_talk
from agent.care.help import Help
from agent.engine.contract import Evidence
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.messages import Message, ToolCall
from agent.engine.run import Run
from agent.engine.span import Prompt
from agent.engine.tools import Tool, Toolbox
from agent.fallback import Fallback, describe_search, language_of, unambiguous_query
from agent.i18n import current_language, is_language_chosen, translate, use_language
from agent.mcp import McpServers, Proposal
from agent.prompts import is_relevant, prompt_for, render, research_rules
from agent.sommelier.answer import SOMMELIER, wine_ids
from agent.sommelier.attachment import (
    READ_PICTURES,
    TurnAttachment,
    describe_pictures,
    unread_notes,
)
from agent.sommelier.history import ids_shown_in, to_model_message
from agent.sommelier.safety import allowed_part, care_in, instructions, person_in
from agent.sommelier.small import WINES_PROMPT, ask_small_model
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import Catalogue, catalogue_ids
from agent.sommelier.wine_tools import wine_tools
from agent.turn import STATED_KINDS, Change, Person, Reply, deps_of, guard_input, with_person
from agent.turn_trace import Outcome, error_types

PLACES: Final = "find_places"
"""The tool that finds shops and bars. It is not offered to a person who must not drink."""
OWN_CELLAR: Final = "own_cellar"
"""The tool that lists a person's own bottles. It is offered to a person who has some."""
MEMORY_TOOLS: Final = frozenset({"remember", "forget", "change_cellar"})
"""The tools that change the stored data of a person. A person without a user id has none."""
CATALOGUE_TOOLS: Final = frozenset({"search_wines", "get_wine"})
"""The tools that search the catalogue. They are not offered when a wine list is attached."""
MIN_SHOWN_WINES: Final = 2
"""If the last answer shows fewer wines, those of the answer before it count as shown too."""
MAX_SHOWN_WINES: Final = 8
"""The most wines whose facts the model is given when the user asks about shown wines."""
LANGUAGE_RULE: Final = (
    "- Answer in {language}, as the guest chose, whatever language they write in."
)
"""The line of the prompt for a user who chose a language."""
NOTICE_RULE: Final = (
    '- Above your answer the guest reads: "{notice}" Go on from there, do not say it again.'
)
"""The line of the prompt for an answer below the notice of a concern."""
PROGRESS: Final[Mapping[str, str]] = {
    "search_wines": "searching",
    "get_wine": "looking",
    "search_documents": "reading",
    READ_PICTURES: "reading_pictures",
}
"""The names of the progress texts, by the tools that they describe."""

Response = AgenticResponse[SommelierResponse]


class Answerer(Protocol):
    """The interface by which handlers ask the agent."""

    async def answer(self, message: str, run: Run, attached: TurnAttachment | None = None) -> Reply:
        """Answer `message` within the limits of `run`, with what was read from pictures."""
        ...


class Sommelier:
    """Answer messages from a catalogue, by a model or by rules.

    `research_tools` are offered beside those of the catalogue: documents, places, memory. The
    `fallback` answers if there is no model or no model answers. `help` holds the texts for people
    who should not drink. If the model is `small`, the search comes before its request (`small.py`).
    The tools of `servers` are offered only to people who may drink.
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
        self._prompt = WINES_PROMPT if small else "sommelier"
        self._catalogue = catalogue
        self._fallback = fallback or Fallback(catalogue=catalogue)
        self._help = help or Help()

    async def answer(self, message: str, run: Run, attached: TurnAttachment | None = None) -> Reply:
        """Answer `message` with the prompt that is current when the turn starts.

        The person is in the run's deps; if there is none, their care is read from their messages.
        If a wine list is attached to this message, only its wines are recommended. If there is no
        message, the reply is the text that was read from the pictures, and no model is asked.
        """
        person = self._person(message, run)
        if person.care.is_crisis:
            text = self._help.in_crisis(person.care)
            return Reply(text=text, outcome="care", concerns=person.care.stated)
        is_chosen = is_language_chosen()  # read here: it is False within `use_language`
        rule = LANGUAGE_RULE.format(language=translate("language_name")) if is_chosen else ""
        with use_language(current_language() if is_chosen else self.language_in(message, run)):
            if attached and attached.is_new and not message:
                reply = await describe_pictures(attached.attachment, self._catalogue, person)
            else:
                run = replace(run, deps=replace(deps_of(run), person=person, given_ids=set()))
                reply = await self._generate_reply(
                    guard_input(message, run.span), run, attached, rule
                )
            unread = unread_notes(attached.attachment) if attached and attached.is_new else ()
            return replace(reply, notes=(*reply.notes, *unread))

    async def _generate_reply(
        self, message: str, run: Run, attached: TurnAttachment | None, language_rule: str
    ) -> Reply:
        """Ask a model and remove the wines that the person must not see, or answer by rules."""
        care_before = care_in(run)
        prompt = prompt_for(run, self._prompt)
        response = None  # without a model, or if a small model was not asked
        if run.models and self._is_small:
            response = await self._ask_small_model(message, run, attached)
        elif run.models:
            response = await self._ask_model(message, run, attached, prompt, language_rule)
        care = self._care_with_concern(run, response)
        person = replace(person_in(run), care=care)
        run = with_person(run, person)
        if care.is_crisis:  # as the model reported: other crises do not get here
            reply = Reply(text=self._help.in_crisis(care), outcome="care")
        elif response is None:
            is_first = not run.history  # only the first answer notes that there is no model
            note = "no_model" if is_first and not run.models else None
            reply = await self._answer_by_rules(message, run, attached, note)
        else:
            response = self._remove_forbidden_wines(response, person)
            reply = await self._reply_to_response(message, run, response, attached)
            notice = self._concern_notice(run)  # also of a concern that the model reported
            if response.ok and notice:
                reply = replace(reply, text=f"{notice}\n\n{reply.text}")
        sources = response.sources.values() if response else ()
        proposals = _proposals_in(response)
        return replace(
            reply,
            notes=(*reply.notes, *map(proposal_note, proposals)),
            proposals=tuple(proposals),
            concerns=care.stated - care_before.stated,
            changes=tuple(source for source in sources if isinstance(source, Change)),
            retries=response.retry_count if response else 0,
            error_types=error_types(response) if response else (),
            prompt=prompt.ref,
        )

    def _person(self, message: str, run: Run) -> Person:
        """Return the run's person, or one whose care is read from their messages."""
        if deps_of(run).person is not None:
            return person_in(run)
        care = read_care_in_talk(_user_texts(message, run), self._help.full_age)
        return replace(person_in(run), care=care)

    def _offered_tools(self, message: str, run: Run, attached: TurnAttachment | None) -> list[Tool]:
        """Return the tools for this turn, since most turns need only a few."""
        person = person_in(run)
        user_texts = _user_texts(message, run)
        hidden = set(CATALOGUE_TOOLS) if attached and attached.is_list else set[str]()
        if person.care.forbids_alcohol:
            hidden.add(PLACES)
        if not person.bottles:
            hidden.add(OWN_CELLAR)
        if not person.user_id:
            hidden |= MEMORY_TOOLS
        elif not any(fact.kind in STATED_KINDS for fact in person.facts):
            hidden.add("forget")
        always_offered = {"change_cellar"} if person.bottles else set()
        tools = [
            tool
            for tool in self._tools
            if tool.name not in hidden
            and (tool.name in always_offered or is_relevant(tool.name, user_texts))
        ]
        if not person.care.forbids_alcohol:  # results of MCP servers are not filtered for alcohol
            tools += [
                tool
                for tool in self._servers.tools
                if person.user_id or not tool.needs_confirmation  # only a known user can confirm
            ]
        return [attached.tool(self._catalogue), *tools] if attached else tools

    async def _ask_small_model(
        self, message: str, run: Run, attached: TurnAttachment | None
    ) -> Response | None:
        """Search, then ask a small model about the results; return None if there are none."""
        if attached and attached.is_new:
            return None
        question: Message = {"role": "user", "content": message}
        search = await self._fallback.look_up(
            [*run.history, question],
            person=person_in(run),
            language=current_language(),
            span=run.span,
        )
        return await ask_small_model(message, run, search)

    async def _ask_model(
        self,
        message: str,
        run: Run,
        attached: TurnAttachment | None,
        prompt: Prompt,
        language_rule: str,
    ) -> Response:
        """Ask the run's models, with the facts of the pictures or of the wines shown last."""
        tools = self._offered_tools(message, run, attached)
        names_with_rules = (*self._research, READ_PICTURES)
        research_names = [tool.name for tool in tools if tool.name in names_with_rules]
        notice = self._concern_notice(run)
        notice_rule = NOTICE_RULE.format(notice=notice) if notice else ""
        lines = (
            research_rules(research_names),
            instructions(person_in(run)),
            notice_rule,
            language_rule,
        )
        rules = "\n".join(filter(None, lines))
        schema = SOMMELIER.output.schema_text
        history = [to_model_message(earlier) for earlier in run.history]
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
        self, message: str, run: Run, attached: TurnAttachment | None
    ) -> tuple[ToolCall, ...]:
        """Return the tool calls to run before the first request, as if the model had made them."""
        shown = _last_shown_ids(run)
        if attached and (attached.is_new or not shown):
            return (ToolCall("", READ_PICTURES, "{}"),)
        if shown and not care_in(run).forbids_alcohol:
            return (ToolCall("", "get_wine", json.dumps({"wine_ids": shown})),)
        if attached or run.history:  # an earlier message may hold limits not repeated in this one
            return ()
        query = unambiguous_query(message, current_language())
        if query is None:
            return ()
        filters = query.model_dump_json(exclude_defaults=True, exclude={"limit"})
        return (ToolCall("", "search_wines", filters),)

    def _care_with_concern(self, run: Run, response: Response | None) -> Care:
        """Return the person's care with the concern that the model reported added to it.

        Concerns that a small model reports are ignored, because it names them at random.
        """
        care = care_in(run)
        answer = response.answer if response else None
        if answer is None or answer.concern == "none" or self._is_small:
            return care
        care_after = care.with_concern(answer.concern)
        if added := care_after.concerns - care.concerns:
            with run.span.child("guard.care", "guardrail") as guard:
                guard.update(output=sorted(added), metadata={"heard_by": "model"})
        return care_after

    def _remove_forbidden_wines(self, response: Response, person: Person) -> Response:
        """Return a response with only wines that `person` may see, without text if none remain."""
        if response.answer is None or not response.ok:
            return response
        answer = allowed_part(response.answer, response.sources, person)
        if answer is None:  # no wine remains: the fallback will answer
            return replace(response, answer=None, text="", wine_ids=(), outcome="exhausted")
        if answer == response.answer:
            return response
        text = SOMMELIER.render(answer, Evidence(sources=dict(response.sources)))
        return replace(response, answer=answer, text=text, wine_ids=tuple(wine_ids(answer)))

    async def _reply_to_response(
        self, message: str, run: Run, response: Response, attached: TurnAttachment | None
    ) -> Reply:
        """Convert a response to a reply; answer by rules if the model gave no usable answer."""
        if response.ok and response.outcome == "stopped":
            return _show_response(response, "stopped", translate("stopped_here"))
        if response.ok:
            outcome: Outcome = "salvaged" if response.outcome == "salvaged" else "answered"
            return _show_response(response, outcome)
        if response.outcome == "stopped":
            return Reply(text=translate("stopped"), outcome="stopped")
        if response.outcome in {"refusal", "content_filter"}:
            return Reply(text=translate("declined"), outcome="refused")
        reply = await self._answer_by_rules(message, run, attached, "model_down")
        return replace(reply, outcome="fallback")

    async def _answer_by_rules(
        self, message: str, run: Run, attached: TurnAttachment | None, note: str | None
    ) -> Reply:
        """Return the wines read from this message's pictures, else the answer of the fallback."""
        if attached and attached.is_new and attached.attachment.wines:
            return await describe_pictures(attached.attachment, self._catalogue, person_in(run))
        question: Message = {"role": "user", "content": message}
        reply = await self._fallback.answer(
            [*run.history, question],
            person=person_in(run),
            language=current_language(),
            span=run.span,
        )
        care = care_in(run)
        if reply.wine_ids and (care.is_cautious or care.forbids_alcohol):
            reply = replace(reply, text=f"{self._help.notice_for(care)}\n\n{reply.text}")
        return replace(reply, notes=(translate(note),) if note else ())

    def _concern_notice(self, run: Run) -> str:
        """Return the notice of a new concern, shown above an answer; empty if shown before."""
        care = care_in(run)
        if not care.new_concern:
            return ""
        notice = self._help.notice_for(care)
        was_shown = any(notice in answer for answer in _earlier_answers(run))
        return "" if was_shown else notice

    def language_in(self, message: str, run: Run) -> str:
        """Return the language of a message, or of the messages before it if it is unclear."""
        language = current_language()
        for text in _user_texts(message, run):  # an unclear text keeps the language before it
            language = language_of(text, language)
        return language

    def _progress(self, calls: Sequence[ToolCall]) -> str:
        """Return a fixed progress text for tool calls; the model's text is not validated yet."""
        name = calls[0].name
        query = (
            describe_search(calls[0].arguments, current_language())
            if name == "search_wines"
            else ""
        )
        text = translate(PROGRESS.get(name, "at_work"))
        if query:
            text = f"{text}: {query}"
        return f"_{text} …_"


def proposal_note(proposal: Proposal) -> str:
    """Return the note that shows the proposed tool call above its button."""
    return f"{translate('tool_proposed')}\n```\n{proposal.tool} {proposal.arguments}\n```"


def _proposals_in(response: Response | None) -> list[Proposal]:
    """Return the tool calls that the user may confirm; none for an answer of the fallback."""
    if response is None or not response.ok:
        return []
    return [source for source in response.sources.values() if isinstance(source, Proposal)]


def _user_texts(message: str, run: Run) -> list[str]:
    """Return the person's messages in this conversation, the current one last."""
    earlier = (str(sent["content"]) for sent in run.history if sent["role"] == "user")
    return [*earlier, message]


def _earlier_answers(run: Run) -> list[str]:
    """Return the earlier answers of this conversation."""
    return [str(sent["content"]) for sent in run.history if sent["role"] == "assistant"]


def _last_shown_ids(run: Run) -> tuple[str, ...]:
    """Return the ids of the wines in the last answer, and in the one before if these are few."""
    answers = _earlier_answers(run)
    shown = ids_shown_in(answers[-1]) if answers else ()
    if len(shown) < MIN_SHOWN_WINES and len(answers) > 1:
        shown = tuple(dict.fromkeys((*shown, *ids_shown_in(answers[-2]))))
    return shown[:MAX_SHOWN_WINES]


def _show_response(response: Response, outcome: Outcome, note: str = "") -> Reply:
    """Return the reply that shows a response."""
    sources = response.sources
    return Reply(
        text=response.text,
        outcome=outcome,
        notes=(note,) if note else (),
        wine_ids=tuple(catalogue_ids(response.wine_ids)),
        wines=tuple(sources[wine_id] for wine_id in response.wine_ids if wine_id in sources),
        answer=response.answer,
    )
