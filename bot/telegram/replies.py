"""Make the messages of a reply: its text or its parts, the buttons below it, and its audio."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from agent.turn import Reply, with_notes
from bot.outgoing import Destination, Outgoing, Rows
from bot.telegram.sender import message_to, messages_of
from db.models import OutboxRow

AUDIO_FILE: Final = "answer.ogg"
Show = Callable[[Any], Sequence[Outgoing]]
"""Returns the messages that show a reply's `answer`."""


async def reply_messages(
    reply: Reply, to: Destination, *, buttons: Rows = (), show: Show | None = None
) -> list[OutboxRow]:
    """Return the messages of a reply; `buttons` are below the last one of its text."""
    *others, last = _outgoing(reply, show)
    last = Outgoing(last.markdown, last.buttons + buttons)
    messages = list[OutboxRow]()
    for outgoing in (*others, last):
        destination = to.next if messages else to
        for message in await messages_of(destination, outgoing.markdown, outgoing.buttons):
            message.follows = bool(messages)
            messages.append(message)
    if reply.audio:
        messages.append(message_to(to.next, kind="voice", file_name=AUDIO_FILE, file=reply.audio))
    return messages


def _outgoing(reply: Reply, show: Show | None) -> list[Outgoing]:
    """Return what a reply says, its notes below the last message."""
    if show is None or reply.answer is None:
        return [Outgoing(reply.shown)]
    *others, last = show(reply.answer)
    return [*others, Outgoing(with_notes(last.markdown, reply.notes), last.buttons)]
