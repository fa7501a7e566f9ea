"""Sends what no turn sends: broadcasts of admins, and reminders. One process does, the leader."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

from agent.i18n import translate, use_language
from bot.outgoing import Destination
from bot.tasks import attempt
from bot.telegram.conversation import Conversation
from bot.telegram.sender import messages_of
from bot.telegram.settings import spoken_by

LOOK_SECONDS: Final = 2.0
AT_ONCE: Final = 20
"""Messages that are sent before it is looked whether the process is to stop."""


@dataclass(frozen=True, slots=True)
class Announcing:
    """Sends the messages of the outbox that belong to no turn."""

    talk: Conversation

    async def run(self, stopped: asyncio.Event) -> None:
        """Send what waits, until told to stop."""
        while not stopped.is_set():
            await attempt("sending to everyone", lambda: self.round(stopped))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await stopped.wait()

    async def round(self, stopped: asyncio.Event) -> None:
        """Send all that waits; tell admins of the broadcasts that are over."""
        broadcasts = self.talk.repositories.broadcasts
        has_sent = False
        while not stopped.is_set() and (messages := await broadcasts.unsent(AT_ONCE)):
            await self.talk.sender.deliver(messages)
            has_sent = True
        for broadcast, count, failed in await broadcasts.delivered():
            admin = broadcast.created_by
            with use_language(await spoken_by(self.talk, admin)):
                words = translate("broadcast_done", count=count, failed=failed)
                notice = await messages_of(Destination(admin), words)
            await broadcasts.finish(broadcast.id, notice)
        if has_sent:
            await broadcasts.clear()
