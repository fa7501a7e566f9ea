"""`python -m benchmarks.real_model`: let the configured model answer real conversations.

The conversations of `real_model.jsonl`, or of the file that is named, are answered one after the
other by the model of the settings, from the starter wines. Prints a line for each turn, with what
was answered, and a table of what the turns took. docs/local-models.md shows one.

A message is a text, or `{"text": …, "picture": …}` with the lines of a picture to be drawn.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from pydantic import SecretStr

from agent.engine.run import Run
from agent.mcp import McpServers
from agent.safety.concerns import read_conversation_safety
from agent.senses.pictures import read_pictures
from agent.senses.sent_files import to_data_url
from agent.turn import (
    Person,
    Reply,
    StoredMessage,
    answer_turn,
    apply_change,
    with_person,
)
from benchmarks.pictures import sketched
from bot.resources import Resources, open_resources, sommelier_of
from bot.telegram.chat import attachment_in
from config import Settings, load_settings

CONVERSATIONS: Final = Path(__file__).with_suffix(".jsonl")
BY_THE_MODEL: Final = frozenset({"answered", "salvaged"})


@dataclass(frozen=True, slots=True)
class Turn:
    """One message, the reply to it, and what the turn took."""

    language: str
    message: str
    reply: Reply
    requests: int
    tokens: int
    seconds: float

    @property
    def is_by_the_model(self) -> bool:
        """Tell whether the model's words were shown."""
        return self.requests > 0 and self.reply.outcome in BY_THE_MODEL


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation, with the lines of a picture if it has one."""

    text: str
    picture: tuple[str, ...] = ()

    async def answer(
        self, run: Run, resources: Resources, history: list[StoredMessage]
    ) -> Reply:
        """Return the reply to the message, as the chat makes it."""
        attached, read = attachment_in(history), ""
        if self.picture:
            attached = await read_pictures(
                [self._shown], run, resources.repositories.wines
            )
            read = attached.model_dump_json()
        reply = await sommelier_of(resources, McpServers()).answer(
            self.text, run, attached, history=history
        )
        return replace(reply, attachment=read)

    async def _shown(self) -> str:
        return to_data_url(sketched(self.picture))


def message_of(written: str | dict[str, Any]) -> Message:
    """Return a message of the file."""
    if isinstance(written, str):
        return Message(written)
    return Message(written["text"], tuple(written["picture"]))


async def turns_of(
    settings: Settings, conversations: Sequence[str]
) -> AsyncIterator[Turn]:
    """Yield the turns of conversations, each a line of JSON with `language` and `messages`."""
    async with open_resources(settings) as resources:
        for line in conversations:
            conversation, history = json.loads(line), list[StoredMessage]()
            guest = Person(user_id=1)
            for message in map(message_of, conversation["messages"]):
                said = [each.content for each in history if each.role == "user"]
                safety = read_conversation_safety([*said, message.text])
                guest = replace(guest, safety=safety)
                run = with_person(resources.run.for_turn(), guest)
                began = time.monotonic()
                answer = partial(message.answer, resources=resources, history=history)
                reply = await answer_turn(run, answer)
                spent = run.usage.billed
                seconds = time.monotonic() - began
                language = conversation["language"]
                for change in reply.changes:
                    guest = apply_change(guest, change)
                asked = " ".join(
                    filter(None, (message.text, "(picture)" * bool(message.picture)))
                )
                yield Turn(
                    language, asked, reply, spent.requests, spent.tokens, seconds
                )
                history += [
                    StoredMessage("user", message.text, attachment=reply.attachment),
                    StoredMessage(
                        "assistant",
                        reply.text,
                        reply.wine_ids,
                        answer=reply.stored_answer,
                    ),
                ]


def show(number: int, turn: Turn) -> None:
    """Print a turn and its answer."""
    errors = ", ".join(turn.reply.error_types) or "-"
    print(
        f"\n## {number}. [{turn.language}] {turn.message}\n"
        f"{turn.reply.outcome}{'' if turn.is_by_the_model else ' (not by the model)'}, "
        f"{turn.requests} requests, {turn.seconds:.0f} s, {turn.tokens} tokens, errors: {errors}, "
        f"wines: {len(turn.reply.wine_ids)}\n\n{turn.reply.full_text}",
        flush=True,
    )


def summarize(turns: Sequence[Turn]) -> None:
    """Print a row for each language and one for all."""
    print(
        "\n| | turns | by the model | with wines | requests | seconds | tokens | errors |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for language in (*dict.fromkeys(turn.language for turn in turns), ""):
        chosen = [turn for turn in turns if language in ("", turn.language)]
        errors = Counter(error for turn in chosen for error in turn.reply.error_types)
        print(
            f"| {language or 'all'} | {len(chosen)} "
            f"| {sum(turn.is_by_the_model for turn in chosen)} "
            f"| {sum(bool(turn.reply.wine_ids) for turn in chosen)} "
            f"| {sum(turn.requests for turn in chosen) / len(chosen):.1f} "
            f"| {median(turn.seconds for turn in chosen):.0f} "
            f"| {median(turn.tokens for turn in chosen):.0f} "
            f"| {', '.join(f'{name} {count}' for name, count in errors.items()) or '-'} |"
        )


async def main(conversations: Sequence[str]) -> None:
    """Answer all conversations in a database of their own."""
    settings = load_settings()
    if not settings.server:
        sys.exit(
            "There is no model: set OPENAI_API_KEY, or OPENAI_BASE_URL and LLM_MODEL."
        )
    with TemporaryDirectory() as folder:
        url = SecretStr(f"sqlite+aiosqlite:///{folder}/wines.sqlite3")
        settings = settings.model_copy(update={"database_url": url})
        turns = []
        async for turn in turns_of(settings, conversations):
            turns.append(turn)
            show(len(turns), turn)
    summarize(turns)


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else CONVERSATIONS
    asyncio.run(main(file.read_text().splitlines()))
