"""Answer a message: safety first, then a model with tools, otherwise the rule-based fallback."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Protocol

from agent.documents.passages import SEARCH_DOCUMENTS
from agent.engine.contract import Evidence, Source
from agent.engine.errors import log_failure
from agent.engine.loop import Prefetch, generate_agentic_response
from agent.engine.run import Prompt, Run
from agent.engine.tools import Tool
from agent.i18n import (
    current_language,
    is_language_chosen,
    is_language_settled,
    translate,
    use_language,
)
from agent.mcp import McpServers
from agent.prompts import get_prompt, render
from agent.query_reading.request import is_clear_request, read_request
from agent.query_reading.turn_language import find_language
from agent.safety.concerns import read_conversation_safety
from agent.safety.help_texts import Help
from agent.safety.policy import SafetyAction, decide
from agent.safety.state import SafetyState
from agent.sommelier.answer import SOMMELIER, wine_ids
from agent.sommelier.attachment import (
    AnyWine,
    Attachment,
)
from agent.sommelier.filters import (
    get_safety_state,
    guest_rules,
)
from agent.sommelier.grounding import RememberedAllergies
from agent.sommelier.history import to_history
from agent.sommelier.inquiry import Inquiry, list_prefetched_calls
from agent.sommelier.model_reply import (
    Response,
    add_effects,
    allowed_part,
    find_unanswered,
    ids_in_catalogue,
    to_stored_json,
    with_outcome,
)
from agent.sommelier.named_wines import find_named_wines, with_wines
from agent.sommelier.picture_reply import describe_pictures
from agent.sommelier.queries import Catalogue
from agent.sommelier.rule_answer import RuleAnswer, RuleAnswerer
from agent.sommelier.safety_replies import add_line, safety_reply
from agent.sommelier.small import SMALL_PROMPT, ask_small_model
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.unknown_names import KnownNames
from agent.sommelier.wine import Wine
from agent.sommelier.wine_tools import wine_tools, wines_by_id
from agent.turn import (
    Lack,
    Person,
    Reply,
    StoredMessage,
    clean_and_flag,
    get_deps,
    get_person,
    has_stored_user,
    list_error_types,
    may_drink,
    with_person,
)
from agent.writing_calls import once_a_turn

LANGUAGE_RULE: Final = (
    "- The guest chose {language} as their language: answer in it, whatever "
    "language they write in."
)
"""The line of the prompt for a user who chose a language."""
NOTICE_RULE: Final = (
    '- A fixed notice is shown above your answer: "{notice}" Do not repeat what it says. Continue '
    "in its form of address."
)
"""The line of the prompt for a turn with a notice above the answer."""


class Answerer(Protocol):
    """The interface of the agent for message handlers."""

    async def answer(
        self,
        message: str,
        run: Run,
        attachment: Attachment | None = None,
        *,
        history: Sequence[StoredMessage] = (),
    ) -> Reply:
        """Answer `message` within the limits of `run`. `history` is the conversation before it."""


class Sommelier:
    """An agent that answers messages from a catalogue, by a model or by rules.

    `research_tools` are added to the tools of the catalogue. The `fallback` answers if there is no
    model, or if the models fail. `help_texts` are for people who should not drink. A small model
    (`uses_small_model`) writes only about wines that were searched for it (`small.py`). The tools
    of `servers` are only offered to people who may drink.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        fallback: RuleAnswerer,
        research_tools: Sequence[Tool] = (),
        help_texts: Help | None = None,
        uses_small_model: bool = False,
        servers: McpServers | None = None,
    ) -> None:
        self._tools = [*wine_tools(catalogue), *research_tools]
        self._servers = servers or McpServers()
        tool_names = [tool.name for tool in research_tools]
        self._can_search_documents = SEARCH_DOCUMENTS in tool_names
        self._is_small = uses_small_model
        self._catalogue = catalogue
        self._fallback = fallback
        self._help = help_texts or Help()

    async def answer(
        self,
        message: str,
        run: Run,
        attachment: Attachment | None = None,
        *,
        history: Sequence[StoredMessage] = (),
    ) -> Reply:
        """Answer `message` with the current prompt.

        If the run has no person, the user's concerns are read from the conversation. If the message
        has a wine list, only its wines are recommended. If the message is empty, the reply lists
        what was read from the pictures, without a model.
        """
        earlier = [stored for stored in history if stored.content.strip()]
        inquiry = Inquiry(message, earlier, attachment)
        person = get_deps(run).person
        if person is None:
            return await self._answer_stranger(inquiry, run)
        return await self._answer_person(inquiry, run, person)

    async def _answer_stranger(self, inquiry: Inquiry, run: Run) -> Reply:
        """Answer a user whose concerns are read from the conversation, as the policy says."""
        safety = read_conversation_safety(inquiry.user_texts, self._help.drinking_age)
        asks_for_wine = is_clear_request(inquiry.message, current_language())
        action = decide(safety, asks_for_wine=asks_for_wine)
        if action is not SafetyAction.ANSWER:  # no model reads the message
            return safety_reply(action, safety, self._help)
        reply = await self._answer_person(inquiry, run, Person(safety))
        return add_line(reply, safety, self._help)

    async def _answer_person(
        self,
        inquiry: Inquiry,
        run: Run,
        person: Person,
    ) -> Reply:
        """Answer with the wines that `person` may be shown."""
        attachment = inquiry.attachment
        has_new_list = attachment is not None and attachment.is_new_list
        deps = replace(
            get_deps(run),
            person=person,
            ids_given_to_model=set(),  # tools fill it
            answers_from_list=has_new_list,
        )
        run = replace(run, deps=deps)
        message = clean_and_flag(inquiry.message, run.span)
        inquiry = replace(inquiry, message=message)
        if is_language_settled():
            return await self._reply_in_language(inquiry, run)
        language = find_language(inquiry.user_texts, current_language())
        with use_language(language):
            return await self._reply_in_language(inquiry, run)

    async def _reply_in_language(self, inquiry: Inquiry, run: Run) -> Reply:
        """Reply in the current language. Notes say which parts of new pictures were not read."""
        safety = get_safety_state(run)
        if safety.is_under_age:
            return safety_reply(SafetyAction.REFUSAL, safety, self._help)
        pictures = inquiry.new_attachment
        if pictures is None:
            return await self._generate_reply(inquiry, run)
        if inquiry.message:
            reply = await self._generate_reply(inquiry, run)
        else:
            reply = await describe_pictures(pictures, self._catalogue, get_person(run))
        return replace(reply, notes=reply.notes + pictures.notes)

    async def _generate_reply(self, inquiry: Inquiry, run: Run) -> Reply:
        """Ask a model and convert its response to a reply, or answer by rules."""
        run = run.with_deadline()
        prompt_name = "sommelier"
        if self._is_small:
            prompt_name = SMALL_PROMPT
        prompt = get_prompt(run, prompt_name)
        response = None
        if run.models:
            response = await self._ask_model(inquiry, run, prompt)
        if response is not None:
            return await self._reply_to_response(inquiry, run, prompt, response)
        reply = await self._reply_without_model(inquiry, run)
        # Only the first message gets the note, and not if it just says thanks.
        if run.models or inquiry.history:
            return reply
        if read_request(inquiry.message).is_thanks:
            return reply
        return replace(reply, notes=(translate("no_model"),))

    async def _reply_to_response(
        self,
        inquiry: Inquiry,
        run: Run,
        prompt: Prompt,
        response: Response,
    ) -> Reply:
        """Convert a model's response to a reply, after acting on a concern that it reports."""
        person = get_person(run)
        before = person.safety
        safety = self._hear_concern(inquiry, run, response)
        run = with_person(run, replace(person, safety=safety))
        may_see_wine = not safety.is_crisis and not safety.is_under_age
        has_heard_more = safety != before and may_see_wine
        if has_heard_more and self._concern_notice(inquiry, run):
            response = await self._ask_with_notice(inquiry, run, prompt, response)
            safety = self._hear_concern(inquiry, run, response)
        if safety.is_crisis:
            # The model detected the crisis. A message that states one is not given to a model. In
            # a crisis the user gets no answer, and nothing is changed or proposed.
            reply = safety_reply(SafetyAction.CRISIS_HELP, safety, self._help)
        elif safety.is_under_age:
            refusal = safety_reply(SafetyAction.REFUSAL, safety, self._help)
            # As an answer it has the button that confirms what the model has detected.
            reply = replace(refusal, outcome="refused")
        else:
            reply = await self._convert_response(inquiry, run, response)
        return replace(
            reply,
            concerns=safety.turn_concerns - before.turn_concerns,
            retries=response.retry_count,
            error_types=list_error_types(response),
            prompt=prompt.ref,
        )

    def _hear_concern(
        self,
        inquiry: Inquiry,
        run: Run,
        response: Response,
    ) -> SafetyState:
        """Return the safety of the user, with the concern that the model reports, if any."""
        safety = get_person(run).safety
        # Small models report concerns at random.
        if self._is_small or response.answer is None:
            return safety
        concern = response.answer.concern
        if concern == "none":
            return safety
        safety_with_concern = safety.with_concern(concern)
        if safety_with_concern != safety:
            message = inquiry.message
            with run.span.child("guard.concerns", "guardrail", input=message) as guard:
                guard.update(output=[concern], metadata={"detected_by": "model"})
        return safety_with_concern

    async def _ask_with_notice(
        self,
        inquiry: Inquiry,
        run: Run,
        prompt: Prompt,
        first: Response,
    ) -> Response:
        """Ask again, because a notice will now be shown above the answer.

        The notice is about a concern that only the first response has reported, so the model did
        not know of the notice when it wrote that response. If the second response has no text, the
        first is returned. The effects of both are kept.
        """
        # The second request begins without the results of the first.
        deps = replace(get_deps(run), ids_given_to_model=set())
        run = replace(run, deps=deps)
        second = await self._ask_model(inquiry, run, prompt)
        if second is None or not second.has_text:
            return first
        effects = list(first.effects)
        for effect in second.effects:
            if effect not in effects:
                effects.append(effect)
        return replace(
            second,
            effects=tuple(effects),
            retry_count=first.retry_count + second.retry_count,
            error_types=first.error_types + second.error_types,
        )

    async def _ask_model(
        self,
        inquiry: Inquiry,
        run: Run,
        prompt: Prompt,
    ) -> Response | None:
        """Return the response of a model, or None if the rules should answer.

        Only a small model leaves an answer to the rules.
        """
        if self._is_small:
            if inquiry.new_attachment:
                return None
            by_rules = await self._answer_by_rules(inquiry, run)
            return await ask_small_model(inquiry.message, run, by_rules)
        tools = self._list_tools(run, inquiry.attachment)
        prefetch = await self._prefetch(inquiry, run)
        run = replace(
            run,
            instructions=self._write_instructions(inquiry, run, prompt, tools),
            history=to_history(inquiry.history),
        )
        return await generate_agentic_response(
            inquiry.message,
            run=run,
            contract=SOMMELIER,
            tools=tools,
            prefetch=prefetch,
        )

    async def _prefetch(self, inquiry: Inquiry, run: Run) -> Prefetch:
        """Return the tool calls to run before the first request, and what is known without them."""
        calls = await list_prefetched_calls(
            inquiry,
            run,
            self._catalogue,
            can_search_documents=self._can_search_documents,
        )
        return Prefetch(calls, await self._list_known_sources(run))

    async def _list_known_sources(self, run: Run) -> dict[str, Source]:
        """Return the names that an answer may say without a tool, and the guest's allergies."""
        person = get_person(run)
        catalogue_names = await self._catalogue.load_names()
        facts = [f"{fact.value} {fact.original_text}" for fact in person.facts]
        bottles = [str(item.wine) for item in person.bottles]
        names = KnownNames(catalogue_names, [*facts, *bottles])
        allergies = RememberedAllergies(person.safety.allergies, facts)
        return {"names": names, "allergies": allergies}

    def _write_instructions(
        self,
        inquiry: Inquiry,
        run: Run,
        prompt: Prompt,
        tools: Sequence[Tool],
    ) -> Prompt:
        """Return the system prompt with its rules about tools, the guest, and a notice if any."""
        tool_rules: list[str] = []
        for tool in tools:
            if tool.prompt_line and tool.is_offered(run):
                tool_rules.append(f"- {tool.prompt_line}")
        return render(
            prompt,
            tool_rules="\n".join(tool_rules),
            schema=SOMMELIER.output.schema_text,
            guest_rules=self._rules_for_guest(inquiry, run),
        )

    def _rules_for_guest(self, inquiry: Inquiry, run: Run) -> str:
        """Return the lines of the prompt about the guest, the notice that they see, and language.

        They differ from turn to turn. So they come last, because servers cache what precedes them.
        """
        lines = [guest_rules(get_person(run))]
        notice = self._concern_notice(inquiry, run)
        if notice:
            lines.append(NOTICE_RULE.format(notice=notice))
        if is_language_chosen():
            language = translate("language_name")
            lines.append(LANGUAGE_RULE.format(language=language))
        return "\n".join(lines)

    def _list_tools(self, run: Run, attachment: Attachment | None) -> list[Tool]:
        """Return all tools. Each of them says whether it is offered in this turn.

        Tools that most turns share come first, because servers cache the beginning of a request.
        """
        tools = [*self._tools, *self._list_server_tools(run)]
        if attachment is not None:
            tools.append(attachment.make_tool(self._catalogue))
        return tools

    def _list_server_tools(self, run: Run) -> list[Tool]:
        """Return the tools of MCP servers that the user may use.

        They are only for users who may drink, because their results are not filtered for alcohol.
        """
        if not self._servers.connections or not may_drink(run):
            return []
        calls = get_deps(run).writing_calls
        tools: list[Tool] = []
        for tool in self._servers.tools:
            if tool.needs_confirmation:
                # Its calls are only proposed. Only a stored user can confirm them.
                if has_stored_user(run):
                    tools.append(tool)
            elif tool.may_write:
                tools.append(once_a_turn(tool, calls))
            else:
                tools.append(tool)
        return tools

    async def _convert_response(
        self,
        inquiry: Inquiry,
        run: Run,
        response: Response,
    ) -> Reply:
        """Convert a response to a reply, or answer by rules if there is no usable answer in it.

        Changes are made even if the answer failed: the user requested them, and can undo them.
        """
        answer = allowed_part(response, get_person(run))
        if answer is not None:
            reply = await self._format_answer(inquiry, run, response, answer)
        elif response.outcome == "stopped":
            reply = Reply(text=translate("stopped"), outcome="stopped")
        elif response.outcome in {"refusal", "content_filter"}:
            reply = Reply(text=translate("declined"), outcome="refused")
        else:
            reply = await self._reply_without_model(inquiry, run)
            note = translate("model_down")
            reply = replace(reply, notes=(note,), outcome="fallback")
        return add_effects(reply, response)

    async def _format_answer(
        self,
        inquiry: Inquiry,
        run: Run,
        response: Response,
        answer: SommelierResponse,
    ) -> Reply:
        """Return a reply with an answer of a model, and with the wines that its prose names.

        `answer` is the part of the response that the user may be shown.
        """
        named_wines = await self._find_named_wines(answer, response, run)
        answer = with_wines(answer, named_wines)
        sources = {**response.sources, **wines_by_id(named_wines)}
        evidence = Evidence(sources, inquiry.user_texts)
        text = response.text
        if answer != response.answer:
            text = SOMMELIER.render(answer, evidence)
        notice = self._concern_notice(inquiry, run)
        if notice:
            text = f"{notice}\n\n{text}"
        shown = [sources[id] for id in wine_ids(answer)]
        wines = [wine for wine in shown if isinstance(wine, AnyWine)]
        reply = Reply(
            text=text,
            wine_ids=ids_in_catalogue(wines),
            wines=tuple(wines),
            structured_answer=answer,
            stored_answer=to_stored_json(answer, wines),
            lack=find_unanswered(answer, evidence),
        )
        return with_outcome(reply, response)

    async def _find_named_wines(
        self,
        answer: SommelierResponse,
        response: Response,
        run: Run,
    ) -> list[Wine]:
        """Return the wines that an answer names without their ids.

        If the catalogue cannot be read just now, return none: the answer is shown all the same.
        """
        sources = response.sources.values()
        known = [source for source in sources if isinstance(source, AnyWine)]
        person = get_person(run)
        try:
            return await find_named_wines(answer, known, self._catalogue, person)
        except Exception as error:
            log_failure("The wines named in an answer could not be looked up", error)
            return []

    async def _reply_without_model(self, inquiry: Inquiry, run: Run) -> Reply:
        """Return the wines read from this message's pictures, or the answer of the fallback."""
        pictures = inquiry.new_attachment
        if pictures and pictures.wines:
            return await describe_pictures(pictures, self._catalogue, get_person(run))
        by_rules = await self._answer_by_rules(inquiry, run)
        reply = by_rules.reply
        if reply.wines:
            stored_answer = to_stored_json(reply.structured_answer, reply.wines)
            reply = replace(reply, stored_answer=stored_answer)
        notice = self._help.write_notice(get_safety_state(run))
        is_about_wines = bool(reply.wine_ids) or reply.lack is Lack.WINES
        if is_about_wines and notice:
            return replace(reply, text=f"{notice}\n\n{reply.text}")
        return reply

    async def _answer_by_rules(self, inquiry: Inquiry, run: Run) -> RuleAnswer:
        now = datetime.now(UTC)
        message = StoredMessage("user", inquiry.message, created_at=now)
        messages = [*inquiry.history, message]
        return await self._fallback.answer(
            messages, person=get_person(run), span=run.span
        )

    def _concern_notice(self, inquiry: Inquiry, run: Run) -> str:
        """Return the notice of a new concern, or "" if there is none or it was shown before.

        The message, an earlier one or the model has stated the concern.
        """
        safety = get_safety_state(run)
        if not safety.new_concern:
            return ""
        notice = self._help.write_notice(safety)
        for text in inquiry.texts_by("assistant"):
            if notice in text:
                return ""
        return notice
