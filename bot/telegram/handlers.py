"""Every handler beside the conversation itself, in the order in which they are asked."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from agent.desk import ResearchDesk
from agent.tracing.langfuse.client import TraceLinks
from agent.tracing.masking import mask
from bot.admin.broadcast import BroadcastCommand
from bot.admin.commands import AdminCommands
from bot.memory import Memory
from bot.telegram.conversation import AnyHandler, TelegramBot
from bot.telegram.feedback import FeedbackButtons
from bot.telegram.research_commands import ResearchCommands


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What the further handlers need: who is an admin, where traces are, what is looked up in.

    `judged` is called when somebody said what they think of an answer, `hide` makes of their words
    what may be kept.
    """

    memory: Memory
    desk: ResearchDesk
    admin_ids: frozenset[int] = frozenset()
    links: TraceLinks | None = None
    allow_list: bool = False
    judged: Callable[[], None] = lambda: None
    hide: Callable[[str, Collection[str]], str] = mask


def further_handlers(bot: TelegramBot, extras: Extras) -> list[AnyHandler]:
    """What to pass to `bot.register`; those of research are last, they take any button."""
    replies, memory = bot.replies, extras.memory
    admin = AdminCommands(
        replies=replies,
        people=memory.people,
        turns=memory.turns,
        admin_ids=extras.admin_ids,
        links=extras.links,
        trace_of=memory.traces.get,
    )
    broadcast = BroadcastCommand(
        replies=replies,
        people=memory.people,
        broadcasts=memory.broadcasts,
        admin_ids=extras.admin_ids,
        only_allowed=extras.allow_list,
    )
    feedback = FeedbackButtons(bot, memory.feedback, memory.turns, extras.judged, extras.hide)
    return [
        *admin.handlers(),
        *broadcast.handlers(),
        *feedback.handlers(),
        *ResearchCommands(replies, extras.desk).handlers(),
    ]
