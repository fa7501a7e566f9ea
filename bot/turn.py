"""Run turns: read the user's data, answer, commit, and trace every step."""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from agent.engine.run import Run, ShowDraft, Span
from agent.i18n import is_language_chosen, set_language, translate
from agent.language import detect_language
from agent.memory.tools import with_change_notes
from agent.safety.concerns import read_safety_state
from agent.tracing.records import TraceRecord
from agent.turn import (
    Person,
    Reply,
    ReplyFunction,
    answer_or_apologize,
    get_chosen_settings,
    get_deps,
    record_turn,
    with_person,
)
from bot.budgets import UNLIMITED, Budgets, RemainingBudget
from bot.metrics import Metrics
from bot.question import (
    Delivery,
    OpenRoot,
    Question,
    RunningTurns,
    build_ended_turn,
    current_turn,
    open_trace,
    trace_delivery,
)
from bot.safety import SafetyService
from bot.telegram.replies import Replies, build_turn_messages
from db.engine import BRIEF_TRIES, call_or_default
from db.models import OutboxRow
from db.repositories.turns import EndedTurn, TurnRepository

ProgressContext = AbstractAsyncContextManager[ShowDraft | None]
LOOKUP_KINDS: Final = frozenset({"ask", "quotes", "find", "rewrite"})
"""Kinds of turns that answer from documents or the web, or prepare such an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Answers questions, each in a turn of its own.

    The run of every turn is a copy of `base_run`. Without `replies` nothing is shown or sent.
    `store` saves turns not started by a Telegram update. The others are saved by their lane
    (`bot.updates.lanes`).
    """

    base_run: Run = field(default_factory=Run)
    safety: SafetyService = field(default_factory=SafetyService)
    budgets: Budgets | None = None
    open_trace_root: OpenRoot = TraceRecord.open_root
    metrics: Metrics = field(default_factory=Metrics)
    replies: Replies | None = None
    store: TurnRepository | None = None
    running: RunningTurns = field(default_factory=RunningTurns)

    async def run_turn(self, question: Question, make_reply: ReplyFunction) -> Reply:
        """Run one turn; return the reply of `make_reply`, or an apology if it fails.

        Errors outside `make_reply` are raised, so that the lane tries the turn again.
        """
        root = open_trace(self.open_trace_root, question)
        self.running.add(question)  # removed on delivery, or below after an error
        try:
            with root:
                question, reply = await self._answer(question, make_reply, root)
            messages = self.replies.messages(question, reply) if self.replies else []
        except BaseException as error:  # a cancellation included
            self.running.remove(question)
            await self._handle_abort(question, root, error)
            raise
        await self._hand_over_or_save(question, reply, messages, root)
        self.metrics.count_turn(reply.outcome, reply.seconds)
        return reply

    async def _answer(
        self, question: Question, make_reply: ReplyFunction, root: Span
    ) -> tuple[Question, Reply]:
        """Return the reply, and the question with the transcript of a voice message."""
        progress: ProgressContext = nullcontext()
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
                allowed = get_chosen_settings(person.facts).get("traces")
                root.trace.is_hidden = allowed == "numbers"  # only numbers, no texts
            run = with_person(run, person)
            is_look_up = question.kind in LOOKUP_KINDS
            guarded_make_reply = self.safety.guard(
                question.text, person, make_reply, is_look_up=is_look_up
            )
            reply = await answer_or_apologize(run, guarded_make_reply)
            return question, self._complete_reply(question, run, budget, person, reply)

    def _run_within(
        self, budget: RemainingBudget, question: Question, root: Span, show_draft: ShowDraft | None
    ) -> Run:
        """Return the run of the turn; without models if the budget is used up."""
        state = question.state
        run = replace(
            self.base_run.for_turn(spent_before=state.spent_before),
            span=root,
            limits=budget.apply_to(self.base_run.limits),
            show_draft=show_draft,
            stop=state.stop,
        )
        state.ledger = run.ledger
        if budget.is_used_up():  # drop the models for pictures and speech too
            run = replace(run, models=(), deps=replace(get_deps(run), models={}))
        return run

    async def _read_person(self, question: Question, root: Span) -> Person:
        """Return the user with their safety state and memory, read once for the turn."""
        user_id, chat_id = question.user_id, question.chat_id
        safety = await self.safety.find_state(question.text, chat_id, user_id, root)
        return await self.safety.read_person(chat_id, user_id, safety, question.state.facts)

    def _complete_reply(
        self, question: Question, run: Run, budget: RemainingBudget, person: Person, reply: Reply
    ) -> Reply:
        """Return the reply with its notes and usage, and record it in the trace."""
        spent = run.ledger.spent
        lacked_budget = self._lacked_budget(run, budget, reply)
        if lacked_budget:
            errors = ("budget", *reply.error_types)
            # The note about the budget replaces the notes of the rule-based answer.
            reply = replace(reply, outcome="fallback", notes=(), error_types=errors)
        # Only a chat can show the button that undoes a change; 0 means no button.
        undo_id = question.id if question.to is not None else 0
        reply = with_change_notes(reply, person, question.text, undo_id)
        notes = reply.notes
        if self.budgets is not None:
            notes += self.budgets.build_notes(budget, spent, lacked_budget=lacked_budget)
        reply = replace(reply, notes=notes, spent=spent, seconds=question.seconds)
        record_turn(run.span, reply)
        return reply

    def _lacked_budget(self, run: Run, budget: RemainingBudget, reply: Reply) -> bool:
        """Return whether the budget forced a rule-based answer although models are configured."""
        if not self.base_run.models or not budget.is_used_up(run.ledger.spent):
            return False
        # If the run has no models from the start, a rule-based answer has the outcome "answered".
        rule_based_outcomes = ("fallback",) if run.models else ("fallback", "answered")
        return reply.outcome in rule_based_outcomes

    async def _hand_over_or_save(
        self, question: Question, reply: Reply, messages: list[OutboxRow], root: Span
    ) -> None:
        """Hand the turn of an update over to its lane to store and send; save any other turn."""
        ended = build_ended_turn(question, reply, root)
        # From here the placeholder is the answer; do not edit it.
        question.state.placeholder_id = None

        def on_delivery(delivery: Delivery) -> None:
            self.running.remove(question)
            if delivery.tries:  # 0 if nothing was sent
                self.metrics.count_send(delivery.error)
                trace_delivery(root, delivery)

        current = current_turn()
        if current is not None:
            current.ended.append(ended)
            current.messages += messages
            current.on_delivery = on_delivery
        else:
            self.running.remove(question)
            await self._save(ended)

    async def _save(self, ended: EndedTurn) -> None:
        """Store a turn. If the database is unavailable, only log it: the answer is still sent."""
        if self.store is not None:
            save = partial(self.store.save, ended)
            await call_or_default(save, None, "A turn could not be stored", tries=BRIEF_TRIES)

    async def _handle_abort(self, question: Question, root: Span, error: BaseException) -> None:
        """Keep the trace of a turn that was cancelled or failed before it had a reply."""
        # If the turn is retried or restarted, it continues this trace.
        question.state.trace = root.trace
        if current_turn() is None:  # only turns of updates are retried
            reply = Reply(text="", outcome="failed", error_types=(type(error).__name__,))
            await self._save(build_ended_turn(replace(question, in_history=False), reply, root))

    async def give_up(self, question: Question, error: str) -> None:
        """End a turn that will not be tried again: notify the user, and trace the error."""
        question = replace(question, in_history=False)
        reply = Reply(text=translate("set_aside"), outcome="failed", error_types=(error,))
        with open_trace(self.open_trace_root, question) as root:
            metadata = {"outcome": "failed", "error_types": error}
            root.update(output=reply.text, level="ERROR", metadata=metadata)
            root.score("outcome", "failed", "CATEGORICAL")
        messages = build_turn_messages(question, [reply.text])
        await self._hand_over_or_save(question, reply, messages, root)

    async def offer_help(self, question: Question) -> Reply | None:
        """Reply with help if a message states a crisis or asks for numbers; else return None.

        This is for messages that get no other answer.
        """
        state = read_safety_state(question.text)
        if not (state.is_crisis or state.asks_for_numbers):
            return None

        async def unused_reply(run: Run) -> Reply:
            return Reply(text="")  # in a crisis `SafetyService.guard` answers instead

        return await self.run_turn(question, unused_reply)


async def _transcribe(question: Question, run: Run) -> Question:
    """Return a voice question with its transcript; return any other question unchanged.

    Set the spoken language for the answer, unless the user chose one.
    """
    if question.transcribe is None:
        return question
    question = replace(question, text=await question.transcribe(run))
    if not is_language_chosen() and (language := detect_language(question.text)):
        set_language(language)
    run.span.update(input=question.text)
    return question
