"""Running conversations through the real loop, variants side by side.

Each message is a turn with a trace of its own, in the session `eval:RUN`; answers are fed back as
history, as a guest would have them. What a conversation came to is handed on as soon as it is
known, so that a run that is broken off keeps what is done.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agent.engine import run as engine
from agent.engine.tools import where
from agent.evals.dataset import Conversation
from agent.evals.evaluators import Mark, Observed, marks
from agent.evals.traces import USER, Kept, give_score, model_error, session
from agent.repositories import StoredMessage, window
from agent.sommelier.service import Answerer, Reply
from agent.sommelier.wine import Catalogue, Wine
from agent.tracing.recorder import Recorder
from agent.tracing.records import TraceRecord, trace_id_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Variant:
    """What is compared: a label, and who answers with which models and prompts.

    The label names a model, a prompt or both.
    """

    label: str
    answerer: Answerer
    run: engine.Run = field(default_factory=engine.Run)


@dataclass(frozen=True, slots=True)
class Result:
    """One conversation by one variant. `traces` are its turns, the last one with its scores.

    `failure` is the type of an error that kept it from being answered, empty without one.
    """

    variant: str
    conversation: Conversation
    marks: dict[str, Mark]
    observed: Observed | None = None
    traces: tuple[TraceRecord, ...] = ()
    failure: str = ""

    @property
    def passed(self) -> bool:
        """Whether every metric that applies is at its best."""
        return not self.failure and all(mark.passed for mark in self.marks.values())


Done = Callable[[Result], Awaitable[None]]
"""Takes each result as soon as it is known."""


async def evaluate(
    variants: Sequence[Variant],
    conversations: Sequence[Conversation],
    *,
    run: str,
    catalogue: Catalogue,
    done: Done,
    concurrency: int = 4,
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """Have every variant answer every conversation, `concurrency` at a time, and mark the answers.

    A conversation that fails counts as failed and ends nothing. Raises only what `done` raises.
    """
    slots = asyncio.Semaphore(concurrency)
    examiner = _Examiner(run, catalogue, clock)

    async def one(variant: Variant, conversation: Conversation) -> None:
        async with slots:
            await done(await examiner.examine(variant, conversation))

    async with asyncio.TaskGroup() as tasks:
        for conversation in conversations:
            for variant in variants:
                tasks.create_task(one(variant, conversation))


@dataclass(frozen=True, slots=True)
class _Examiner:
    run: str
    catalogue: Catalogue
    clock: Callable[[], float]

    async def examine(self, variant: Variant, conversation: Conversation) -> Result:
        dialogue = _Dialogue(self, variant, conversation)
        observed: Observed | None
        try:
            await dialogue.hold()
            observed, failure = await dialogue.observed(), ""
        except Exception as error:
            name = type(error).__name__
            log.error("conversation %s failed: %s %s", conversation.id, name, where(error))  # noqa: TRY400
            observed, failure = None, name
        failed = {"validity": Mark(0, f"failed: {failure}")}
        given = marks(observed, conversation) if observed else failed
        traces = dialogue.kept.traces
        for metric, mark in given.items() if traces else ():
            give_score(traces[-1], metric, mark.score, mark.reason)
        if observed:
            give_score(traces[-1], "seconds", sum(observed.seconds) / len(observed.seconds))
            give_score(traces[-1], "cost_usd", observed.cost_usd)
        return Result(variant.label, conversation, given, observed, tuple(traces), failure)


@dataclass(slots=True)
class _Dialogue:
    """One conversation while it is held."""

    examiner: _Examiner
    variant: Variant
    conversation: Conversation
    replies: list[Reply] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)

    async def hold(self) -> None:
        """Say every message, each after the answer to the one before."""
        history = [said.stored for said in self.conversation.history]
        for number, message in enumerate(self.conversation.messages):
            reply = await self.turn(number, message, history)
            self.replies.append(reply)
            history += [
                StoredMessage("user", message),
                StoredMessage("assistant", reply.text, reply.wine_ids),
            ]

    async def turn(self, number: int, message: str, history: Sequence[StoredMessage]) -> Reply:
        """One message, traced under an id that is the same when a run of this name is repeated."""
        run, label = self.examiner.run, self.variant.label
        opened = Recorder(self.kept).turn(
            input=message,
            session=session(run),
            user=USER,
            trace_id=trace_id_of("eval", run, label, self.conversation.id, number),
        )
        with opened as span:
            span.update(metadata={"conversation": self.conversation.id, "variant": label})
            started = self.examiner.clock()
            asked = self.variant.run.turn(span=span, history=window(history))
            reply = await self.variant.answerer.answer(message, run=asked)
            self.seconds.append(self.examiner.clock() - started)
        return reply

    async def observed(self) -> Observed:
        """What came of it, with the wines as the catalogue has them."""
        last = self.replies[-1]
        wines = await self.wines(last.wine_ids)
        earlier = [said.wine_ids for said in self.conversation.history if said.role == "assistant"]
        earlier += [reply.wine_ids for reply in self.replies[:-1]]
        known = {wine.id for wine in wines}
        return Observed(
            texts=tuple(reply.text for reply in self.replies),
            outcome=last.outcome,
            answer=last.answer,
            wines=tuple(wines),
            unknown=tuple(wine_id for wine_id in last.wine_ids if wine_id not in known),
            previous=tuple(await self.wines(earlier[-1])) if earlier else (),
            shown_before=frozenset(wine_id for wine_ids in earlier for wine_id in wine_ids),
            error_types=last.error_types,
            model_error=model_error(self.kept.traces[-1])
            if "model_error" in last.error_types
            else "",
            retries=last.retries,
            requests=sum(reply.requests for reply in self.replies),
            seconds=tuple(self.seconds),
            tokens=sum(reply.tokens for reply in self.replies),
            cost_usd=sum(reply.cost_usd for reply in self.replies),
        )

    async def wines(self, wine_ids: Sequence[str]) -> list[Wine]:
        """The wines with these ids that exist."""
        return await self.examiner.catalogue.get(wine_ids) if wine_ids else []
