"""A talk: its messages, its state, and what a reply told of the wines it showed. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agent.care.concerns import Concern
from agent.engine.feedback import is_feedback
from agent.engine.messages import Message
from agent.house_sommelier.acts import Context
from agent.house_sommelier.data import Act
from agent.house_sommelier.lexicon import scan, tokens
from agent.house_sommelier.reading import NO_CHANGE, NO_WISHES, Change, Slot, Wishes
from agent.i18n import spoken
from agent.markdown import plain
from agent.sommelier.wine import Currency
from agent.text import LANGUAGES, Language, pattern

GRAVE: Final[tuple[Act, ...]] = ("crisis", "dependence", "grapes")
"""They end the talk of wine, in later messages as well."""
_PRICES: Final = pattern(r"([€$£]|[A-Z]{3} )([0-9]{1,6}(?:\.[0-9]{1,2})?)")
_COUNT: Final = pattern(r"(?m)(?:\A|[ \n])([0-9]{1,3}) × [€$£A-Z]")
_SIGNS: Final = {"€": Currency.EUR, "$": Currency.USD, "£": Currency.GBP}
_WINE_IDS: Final = pattern(r"\[wine ids: ([^\]\n]*)\]")


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier message of the person, and the reply with the wines it showed, in order."""

    request: str
    reply: str = ""
    wine_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one tool call of this turn was and returned."""

    tool: str
    arguments: str
    content: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the person asks now, what was said before, and what the tools returned since."""

    request: str
    before: tuple[Exchange, ...] = ()
    results: tuple[ToolResult, ...] = ()


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """The conversation in `messages`; feedback to a model is nobody's request."""
    asked = [at for at, message in enumerate(messages) if _is_request(message)]
    if not asked:
        return Conversation(request="")
    before = [_exchange(messages[start:end]) for start, end in pairwise(asked)]
    now = messages[asked[-1] :]
    return Conversation(text_of(now[0]), tuple(before), tuple(_results(now)))


def text_of(message: Message) -> str:
    """The text of a message, whose content may be a string, a list of parts, or missing."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part["text"]) for part in parts if isinstance(part, Mapping) and "text" in part
    )


def _is_request(message: Message) -> bool:
    return message.get("role") == "user" and not is_feedback(text_of(message))


def _exchange(messages: Sequence[Message]) -> Exchange:
    replies = [text_of(message) for message in messages if message.get("role") == "assistant"]
    reply = replies[-1] if replies else ""
    listed = _WINE_IDS.search(reply)
    ids = (part.strip() for part in (listed[1] if listed else "").split(","))
    return Exchange(text_of(messages[0]), reply, tuple(part for part in ids if part))


def _results(messages: Sequence[Message]) -> list[ToolResult]:
    calls = {str(call["id"]): call["function"] for message in messages for call in _calls(message)}
    return [
        _result(calls.get(str(message.get("tool_call_id")), {}), text_of(message))
        for message in messages
        if message.get("role") == "tool"
    ]


def _result(call: Mapping[str, object], content: str) -> ToolResult:
    return ToolResult(str(call.get("name", "")), str(call.get("arguments", "")), content)


def _calls(message: Message) -> Sequence[Mapping[str, Mapping[str, object]]]:
    return message.get("tool_calls") or ()


def _of_person() -> Language:
    """The language that is spoken, as far as there are words in it; else English."""
    return next((each for each in LANGUAGES if each == spoken()), "en")


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a conversation.

    `wishes` are what the next search is for, `denied` what no wine may be or have, `shown` the
    wines of the last reply, `choice` those of the last reply that showed several, `first` the very
    first, `seen` and `refused` those of the whole talk, `told` what the choice's reply said of each
    wine, `focus` the one that the last reply was about, `pointed` those that the message means,
    `about` those it asks about, `names` the grapes and places of the last prose, `favoured` which
    of them came out, `topic` the wishes of a question of knowledge, `subjects` the topics it is of,
    `asked` its words, `concerned` the persons named where `care` was.
    """

    act: Act = "ask"
    act_before: Act = "ask"
    context: Context = "start"
    wishes: Wishes = NO_WISHES
    denied: frozenset[tuple[str, str]] = frozenset()
    allergens: tuple[str, ...] = ()
    care: Concern | None = None
    is_minor: bool = False
    """Whether who writes told that they are under age."""
    concerned: frozenset[str] = frozenset()
    reacts: frozenset[str] = frozenset()
    language: Language = field(default_factory=_of_person)
    shown: tuple[str, ...] = ()
    choice: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)
    focus: tuple[str, ...] = ()
    pointed: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    asked_of: Change = NO_CHANGE
    """What was asked of wines last."""
    favoured: str = ""
    topic: Wishes = NO_WISHES
    subjects: tuple[str, ...] = ()
    asked: str = ""
    swapped: tuple[str, ...] = ()
    """What of the choice is to be replaced, while the rest stays."""
    slots: tuple[Slot, ...] = ()
    """The parts of a plan that want a wine each; without any it is one, of the wishes alone."""
    bottles: int | None = None
    """How many are wanted in all."""
    budget: float | None = None
    """What all of them may cost."""
    keeps: bool = False
    """Whether a plan is changed, and its wines stay as far as they fit."""
    is_special: bool = False
    """Whether it is a present or a day to remember, and may cost more."""
    is_below: bool = False
    """Whether the price limit is only what "cheaper" made of the prices shown."""
    instead: Wishes | None = None
    """What is looked for in place of what is replaced."""
    guests: int | None = None
    sober: float | None = None
    hours: float | None = None
    glasses: float | None = None
    evenings: int = 1
    occasion: str = ""
    count: int | None = None
    is_new: bool = False
    insisted: frozenset[str] = frozenset()
    turns: int = 0

    @property
    def called(self) -> Mapping[str, str]:
        """The name of each wine of the choice, as the reply gave it."""
        names = {wine_id: said.partition("**")[0] for wine_id, said in self.told.items()}
        return {wine_id: plain(name).strip() for wine_id, name in names.items()}

    @property
    def prices(self) -> Mapping[str, tuple[float, Currency]]:
        """The price of each wine of the choice, as far as the reply tells it."""
        return {wine_id: found for wine_id, said in self.told.items() if (found := _price(said))}

    @property
    def counts(self) -> Mapping[str, int]:
        """How many bottles of each wine of the choice the reply was for."""
        found = {wine_id: _COUNT.search(said) for wine_id, said in self.told.items()}
        return {wine_id: int(each[1]) if each else 1 for wine_id, each in found.items()}


def _price(text: str) -> tuple[float, Currency] | None:
    for found in _PRICES.finditer(text):
        code = _SIGNS.get(found[1]) or found[1].strip()
        if code in tuple(Currency):
            return float(found[2]), Currency(code)
    return None


def about_itself(told: str) -> str:
    """What a reply says a wine is, without its notes: place, kind, grapes."""
    name, _, rest = told.partition("**")
    place, _, description = rest.strip().partition("\n")
    # "5 × €6 = €30. Red, full-bodied": what several bottles cost stands first.
    is_itself = next((each for each in description.split(". ") if " × " not in each), "")
    return f"{name} / {place.partition(' · ')[0]} / {is_itself}"


def style_of(state: State, wine_id: str) -> tuple[str, ...]:
    """The colour or style of a wine of the choice, as the reply told it; empty if it did not."""
    told = concepts(about_itself(state.told.get(wine_id, "")))
    kinds = [value for name in ("styles", "hue") for field, value in told if field == name]
    return tuple(kinds[:1])


@lru_cache(512)
def concepts(text: str) -> frozenset[tuple[str, str]]:
    """What a reply's words about a wine say, in whatever language they are."""
    spans = scan(tokens(text), None)
    return frozenset(
        (each.field, value) for s in spans for each in s.meanings for value in each.values
    )
