"""Run turns: read the user's data, answer the question, and trace every step."""

from dataclasses import dataclass, field, replace

from agent.engine.current_draft import CurrentDraft
from agent.engine.run import Run, Span
from agent.i18n import current_language, is_language_chosen, set_language, translate
from agent.memory.changes import add_change_notes
from agent.query_reading.turn_language import settle_language
from agent.safety.concerns import read_safety_state
from agent.safety.policy import SafetyAction
from agent.safety.state import SafetyState
from agent.tracing.records import TraceRecord
from agent.turn import (
    Person,
    Reply,
    ReplyFunction,
    answer_or_apologize,
    apply_change,
    get_deps,
    get_person,
    record_turn,
    with_person,
)
from bot.budgets import build_notes
from bot.metrics import Metrics
from bot.safety import SafetyService
from bot.turn import (
    Delivery,
    OpenRoot,
    Question,
    RunningTurns,
    Turn,
    hides_words,
    trace_delivery,
)
from db.budgets import UNLIMITED, DailyBudgets, RemainingBudget
from db.engine import BRIEF_TRIES, call_or_default
from db.repositories.commits import Commits


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Answers questions, each in a turn.

    The run of every turn is a copy of `base_run`. `commits` stores the turns that no update began.
    The others are committed by the life of their update (`bot.updates.life`).
    """

    base_run: Run = field(default_factory=Run)
    safety: SafetyService = field(default_factory=SafetyService)
    budgets: DailyBudgets | None = None
    open_trace_root: OpenRoot = TraceRecord.open_root
    metrics: Metrics = field(default_factory=Metrics)
    commits: Commits | None = None
    running: RunningTurns = field(default_factory=RunningTurns)

    async def run(
        self, turn: Turn, question: Question, make_reply: ReplyFunction
    ) -> Reply:
        """Answer a question by `make_reply`, and return the reply. The turn collects it.

        If `make_reply` fails, the reply is an apology. All other errors are raised, so that the
        update is tried again.
        """
        root = turn.open_trace(self.open_trace_root, question)
        # It is removed when the reply is delivered, or below after an error.
        self.running.add(turn)
        try:
            with root:
                question, reply = await self._answer(turn, question, make_reply, root)
            turn.end(question, reply, root.trace)
        except BaseException:
            # This is also done after a cancellation.
            self.running.remove(turn)
            # The next try of the update continues this trace.
            turn.earlier_trace = root.trace
            raise
        self._watch_delivery(turn, root)
        self.metrics.count_turn(reply.outcome, reply.seconds)
        return reply

    async def run_and_commit(
        self, turn: Turn, question: Question, make_reply: ReplyFunction
    ) -> Reply:
        """Answer a question that no update asks, and store the turn, even if it is cancelled.

        If the database is not available, that is only logged, and the answer is shown all the same.
        """
        await self._reserve(turn)
        try:
            return await self.run(turn, question, make_reply)
        except BaseException as error:
            self._record_abort(turn, question, error)
            raise
        finally:
            self.running.remove(turn)
            await self._save(turn)

    async def _reserve(self, turn: Turn) -> None:
        """Reserve what the turn may use. If the database is not available, it has no limit."""
        budgets = self.budgets
        if budgets is None:
            return

        async def reserve() -> RemainingBudget:
            return await budgets.reserve(turn.id, turn.user_id)

        problem = "Today's usage could not be read"
        turn.budget = await call_or_default(
            reserve, UNLIMITED, problem, tries=BRIEF_TRIES
        )

    async def _save(self, turn: Turn) -> None:
        """Commit a turn. If that keeps failing, only log it: the reply is shown all the same."""
        commits = self.commits
        if commits is None:
            return
        commit = turn.complete_commit()

        async def save() -> None:
            await commits.save(commit)

        problem = "A turn could not be stored"
        await call_or_default(save, None, problem, tries=BRIEF_TRIES)

    def _record_abort(
        self, turn: Turn, question: Question, error: BaseException
    ) -> None:
        """Collect the trace of a turn that was cancelled or failed before it had a reply."""
        reply = Reply(
            text="",
            outcome="failed",
            error_types=(type(error).__name__,),
            billed=turn.billed,
        )
        # A turn without an answer changes nothing.
        turn.commit.changes.clear()
        turn.end(question, reply, turn.earlier_trace, in_history=False)

    def give_up(self, turn: Turn, question: Question, error: str) -> None:
        """End a turn that is not tried again. Tell the user that, and trace the error."""
        reply = Reply(
            text=translate("set_aside"),
            outcome="failed",
            error_types=(error,),
            billed=turn.billed,
        )
        with turn.open_trace(self.open_trace_root, question) as root:
            metadata = {"outcome": "failed", "error_types": [error]}
            root.update(output=reply.text, level="ERROR", metadata=metadata)
            root.score("outcome", "failed", "CATEGORICAL")
        turn.end(question, reply, root.trace, in_history=False)
        self._watch_delivery(turn, root)

    async def offer_help(self, turn: Turn, question: Question) -> Reply | None:
        """Reply with help if a message is about a crisis, or asks for numbers to call.

        Return the reply, or None for any other message. This is for messages that no model answers.
        """
        state = read_safety_state(question.text)
        needs_help = state.is_crisis or state.asks_for_numbers
        if not needs_help:
            return None

        # The safety rules reply with help, and never call this.
        async def unused_reply(run: Run) -> Reply:
            return Reply(text="")

        return await self.run(turn, question, unused_reply)

    def _watch_delivery(self, turn: Turn, root: Span) -> None:
        """Trace and count the delivery of a turn when it is known. Then the turn runs no more."""

        def on_delivery(delivery: Delivery) -> None:
            self.running.remove(turn)
            was_sent = delivery.requests > 0
            if was_sent:
                self.metrics.count_send(delivery.error)
                trace_delivery(root, delivery)

        turn.on_delivery = on_delivery

    async def _answer(
        self,
        turn: Turn,
        question: Question,
        make_reply: ReplyFunction,
        root: Span,
    ) -> tuple[Question, Reply]:
        """Return the reply, and the question with the transcript of a voice message."""
        async with turn.show_progress() as draft:
            # Read once, because the turn may get another budget while it runs.
            budget = turn.budget
            run = self._run_within(budget, turn, root, draft)
            question = await _transcribe(question, run)
            person = await self._read_person(turn, question, root)
            run = with_person(run, person)

            async def make_safe_reply(run: Run) -> Reply:
                return await self.safety.make_safe_reply(
                    run, turn, question, person, make_reply
                )

            reply = await answer_or_apologize(run, make_safe_reply)
            if reply.safety_action is SafetyAction.CRISIS_HELP:
                # The state has no crisis yet if only the model has noticed it.
                self._remember_concerns(turn, person.safety.with_concern("crisis"))
            reply = self._with_notes(reply, turn, question, run, budget)
            reply = replace(reply, billed=run.usage.billed, seconds=turn.seconds)
            record_turn(run.span, reply)
            return question, reply

    def _with_notes(
        self,
        reply: Reply,
        turn: Turn,
        question: Question,
        run: Run,
        budget: RemainingBudget,
    ) -> Reply:
        """Return a reply with notes about its changes, and about a budget that is used up."""
        lacked_budget = self._lacked_budget(run, budget, reply)
        if lacked_budget:
            reply = _as_fallback_for_budget(reply)
        # Only a chat can show the button that undoes a change.
        undo_id = 0
        if turn.to is not None:
            undo_id = turn.id
        reply = add_change_notes(reply, get_person(run), question.text, undo_id)
        if self.budgets is None:
            return reply
        now = self.budgets.now()
        billed = run.usage.billed
        notes = build_notes(budget, billed, now, lacked_budget=lacked_budget)
        return replace(reply, notes=(*reply.notes, *notes))

    def _run_within(
        self,
        budget: RemainingBudget,
        turn: Turn,
        root: Span,
        draft: CurrentDraft | None,
    ) -> Run:
        """Return the run of the turn. The run has no models if the budget is used up."""
        run = replace(
            self.base_run.for_turn(billed_before=turn.billed_before),
            span=root,
            limits=budget.apply_to(self.base_run.limits),
            draft=draft,
            stop=turn.stop,
        )
        turn.usage = run.usage
        deps = replace(get_deps(run), writing_calls=turn.calls)
        models = run.models
        if budget.is_used_up():
            models = ()
            # These are the models for pictures and speech.
            deps = replace(deps, models={})
        return replace(run, models=models, deps=deps)

    async def _read_person(self, turn: Turn, question: Question, root: Span) -> Person:
        """Return the user with the safety state and the memory.

        The state and the memory are read once in a turn.
        """
        state = await self.safety.find_state(
            question.text, turn.chat_id, turn.user_id, root
        )
        if state.language and not is_language_chosen():
            # Help is shown in the language of the phrase that was noticed, so all the rest is too.
            set_language(state.language, is_settled=True)
        self._remember_concerns(turn, state)
        # With the id 0, no memory is read.
        owner_id = 0
        if turn.has_memory:
            owner_id = turn.user_id
        person = await self.safety.read_person(
            turn.chat_id, owner_id, state, turn.facts
        )
        if turn.taken_back_change is not None:
            person = apply_change(person, turn.taken_back_change.inverse)
        if root.trace is not None and turn.facts is None:
            # Outside Telegram, the facts were not read when the trace was opened.
            root.trace.is_hidden = hides_words(person.facts)
        return person

    def _remember_concerns(self, turn: Turn, state: SafetyState) -> None:
        """Store the concerns that are new in this turn. The turn collects them until its commit."""
        new_concerns = state.turn_concerns - state.earlier_concerns
        if new_concerns and turn.chat_id:
            change = self.safety.remember(turn.chat_id, turn.user_id, new_concerns)
            turn.change(change)

    def _lacked_budget(self, run: Run, budget: RemainingBudget, reply: Reply) -> bool:
        """Return whether rules gave the answer only because the budget is used up."""
        has_models = bool(self.base_run.models)
        if not has_models or not budget.is_used_up(run.usage.billed):
            return False
        if reply.outcome == "fallback":
            return True
        # If the budget was used up before the turn, the run has no models. Then a reply by rules
        # has this outcome.
        return not run.models and reply.outcome == "answered"


def _as_fallback_for_budget(reply: Reply) -> Reply:
    """Return a reply by rules, marked as one that was made because the budget is used up.

    The note about the budget replaces the notes of the reply.
    """
    errors = ("budget", *reply.error_types)
    return replace(reply, outcome="fallback", notes=(), error_types=errors)


async def _transcribe(question: Question, run: Run) -> Question:
    """Return a spoken question with its transcript. Return any other question unchanged.

    The answer will be in the language that was spoken, unless the user has chosen another one.
    """
    if question.transcribe is None:
        return question
    text = await question.transcribe(run)
    settle_language(text, current_language())
    run.span.update(input=text)
    return replace(question, text=text)
