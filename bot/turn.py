"""The life of a turn: begin, read the user's data, answer, commit, send, and trace all that."""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from agent.care import read_safety_state
from agent.engine.run import Run, ShowDraft, Span
from agent.i18n import is_language_chosen, set_language, translate
from agent.language import detect_language
from agent.memory.tools import with_change_notes
from agent.tracing.records import TraceRecord
from agent.turn import (
    AnswerFunction,
    Person,
    Reply,
    answer_or_apologize,
    get_chosen_settings,
    get_deps,
    record_turn,
    with_person,
)
from bot.budgets import UNLIMITED, Budgets, RemainingBudget
from bot.care import SafetyService
from bot.metrics import Metrics
from bot.question import (
    Delivery,
    OpenRoot,
    Question,
    RunningTurns,
    current_turn,
    ended_turn,
    open_trace,
    trace_delivery,
)
from bot.telegram.replies import Replies, build_turn_messages
from db.engine import BRIEF_TRIES, call_or_default
from db.models import OutboxRow
from db.repositories.turns import EndedTurn, TurnRepository

Progress = AbstractAsyncContextManager[ShowDraft | None]
LOOKUP_KINDS: Final = frozenset({"ask", "quotes", "find", "rewrite"})
"""Kinds of turns that answer, or help to answer, from documents or the web."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Answers questions, each in a turn of its own.

    The run of every turn is made from `base_run`. Without `replies` nothing is shown or sent.
    `store` saves turns that did not come from an update; those of an update are saved by its lane
    (`bot.updates.lanes`).
    """

    base_run: Run = field(default_factory=Run)
    safety: SafetyService = field(default_factory=SafetyService)
    budgets: Budgets | None = None
    open_root: OpenRoot = TraceRecord.open_root
    metrics: Metrics = field(default_factory=Metrics)
    replies: Replies | None = None
    store: TurnRepository | None = None
    running: RunningTurns = field(default_factory=RunningTurns)

    async def run_turn(self, question: Question, work: AnswerFunction) -> Reply:
        """Run one turn and return the reply that `work` makes, or an apology if `work` fails.

        Other errors than those of `work` are raised: the lane then tries the turn again.
        """
        root = open_trace(self.open_root, question)
        self.running.add(question)  # until `on_delivery`, or an error
        try:
            with root:
                question, reply = await self._answer(question, work, root)
            messages = self.replies.messages(question, reply) if self.replies else []
        except BaseException as error:
            self.running.remove(question)
            await self._handle_abort(question, root, error)
            raise
        await self._commit(question, reply, messages, root)
        self.metrics.count_turn(reply.outcome, reply.seconds)
        return reply

    async def _answer(
        self, question: Question, work: AnswerFunction, root: Span
    ) -> tuple[Question, Reply]:
        """Return the question (transcribed if it was a voice message) and the reply."""
        progress: Progress = nullcontext()
        if self.replies is not None and question.to is not None:
            progress = self.replies.show_progress(question)
        async with progress as show_draft:
            budget = (
                await self.budgets.read_remaining(question.user_id) if self.budgets else UNLIMITED
            )
            run = self._run_within(budget, question, root, show_draft)
            question = await _transcribe(question, run)
            person = await self._read_person(question, root)
            if root.trace is not None:
                chosen = get_chosen_settings(person.facts)
                root.trace.is_hidden = chosen.get("traces") == "numbers"  # and no texts
            run = with_person(run, person)
            is_look_up = question.kind in LOOKUP_KINDS
            work = self.safety.guard(person, work, is_look_up=is_look_up)
            reply = await answer_or_apologize(run, work)
            return question, self._complete_reply(question, run, budget, person, reply)

    def _run_within(
        self, budget: RemainingBudget, question: Question, root: Span, show_draft: ShowDraft | None
    ) -> Run:
        """Return the run of the turn, with no model if its budget is used up."""
        state = question.state
        run = replace(
            self.base_run.for_turn(spent_before=state.spent_before),
            span=root,
            limits=budget.apply_to(self.base_run.limits),
            show_draft=show_draft,
            stop=state.stop,
        )
        state.ledger = run.ledger
        if budget.is_used_up():  # not even the models for pictures and speech are asked
            run = replace(run, models=(), deps=replace(get_deps(run), models={}))
        return run

    async def _read_person(self, question: Question, root: Span) -> Person:
        """Read the user's safety state and memory, once for the turn."""
        user_id, chat_id = question.user_id, question.chat_id
        safety = await self.safety.find_state(question.text, chat_id, user_id, root)
        return await self.safety.read_person(chat_id, user_id, safety, question.state.facts)

    def _complete_reply(
        self, question: Question, run: Run, budget: RemainingBudget, person: Person, reply: Reply
    ) -> Reply:
        """Return the reply as it is sent, stored and traced: with its notes and its usage."""
        spent = run.ledger.spent
        lacked_budget = self._lacked_budget(run, budget, reply)
        if lacked_budget:
            errors = ("budget", *reply.error_types)
            # The note about the budget replaces those of the answer by rules.
            reply = replace(reply, outcome="fallback", notes=(), error_types=errors)
        # Only a chat shows the button that undoes a change; 0 stands for no button.
        undo_id = question.id if question.to is not None else 0
        reply = with_change_notes(reply, person, question.text, undo_id)
        notes = reply.notes
        if self.budgets is not None:
            notes += self.budgets.build_notes(budget, spent, lacked_budget=lacked_budget)
        reply = replace(reply, notes=notes, spent=spent, seconds=question.seconds)
        record_turn(run.span, reply)
        return reply

    def _lacked_budget(self, run: Run, budget: RemainingBudget, reply: Reply) -> bool:
        """Return whether the budgets forced an answer by rules, though there are models."""
        if not self.base_run.models or not budget.is_used_up(run.ledger.spent):
            return False
        # A run without models from the start counts its answer by rules as answered.
        return reply.outcome == "fallback" or (reply.outcome == "answered" and not run.models)

    async def _commit(
        self, question: Question, reply: Reply, messages: list[OutboxRow], root: Span
    ) -> None:
        """Store a turn; if an update began it, its lane does so, and sends the messages."""
        ended = ended_turn(question, reply, root)
        # The answer replaces the progress message: forget its id, so that no later try edits it.
        question.state.placeholder_id = None

        def on_delivery(delivery: Delivery) -> None:
            self.running.remove(question)
            if delivery.tries:
                self.metrics.count_send(delivery.error)
                trace_delivery(root, delivery)

        if (current := current_turn()) is not None:
            current.ended.append(ended)
            current.messages += messages
            current.on_delivery = on_delivery
        else:
            self.running.remove(question)
            await self._save(ended)

    async def _save(self, ended: EndedTurn) -> None:
        """Store a turn; if the database is unavailable, log it: the answer is still given."""
        if self.store is not None:
            save = partial(self.store.save, ended)
            await call_or_default(save, None, "A turn could not be stored", tries=BRIEF_TRIES)

    async def _handle_abort(self, question: Question, root: Span, error: BaseException) -> None:
        """Keep the trace of a turn that was cancelled or failed before its reply was made."""
        # If the turn is tried again, after a failure or with a later update, this trace continues.
        question.state.trace = root.trace
        if current_turn() is None:
            # No update began the turn, so this is its end.
            reply = Reply(text="", outcome="failed", error_types=(type(error).__name__,))
            await self._save(ended_turn(replace(question, in_history=False), reply, root))

    async def give_up(self, question: Question, error: str) -> None:
        """End a turn that failed for good: tell the user, and record it in the trace."""
        question = replace(question, in_history=False)
        reply = Reply(text=translate("set_aside"), outcome="failed", error_types=(error,))
        with open_trace(self.open_root, question) as root:
            metadata = {"outcome": "failed", "error_types": error}
            root.update(output=reply.text, level="ERROR", metadata=metadata)
            root.score("outcome", "failed", "CATEGORICAL")
        messages = build_turn_messages(question, [reply.text])
        await self._commit(question, reply, messages, root)

    async def offer_help(self, question: Question) -> Reply | None:
        """Offer help if a message that the bot would not answer states a crisis; else None."""

        async def no_work(run: Run) -> Reply:
            return Reply(text="")  # not called: in a crisis `SafetyService.guard` answers instead

        if not read_safety_state(question.text).is_crisis:
            return None
        return await self.run_turn(question, no_work)


async def _transcribe(question: Question, run: Run) -> Question:
    """Return a voice question with its transcript; any other question is returned as it is.

    Answer in the language that was spoken, unless the user chose one.
    """
    if question.transcribe is None:
        return question
    question = replace(question, text=await question.transcribe(run))
    if not is_language_chosen() and (language := detect_language(question.text)):
        set_language(language)
    run.span.update(input=question.text)
    return question
