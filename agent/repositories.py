"""What is kept of turns, people and chats, and where: `db` fulfils these protocols.

Budgets, statistics and the way from a message back to its trace are made of the records.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from math import ceil
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from agent.engine.limits import NOTHING_SPENT, Spent
from agent.engine.span import Level, ScoreType, TraceRecord
from agent.turn import Bottles, Change, Fact

T = TypeVar("T")

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a conversation as it is remembered: text, and the wines it recommended.

    `turn_id` says of which turn, `user_id` whose turn that was, where that is kept; `thread_id` is
    the topic of the chat, 0 without topics. `attachment` is what was read from its pictures, as
    JSON.
    """

    role: Role
    content: str
    wine_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    turn_id: int | None = None
    thread_id: int = 0
    user_id: int | None = None
    attachment: str = ""


Verdict = Literal["liked", "disliked"]
FeedbackReason = Literal["wrong_wine", "not_what_i_asked", "wrong_facts", "tone"]
Access = Literal["allowed", "blocked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """One turn that has ended; `turn_id` is the id of its update.

    Money is US dollars, times are seconds.
    """

    turn_id: int
    chat_id: int
    user_id: int
    at: datetime
    outcome: str
    seconds: float = 0.0
    requests: int = 0
    retries: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    error_types: tuple[str, ...] = ()
    trace_id: str | None = None
    root_id: str | None = None


@dataclass(frozen=True, slots=True)
class Spending:
    """What was used since a moment, and how many further turns are under way.

    `turns` are those of everyone that asked a model, so that it can be told what one takes.
    """

    by_person: Spent = NOTHING_SPENT
    by_everyone: Spent = NOTHING_SPENT
    turns: int = 0
    persons_under_way: int = 0
    under_way: int = 0


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person thinks of a turn's answer; no `verdict`: they took it back.

    `answered_at` is when the turn ended: a verdict is about that moment, however often it changes.
    """

    turn_id: int
    verdict: Verdict | None
    reason: FeedbackReason | None = None
    comment: str = ""
    trace_id: str | None = None
    root_id: str | None = None
    answered_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScore:
    """A score of a trace as it is sent; one without a value was taken back."""

    score_id: str
    trace_id: str
    observation_id: str
    name: str
    value: float | str | None
    kind: ScoreType
    comment: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DayStats:
    """What happened on one day (UTC), or on several counted together from `day` on."""

    day: date
    people: int = 0
    turns: int = 0
    retried: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    liked: int = 0
    disliked: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    median_seconds: float = 0.0
    p95_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stats:
    """What happened on some days, oldest first, and on `all` of them together."""

    days: tuple[DayStats, ...]
    all: DayStats

    @property
    def today(self) -> DayStats:
        """The last of the days."""
        return self.days[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """What a list of traces shows of one; `session` and `user` are keyed hashes."""

    trace_id: str
    started_at: datetime
    ended_at: datetime
    session: str
    user: str
    question: str
    outcome: str
    level: Level
    retry_count: int
    cost_usd: float
    tokens: int
    error_types: tuple[str, ...] = ()
    name: str = "chat"
    tags: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """How long the turn took."""
        return (self.ended_at - self.started_at).total_seconds()


class TracedStep(NamedTuple):
    """One span of a trace, in numbers; `model` is empty but for requests to one."""

    name: str
    model: str
    seconds: float
    cost_usd: float


class TracedTurn(NamedTuple):
    """What of a trace is counted; the first step is the turn itself."""

    at: datetime
    name: str
    error_types: tuple[str, ...]
    steps: tuple[TracedStep, ...]

    @property
    def seconds(self) -> float:
        """How long the turn took."""
        return self.steps[0].seconds


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Which traces are listed: all that is given holds of each. `level` is that or worse."""

    since: datetime | None = None
    level: Level | None = None
    name: str = ""
    outcome: str = ""
    session: str = ""
    user: str = ""
    tags: tuple[str, ...] = ()
    disliked: bool = False


@dataclass(frozen=True, slots=True)
class ChatState:
    """Where messages for a chat go: `chat_id` after any migration, unless it is unreachable."""

    chat_id: int
    unreachable: str | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Updates that are accepted and not done: how many, and how long the oldest has waited."""

    waiting: int = 0
    oldest_seconds: float = 0.0


Payload = Mapping[str, Any]
"""An update as Telegram delivered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedUpdate:
    """An update as it arrives; `edits` is the message whose new form it brings.

    Those of a `lane` are answered one after the other.
    """

    update_id: int
    chat_id: int
    lane: str
    payload: Payload
    message_id: int | None = None
    edits: int | None = None


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """What is kept of a turn: what it came to, what was said in it, its trace, what it changes.

    Of what is no turn of its own, a press say, there is no record.
    """

    record: TurnRecord | None
    said: tuple[StoredMessage, ...] = ()
    trace: TraceRecord | None = None
    changes: tuple[Change, ...] = ()


class TurnTaken(BaseException):
    """A turn was begun again by another process, so this one may record and send no more of it.

    No `Exception`, as a cancellation is none: only who runs turns is to know what to do about it.
    """


class TurnRepository(Protocol):
    """The turns that have ended."""

    async def record(
        self,
        turn: TurnRecord,
        said: Sequence[StoredMessage] = (),
        trace: TraceRecord | None = None,
        changes: Sequence[Change] = (),
    ) -> None:
        """Keep a turn, what was said, its trace, what it changes, once however often. Commits."""

    async def change(self, changes: Sequence[Change]) -> None:
        """Change what is kept of people. Commits."""

    async def get(self, turn_id: int) -> TurnRecord | None:
        """A turn, None if it is not known."""

    async def of_message(self, chat_id: int, message_id: int) -> TurnRecord | None:
        """The turn that a message of the bot answered."""

    async def last(self, chat_id: int) -> TurnRecord | None:
        """The turn of a chat that ended last; None if there is none."""

    async def may_be_lost(self, chat_id: int) -> bool:
        """Return whether a message of the chat's last answer may not have arrived."""

    async def begin(self, turn_id: int, user_id: int, at: datetime, since: datetime) -> Spending:
        """Note that a person's turn begins; what was used `since`, and what else is under way."""

    async def stats(self, since: datetime) -> Stats:
        """Every day (UTC) from that of `since` until today, and all of them together."""


class SendQueue(Protocol[T]):
    """Rows that wait to be sent; every method commits before it returns."""

    async def claim(self, limit: int, lease: timedelta) -> Sequence[T]:
        """Return the oldest rows that are due, which nobody else gets before the lease ends."""

    async def settle(self, items: Sequence[T], *, refused: bool = False) -> None:
        """Note that these arrived, or never will; a row that changed meanwhile is due again."""

    async def release(self, items: Sequence[T]) -> None:
        """Have these be due again."""


class FeedbackRepository(Protocol):
    """What people think of answers. Whoever speaks of an unknown turn gets None."""

    async def rate(self, turn_id: int, verdict: Verdict | None) -> Feedback | None:
        """Keep the verdict on a turn, or take it back.

        Reason and comment say what was disliked: a change of the verdict clears them.
        """

    async def reason(self, turn_id: int, reason: FeedbackReason) -> Feedback | None:
        """Keep what was wrong with a disliked turn; None if it is not disliked."""

    async def comment(self, turn_id: int, text: str) -> Feedback | None:
        """Keep what a person wrote about a disliked turn, cut; None if it is not disliked."""

    async def asked_about(self, chat_id: int, message_id: int) -> int | None:
        """The turn that a message asked about; None once the verdict was taken back."""

    async def get(self, turn_id: int) -> Feedback | None:
        """What is thought of a turn; None if nobody ever said."""


class PeopleRepository(Protocol):
    """Who writes to the bot, and who may."""

    async def seen(self, user_id: int, chat_id: int | None, at: datetime) -> None:
        """A person wrote; `chat_id` is their private chat if they wrote there."""

    async def access(self, user_id: int) -> Access | None:
        """Whether an admin allowed or blocked a person; None if neither."""

    async def decide(self, user_id: int, access: Access) -> None:
        """Let a person in or keep them out, also one who never wrote."""

    async def warned(self, user_id: int, day: date) -> bool:
        """Note that a person is warned of their budget; True the first time that day."""

    async def introduced(self, user_id: int, day: date) -> bool:
        """Note that admins are asked about a person; True the first time."""

    async def private_chats(self, *, only_allowed: bool = False) -> list[int]:
        """Where a broadcast goes: private chats of people who are not blocked, if reachable."""


class MessageRepository(Protocol):
    """The conversation of each chat, of each topic where there are topics, oldest first."""

    async def create(
        self,
        chat_id: int,
        role: Role,
        content: str,
        wine_ids: Sequence[str] = (),
        *,
        turn_id: int | None = None,
        thread_id: int = 0,
    ) -> None:
        """Remember one message, once per role and `turn_id` if given. Commits before it returns."""

    async def recent(
        self, chat_id: int, limit: int = 20, *, thread_id: int = 0
    ) -> list[StoredMessage]:
        """The newest `limit` messages of a conversation, oldest first."""

    async def forget(self, chat_id: int, *, thread_id: int = 0) -> int:
        """Delete a conversation; how many messages there were."""

    async def undo(self, chat_id: int, turn_id: int, *, thread_id: int = 0) -> bool:
        """Delete the messages of a conversation's last turn; False if `turn_id` is not its last."""


class ChatRepository(Protocol):
    """What was learned of chats while sending to them."""

    async def state(self, chat_id: int) -> ChatState:
        """Where messages for this chat go; an unknown chat is reachable as it is."""

    async def unreachable(self, chat_id: int, reason: str) -> None:
        """Remember that the bot was blocked there, or that the chat is gone."""

    async def reachable(self, chat_id: int) -> None:
        """Forget that: somebody wrote from there."""

    async def migrated(self, chat_id: int, to: int) -> None:
        """Remember that a group became a supergroup with another id; what was said goes along."""


class CareRepository(Protocol):
    """What people told of themselves in a chat that wine is offered by: `agent.care.concerns`."""

    async def held(self, chat_id: int | None, user_id: int) -> frozenset[str]:
        """What a person told in a chat, or in any if none is named, and still holds."""

    async def keep(self, chat_id: int, user_id: int, told: Mapping[str, datetime | None]) -> None:
        """Remember what a person told, each until a moment or for good. Commits."""

    async def forget(self, chat_id: int, *, but: Collection[str] = ()) -> None:
        """Forget what was told in a chat, save what is `but`. Commits."""

    async def clear(self, user_id: int) -> list[str]:
        """Forget all that a person told, in every chat; return what it was, sorted. Commits."""

    async def forget_expired(self) -> int:
        """Delete what holds no more; how many there were."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A person to be forgotten wherever traces of them are, told of before `at`.

    `user` is their hash there, `tries` how often that was done already.
    """

    user: str
    at: datetime
    tries: int = 0


class DeletionRepository(Protocol):
    """Who is to be forgotten wherever traces of them are; every method commits."""

    async def due(self) -> Sequence[Deletion]:
        """Those that are to be tried now."""

    async def sweep(self, deletion: Deletion) -> int:
        """Delete what was kept of turns that were under way then; how many rows that were."""

    async def scrub(self) -> None:
        """Leave nothing of what is deleted in the files of the database."""

    async def again(self, deletion: Deletion, seconds: float) -> None:
        """Have it be done once more after so many seconds."""

    async def settled(self, deletion: Deletion) -> None:
        """Note that nothing is left to be done."""


class MemoryRepository(Protocol):
    """What people told of themselves and own; it changes with the end of a turn alone."""

    async def facts(self, user_id: int) -> Sequence[Fact]:
        """What a person told, and what their verdicts say, the oldest first."""

    async def undoable(self, user_id: int, undo_id: int) -> Change | None:
        """Return a change of a person's that can be undone; None if it is gone, or not theirs."""

    async def bottles(self, user_id: int) -> Sequence[Bottles]:
        """The wines that a person owns, or did; those that changed last are the last."""

    async def owners(self, without: Collection[str]) -> Sequence[int]:
        """Those who own bottles, and have none of these settings."""
