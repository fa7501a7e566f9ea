"""The house sommelier as a model: the same interface and loop, rules instead of weights."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from agent import lengths
from agent.care.concerns import Care
from agent.engine.feedback import is_feedback
from agent.engine.messages import (
    LLM,
    Heard,
    LLMResponse,
    Message,
    OutputSchema,
    ToolCall,
    ToolSchema,
)
from agent.house_sommelier.acts import language_at_a_glance
from agent.house_sommelier.answer import answer_wines, not_understood
from agent.house_sommelier.dialogue import heard, read_state, unheard
from agent.house_sommelier.knowledge import (
    asked_of_library,
    compare,
    explain,
    inform,
    of_topics,
    said_before,
)
from agent.house_sommelier.lexicon import Glossary
from agent.house_sommelier.plan import bottles_for, sympathy
from agent.house_sommelier.reading import Change, read
from agent.house_sommelier.searching import LIBRARY, Wish, filters_of, first_calls, next_calls
from agent.house_sommelier.state import Conversation, State, ToolResult, read_conversation
from agent.house_sommelier.table import labels
from agent.house_sommelier.topics import fault_in
from agent.house_sommelier.wines import read_result, wine_listed
from agent.house_sommelier.wording import country_in_words, either, joined, say, search_in_words
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import ReadWine, Wine, WineQuery
from agent.text import Language

if TYPE_CHECKING:
    from agent.house_sommelier.meaning import MeaningIndex

MODEL_NAME: Final = "house-sommelier"
_ALIKE: Final = 60
"""From how many letters at its beginning on an answer is the one before."""
_TOLD: Final = frozenset(
    {"crisis", "dependence", "grapes", "histamine", "sulphites", "fining", "drunk", "service",
     "off_topic", "rude", "complaint", "photo", "taken", "hello", "machine", "thanks",
     "help", "which", "ask", "listening"}
)  # fmt: skip
"""Acts that a sentence answers."""
_CHOOSING: Final = frozenset({"search", "pick", "which", "like"})
_LIMITS: Final = frozenset(
    "min_price max_price currency without_allergens without_styles without_grapes "
    "without_countries without_regions".split()
)
_OFF_TOPIC: Final = frozenset({"off_topic", "rude"})
_KIND_WORDS: Final = frozenset({"ask", "hello", "off_topic"})
"""Acts that a word about what somebody goes through comes before."""


@dataclass(frozen=True, slots=True)
class HouseSommelier:
    """An `LLM` that answers by rules, from `messages` alone: no key, no network, no state.

    `care` is what is known of who asks; without it that is what the messages say. With `meaning`
    it understands more than the tables know, at a request to the embedding source.
    """

    care: Care | None = None
    model: str = MODEL_NAME
    base_url: str | None = None
    context_tokens: int | None = None
    meaning: "MeaningIndex | None" = None

    def caring(self, care: Care) -> "HouseSommelier":
        """Make the same for somebody of whom `care` is known."""
        return replace(self, care=care)

    def language_of(self, messages: Sequence[Message]) -> Language:
        """The language of a conversation; where nothing tells, the one that is spoken."""
        return read_state(read_conversation(messages))[0].language

    def language_at_a_glance(self, said: Sequence[str]) -> Language:
        """The language of what a person said, in a twentieth of the time."""
        return language_at_a_glance(said)

    def country_name(self, country: str, language: Language) -> str:
        """What `language` calls a country; its English name if nothing else is known."""
        return country_in_words(country, language)

    def search_in_words(self, arguments: str, language: Language) -> str:
        """What a call searches wines for, in `language`; empty if that is not known."""
        try:
            return search_in_words(WineQuery.model_validate_json(arguments), language)
        except ValidationError:
            return ""

    def limits_in(self, messages: Sequence[Message]) -> WineQuery:
        """What a conversation rules out: prices, and what is to be left out."""
        state, _ = read_state(read_conversation(messages), self.care)
        asked = filters_of(replace(state.wishes, dishes=()), state)
        return WineQuery.model_validate({name: asked[name] for name in _LIMITS & asked.keys()})

    def wants_wines(self, message: str) -> bool:
        """Whether a message by itself wants wines to be chosen."""
        state = heard(State(), read(message))
        return state.act in _CHOOSING or bool(state.wishes.said)

    def wine_listed(self, read: ReadWine) -> Wine | None:
        """What a wine of a list is; None if its line does not tell."""
        return wine_listed(read)

    async def generate_with_tools(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        output: OutputSchema | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        heard: Heard | None = None,
    ) -> LLMResponse:
        """Call a tool for the last request, or answer it with what the tools returned.

        Never raises. The answer is the JSON of a `SommelierResponse`, whatever `output`,
        `max_tokens` and `temperature` say; usage is zero.
        """
        conversation = read_conversation(messages)
        glossary = await self._glossary(conversation)
        offered = frozenset(tool.name for tool in tools)
        reply = respond(conversation, offered, self.care, glossary)
        if isinstance(reply, SommelierResponse):
            return LLMResponse(content=reply.model_dump_json(), model=MODEL_NAME)
        calls = tuple(
            ToolCall(
                f"house-{len(messages)}-{number}",
                wish.tool,
                json.dumps(wish.arguments, ensure_ascii=False),
            )
            for number, wish in enumerate(reply)
        )
        return LLMResponse(tool_calls=calls, finish_reason="tool_calls", model=MODEL_NAME)

    async def _glossary(self, conversation: Conversation) -> Glossary:
        """What words mean that no table knows; while a turn goes on, as it was when it began."""
        if self.meaning is None:
            return ()
        texts, language = unheard(conversation, self.care)
        may_ask = not conversation.results
        return await self.meaning.glossary(texts, language, may_ask=may_ask)


def respond(
    conversation: Conversation,
    offered: frozenset[str],
    care: Care | None = None,
    glossary: Glossary = (),
) -> tuple[Wish, ...] | SommelierResponse:
    """The tools to call, all of those `offered`, or the answer."""
    state, change = read_state(conversation, care, glossary)
    if conversation.results:
        return _after(state, change, conversation)
    match state.act:
        case "quantity":
            return inform(bottles_for(state, change))
        case "compare":
            return compare(state, change)
        case act if act in _TOLD:
            return _spoken(state, change)
    calls = _calls(state, change)
    is_offered = all(call.tool in offered for call in calls)
    if not is_offered and state.act == "knowledge":
        return _explained(state, change, conversation, "")
    return calls if is_offered else inform(say("error", state.language))


def _calls(state: State, change: Change) -> tuple[Wish, ...]:
    if state.act == "knowledge":
        return (Wish(LIBRARY, {"query": asked_of_library(state, change)}),)
    return first_calls(state, change)


def _spoken(state: State, change: Change) -> SommelierResponse:
    """An answer that needs no tool; it owns up to words that were not understood."""
    kind = "off_topic" if state.act in _OFF_TOPIC else "informational"
    faults = fault_in(change.topics) if state.act == "complaint" else ()
    if faults:
        sorry = f"{say('sorry', state.language)} {of_topics(faults, state.language)}"
        return inform(sorry, say("complaint_fault", state.language))
    comfort = sympathy(change, state.language) if state.act in _KIND_WORDS else ""
    unclear = not_understood(change, state.language) if state.act == "ask" and not comfort else ""
    table = either(labels(state), state.language)
    if state.act == "ask" and table and not unclear:
        return inform(say("which_of", state.language, names=table))
    is_sober = state.act == "dependence" and change.has("recovering")
    told = say("recovering" if is_sober else state.act, state.language)
    return SommelierResponse(response_type=kind, intro=joined(comfort, unclear, told))


def _after(
    state: State, change: Change, conversation: Conversation
) -> tuple[Wish, ...] | SommelierResponse:
    """The answer from the tool results of a turn, or what to look up besides."""
    results: Sequence[ToolResult] = conversation.results
    if results[-1].tool == LIBRARY:
        return _explained(state, change, conversation, results[-1].content)
    found = [read for result in results if (read := read_result(result)) is not None]
    if not found:
        return inform(say("error", state.language))
    return next_calls(state, change, found) or answer_wines(state, change, found)


def _explained(
    state: State, change: Change, conversation: Conversation, content: str
) -> SommelierResponse:
    """The answer to a question; what was said right before is not said again."""
    answer = explain(state, change, content)
    said = conversation.before[-1].reply if conversation.before else ""
    is_said = bool(state.subjects) and answer.intro[:_ALIKE] in said
    return said_before(state, change) if is_said else answer


def query_for(text: str) -> WineQuery:
    """What one message asks of the catalogue, as a search; its words where nothing else is told."""
    change = replace(read(text), kind="search")
    state = replace(heard(State(), change), act="search")
    query = WineQuery.model_validate(first_calls(state, change)[0].arguments)
    says_nothing = query == WineQuery(limit=query.limit)
    return query.model_copy(update={"text": text[: lengths.READ_NAME]}) if says_nothing else query


LOOKED_UP: Final = "This was looked up for you; it is data, and all that you may recommend from:"


@dataclass(frozen=True, slots=True)
class WithoutTools:
    """An `LLM` for a server or model that knows no tools.

    The house sommelier reads what a person wants and calls the tools, at no cost; `llm` answers
    from what they returned, in one request, or from what the house knows without any.
    """

    llm: LLM
    meaning: "MeaningIndex | None" = None

    def __getattr__(self, name: str) -> Any:
        """What else is asked of a model, `llm` tells: its name, whether it streams …."""
        return getattr(self.llm, name)

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self.llm.model

    @property
    def base_url(self) -> str | None:
        """The address of its server."""
        return self.llm.base_url

    @property
    def context_tokens(self) -> int | None:
        """How many tokens it takes in."""
        return self.llm.context_tokens

    async def generate_with_tools(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), **asked: Any
    ) -> LLMResponse:
        """Have the tools called for a new question, else ask the model. Raises what `llm` does."""
        last = messages[-1]
        is_new = last.get("role") == "user" and not is_feedback(str(last.get("content")))
        if tools and is_new:
            planned = await HouseSommelier(meaning=self.meaning).generate_with_tools(
                messages, tools
            )
            if planned.tool_calls:
                return planned
            known: Message = {"role": "tool", "content": json.loads(planned.content)["intro"]}
            messages = [*messages, known]
        return await self.llm.generate_with_tools(handed_over(messages), **asked)


def handed_over(messages: Sequence[Message]) -> list[Message]:
    """Make messages in which what tools returned stands below the question, and no call does."""
    plain: list[Message] = []
    for message in messages:
        if message.get("tool_calls"):
            continue
        if message.get("role") == "tool" and plain:
            asked = plain[-1]
            told = "" if LOOKED_UP in str(asked["content"]) else f"\n\n{LOOKED_UP}"
            plain[-1] = asked | {"content": f"{asked['content']}{told}\n{message['content']}"}
        else:
            plain.append(message)
    return plain
