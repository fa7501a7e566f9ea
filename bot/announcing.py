"""Send the broadcasts of admins. One process does, the leader."""

from typing import Final

from agent.i18n import translate, use_language
from bot.outgoing import Destination
from bot.telegram.conversation import Conversation
from bot.telegram.sender import messages_of
from bot.telegram.settings import spoken_by

AT_ONCE: Final = 20
"""Messages that are read from the database at once."""


async def send_broadcasts(talk: Conversation) -> None:
    """Send what waits of broadcasts; tell admins of those that are over."""
    broadcasts, has_sent = talk.repositories.broadcasts, False
    while messages := await broadcasts.unsent(AT_ONCE):
        await talk.sender.deliver(messages)
        has_sent = True
    for broadcast, count, failed in await broadcasts.delivered():
        admin = broadcast.created_by
        with use_language(await spoken_by(talk, admin)):
            text = translate("broadcast_done", count=count, failed=failed)
            report = await messages_of(Destination(admin), text)
        await broadcasts.finish(broadcast.id, report)
    if has_sent:
        await broadcasts.clear()
