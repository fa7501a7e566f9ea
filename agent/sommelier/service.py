"""Answer a message: safety first, then a model with tools, else the rules of the fallback."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from agent.care import Care, Help, read_care_in_talk
from agent.engine.contract import Evidence
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.messages import ToolCall
from agent.engine.run import Prompt, Run
from agent.engine.tools import Tool, Toolbox
from agent.fallback import (
    Fallback,
    LookUp,
    describe_search,
    language_of,
    reply_to,
    unambiguous_query,
)
from agent.i18n import current_language, is_language_chosen, translate, use_language
from agent.mcp import McpServers, Proposal
from agent.prompts import is_relevant, prompt_for, render, research_rules
from agent.sommelier.answer import SOMMELIER, wine_ids
from agent.sommelier.attachment import READ_PICTURES, Attachment, describe_pictures
from agent.sommelier.history import ids_shown_in, to_model_message
from agent.sommelier.read_wine import catalogue_ids
from agent.sommelier.safety import allowed_part, care_in, person_in, safety_rules
from agent.sommelier.small import WINES_PROMPT, ask_small_model
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import Catalogue
from agent.sommelier.wine_tools import wine_tools
from agent.turn import (
    STATED_KINDS,
    Change,
    Outcome,
    Person,
    Reply,
    deps_of,
    error_types,
    guard_input,
    with_person,
)

MEMORY_TOOLS: Final = frozenset({"remember", "forget", "change_cellar"})
"""The tools that change the stored data of a person."""
MAX_SHOWN_WINES: Final = 8
"""At most so many of the wines shown last are looked up for the model before it answers."""
LANGUAGE_RULE: Final = (
    "- Answer in {language}, as the guest chose, whatever language they write in."
)
"""The line of the prompt for a user who chose a language."""
NOTICE_RULE: Final = (
    '- Above your answer the guest reads: "{notice}" Go on from there, do not say it again.'
)
"""The line of the prompt that tells which notice the guest reads above the model's answer."""
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

    async def answer(self, message: str, run: Run, attachment: Attachment | None = None) -> Reply:
        """Answer `message` within the limits of `run`, with the wines read from pictures."""
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
        self._servers = servers or McpServers()
        self._is_small = small
        self._catalogue = catalogue
        self._fallback = fallback or Fallback(catalogue=catalogue)
        self._help = help or Help()

    async def answer(self, message: str, run: Run, attachment: Attachment | None = None) -> Reply:
        """Answer `message` with the prompt that is current when the turn starts.

        The person is in the run's deps; if there is none, their care is read from their messages.
        If a wine list is attached to this message, only its wines are recommended. If there is no
        message, the reply is the text that was read from the pictures, and no model is asked.
        """
        person = deps_of(run).person
        if person is None:
            texts = _user_texts(message, run)
            person = Person(read_care_in_talk(texts, self._help.drinking_age))
        if person.care.is_crisis:
            text = self._help.in_crisis(person.care)
            return Reply(text=text, outcome="care", concerns=person.care.stated)
        language_is_chosen = is_language_chosen()  # read here: it is False within `use_language`
        new_attachment = attachment if attachment and attachment.is_new else None
        with use_language(
            current_language() if language_is_chosen else conversation_language(message, run)
        ):
            if new_attachment and not message:
                reply = await describe_pictures(new_attachment, self._catalogue, person)
            else:
                deps = replace(deps_of(run), person=person, ids_given_to_model=set())
                run = replace(run, deps=deps)
                message = guard_input(message, run.span)
                reply = await self._generate_reply(message, run, attachment, language_is_chosen)
            notes = new_attachment.notes if new_attachment else ()
            return replace(reply, notes=(*reply.notes, *notes))

    async def _generate_reply(
        self, message: str, run: Run, attachment: Attachment | None, language_is_chosen: bool
    ) -> Reply:
        """Ask a model and remove the wines that the person must not see, or answer by rules."""
        care_before = care_in(run)
        prompt = prompt_for(run, WINES_PROMPT if self._is_small else "sommelier")
        response = None  # without a model, or if a small model was not asked
        if run.models and self._is_small:
            # A small model sees no pictures: the rules list the wines that were read from them.
            if not (attachment and attachment.is_new):
                response = await ask_small_model(message, run, await self._look_up(message, run))
        elif run.models:
            response = await self._ask_model(message, run, attachment, prompt, language_is_chosen)
        care = self._care_with_concern(run, response)
        run = with_person(run, replace(person_in(run), care=care))
        if response is None:
            reply = await self._answer_by_rules(message, run, attachment)
            is_first_without_model = not (run.history or run.models)
            notes = (translate("no_model"),) if is_first_without_model else ()
            return replace(reply, notes=(*reply.notes, *notes))
        # The model reported this crisis: `answer` offers help in those that the rules recognize.
        if care.is_crisis:
            # Nothing else is told, proposed or changed.
            reply = Reply(text=self._help.in_crisis(care), outcome="care")
        else:
            reply = await self._reply_to_response(message, run, response, attachment)
            reply = _with_effects(reply, response)
        return replace(
            reply,
            concerns=care.stated - care_before.stated,
            retries=response.retry_count,
            error_types=error_types(response),
            prompt=prompt.ref,
        )

    async def _look_up(self, message: str, run: Run) -> LookUp:
        """Return the wines or the passage that the rules of the fallback find for a message."""
        return await self._fallback.look_up(
            [*run.history, {"role": "user", "content": message}],
            person=person_in(run),
            language=current_language(),
            span=run.span,
        )

    async def _ask_model(
        self,
        message: str,
        run: Run,
        attachment: Attachment | None,
        prompt: Prompt,
        language_is_chosen: bool,
    ) -> Response:
        """Ask the run's models, with the data of the pictures or of the wines shown last."""
        tools = self._offered_tools(message, run, attachment)
        notice = self._concern_notice(run)
        lines = (
            research_rules([tool.name for tool in tools]),
            safety_rules(person_in(run)),
            NOTICE_RULE.format(notice=notice) if notice else "",
            LANGUAGE_RULE.format(language=translate("language_name")) if language_is_chosen else "",
        )
        rules = "\n".join(filter(None, lines))
        schema = SOMMELIER.output.schema_text
        return await generate_agentic_response(
            message,
            run=replace(
                run,
                instructions=render(prompt, research_rules=rules, schema=schema),
                history=[to_model_message(earlier) for earlier in run.history],
            ),
            contract=SOMMELIER,
            tools=Toolbox(tools),
            initial_calls=_initial_calls(message, run, attachment),
            progress=_progress,
        )

    def _offered_tools(self, message: str, run: Run, attachment: Attachment | None) -> list[Tool]:
        """Return the tools that are allowed and relevant in this turn: most need only a few."""
        person = person_in(run)
        user_texts = _user_texts(message, run)
        hidden = set[str]()  # not allowed, or of no use; the others are offered if relevant
        if attachment and attachment.is_new_list:
            hidden |= {"search_wines", "get_wine"}
        if not person.bottles:
            hidden.add("own_cellar")
        if not person.user_id:
            hidden |= MEMORY_TOOLS
        elif not any(fact.kind in STATED_KINDS for fact in person.facts):
            hidden.add("forget")
        offered = list[Tool](self._tools)
        if person.care.forbids_alcohol:
            hidden.add("find_places")
        else:  # results of MCP servers are not filtered for alcohol
            # Only a known user can confirm a call.
            server_tools = self._servers.tools
            offered += [
                tool for tool in server_tools if person.user_id or not tool.needs_confirmation
            ]
        always = {"change_cellar"} if person.bottles else set()
        tools = [
            tool
            for tool in offered
            if tool.name not in hidden
            and (tool.name in always or is_relevant(tool.name, user_texts))
        ]
        return [attachment.tool(self._catalogue), *tools] if attachment else tools

    def _care_with_concern(self, run: Run, response: Response | None) -> Care:
        """Return the person's care with the concern that the model reported added to it."""
        care = care_in(run)
        answer = response.answer if response else None
        # A small model names concerns at random.
        if answer is None or answer.concern == "none" or self._is_small:
            return care
        care_after = care.with_concern(answer.concern)
        if added := care_after.concerns - care.concerns:
            with run.span.child("guard.care", "guardrail") as guard:
                guard.update(output=sorted(added), metadata={"heard_by": "model"})
        return care_after

    async def _reply_to_response(
        self, message: str, run: Run, response: Response, attachment: Attachment | None
    ) -> Reply:
        """Convert a response to a reply; answer by rules if the model gave no usable answer."""
        answer = response.answer if response.has_text else None
        if answer and (allowed := allowed_part(answer, response.sources, person_in(run))):
            text = response.text
            if allowed != answer:
                text = SOMMELIER.render(allowed, Evidence(sources=dict(response.sources)))
            notice = self._concern_notice(run)  # also of a concern that the model reported
            return _reply_showing(response, allowed, f"{notice}\n\n{text}" if notice else text)
        if response.outcome == "stopped":
            return Reply(text=translate("stopped"), outcome="stopped")
        if response.outcome in {"refusal", "content_filter"}:
            return Reply(text=translate("declined"), outcome="refused")
        reply = await self._answer_by_rules(message, run, attachment)
        return replace(reply, notes=(translate("model_down"),), outcome="fallback")

    async def _answer_by_rules(
        self, message: str, run: Run, attachment: Attachment | None
    ) -> Reply:
        """Return the wines read from this message's pictures, else the answer of the fallback."""
        if attachment and attachment.is_new and attachment.wines:
            return await describe_pictures(attachment, self._catalogue, person_in(run))
        reply = reply_to(await self._look_up(message, run))
        care = care_in(run)
        if reply.wine_ids and (care.is_cautious or care.forbids_alcohol):
            return replace(reply, text=f"{self._help.notice_for(care)}\n\n{reply.text}")
        return reply

    def _concern_notice(self, run: Run) -> str:
        """Return the notice of a new concern, shown above an answer; empty if shown before."""
        care = care_in(run)
        if not care.new_concern:
            return ""
        notice = self._help.notice_for(care)
        was_shown = any(notice in answer for answer in _earlier_answers(run))
        return "" if was_shown else notice


def conversation_language(message: str, run: Run) -> str:
    """Return the language of a message, or of the messages before it if it is unclear."""
    language = current_language()
    for text in _user_texts(message, run):  # an unclear text keeps the language before it
        language = language_of(text, language)
    return language


def _initial_calls(message: str, run: Run, attachment: Attachment | None) -> tuple[ToolCall, ...]:
    """Return the tool calls to run before the first request, as if the model had made them."""
    shown = _last_shown_ids(run)
    # The calls look at the pictures of this message, or at the wines shown last; else they search.
    if attachment and (attachment.is_new or not shown):
        return (ToolCall("", READ_PICTURES, "{}"),)
    if shown and not care_in(run).forbids_alcohol:
        return (ToolCall("", "get_wine", json.dumps({"wine_ids": shown})),)
    if attachment or run.history:  # earlier messages may limit the search, by a price for example
        return ()
    query = unambiguous_query(message, current_language())
    if query is None:
        return ()
    filters = query.model_dump_json(exclude_defaults=True, exclude={"limit"})
    return (ToolCall("", "search_wines", filters),)


def _progress(calls: Sequence[ToolCall]) -> str:
    """Return a progress text of our own: the text beside the calls is not validated yet."""
    call = calls[0]
    is_search = call.name == "search_wines"
    search = describe_search(call.arguments, current_language()) if is_search else ""
    texts = (translate(PROGRESS.get(call.name, "at_work")), search)
    return f"_{': '.join(filter(None, texts))} …_"


def _reply_showing(response: Response, answer: SommelierResponse, text: str) -> Reply:
    """Return the reply that shows the allowed part of a response."""
    outcome: Outcome = "answered"
    if response.outcome in ("stopped", "salvaged"):
        outcome = response.outcome
    shown_ids, sources = wine_ids(answer), response.sources
    return Reply(
        text=text,
        outcome=outcome,
        notes=(translate("stopped_here"),) if outcome == "stopped" else (),
        wine_ids=tuple(catalogue_ids(shown_ids)),
        # Also wines that were read from pictures.
        wines=tuple(sources[wine_id] for wine_id in shown_ids if wine_id in sources),
        answer=answer,
    )


def _with_effects(reply: Reply, response: Response) -> Reply:
    """Return a reply with the changes and proposals that tools put among the sources.

    Changes are made even if the answer failed: the user has asked for them, and can undo them.
    Proposals are only shown below an answer, which explains them.
    """
    sources = response.sources.values()
    proposals = tuple(
        found for found in sources if response.has_text and isinstance(found, Proposal)
    )
    return replace(
        reply,
        notes=(*reply.notes, *map(_proposal_note, proposals)),
        proposals=proposals,
        changes=tuple(found for found in sources if isinstance(found, Change)),
    )


def _proposal_note(proposal: Proposal) -> str:
    """Return the note that shows the proposed tool call above its button."""
    return f"{translate('tool_proposed')}\n```\n{proposal.tool} {proposal.arguments}\n```"


def _user_texts(message: str, run: Run) -> list[str]:
    """Return the person's messages in this conversation, the current one last."""
    earlier = (str(sent["content"]) for sent in run.history if sent["role"] == "user")
    return [*earlier, message]


def _earlier_answers(run: Run) -> list[str]:
    """Return the earlier answers of this conversation."""
    return [str(sent["content"]) for sent in run.history if sent["role"] == "assistant"]


def _last_shown_ids(run: Run) -> tuple[str, ...]:
    """Return the ids of the wines in the last answer that shows any."""
    shown = map(ids_shown_in, reversed(_earlier_answers(run)))
    return next(filter(None, shown), ())[:MAX_SHOWN_WINES]
