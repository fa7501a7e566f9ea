"""`kill -9` at the four moments that a turn can die at, seen from outside: Telegram and the model.

Whatever the process remembers of a turn, people get each message of its answer once.
"""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.i18n import translate
from tests.crash.doubles import Boundary, sleep_until
from tests.crash.harness import Stage, stage

ANNA = 1001
TAKEOVER_SECONDS = 10
"""A dead replica's chats are answered well before that, on a machine that others use too."""


@asynccontextmanager
async def started(
    folder: Path,
    request: pytest.FixtureRequest,
    kind: str,
    replicas: int = 1,
    **settings: str,
) -> AsyncIterator[Stage]:
    """Processes that answer people, over a database of this kind."""
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    async with stage(
        folder, server_url=url, replicas=replicas, settings=settings
    ) as on:
        await on.start()
        yield on


async def killed_at(
    on: Stage, boundary: Boundary, passes: int = 0, command: str = ""
) -> None:
    """Ask something, or give a command, and kill the process that reaches this boundary."""
    struck = threading.Event()

    def strike(port: int) -> None:
        bot = on.owner(port) or on.bots[0]
        bot.kill()
        struck.set()

    on.watch.arm(boundary, strike, passes)
    if command:
        on.write(ANNA, command)
    else:
        on.say(ANNA)
    seen = on.api.sent
    assert await sleep_until(struck.is_set, 30), (
        f"{boundary!r} was not reached: {seen(ANNA)}"
    )
    for bot in on.bots:
        if bot.kills:
            bot.reap()


async def restarted(on: Stage) -> None:
    """Start the process again: it answers what is left, and then a further message."""
    on.bots[0].start()
    await on.bots[0].ready()
    assert await on.answered(30)
    last = on.say(ANNA)
    assert await sleep_until(
        lambda: any(last in text for text in on.api.sent(ANNA)), 30
    )


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("boundary", ["model asked", "send asked"])
async def test_killed_before_it_thought_or_after_the_commit_a_turn_is_answered_once(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, boundary: Boundary
) -> None:
    async with started(tmp_path, request, kind) as on:
        await killed_at(on, boundary)
        await restarted(on)
        assert on.api.replies() == {ANNA: ["1001-1", "1001-2"]}
        if boundary == "send asked":  # what was made is sent, not made anew
            assert on.model.asked == ["1001-1", "1001-2"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_killed_between_two_messages_of_an_answer_each_is_sent_once(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    async with started(tmp_path, request, kind, ADMIN_IDS=str(ANNA)) as on:
        on.say(ANNA)  # who is known gets what is sent to everyone
        assert await on.answered(30)
        await killed_at(on, "send asked", passes=1, command="/broadcast Good news")
        await restarted(on)
        first, words, preview, last = on.api.sent(ANNA)
        assert ("1001-1" in first, words, "1001-2" in last) == (True, "Good news", True)
        assert preview == translate("broadcast_preview", count=1)


@pytest.mark.parametrize("boundary", ["model asked", "send asked"])
async def test_the_chats_of_a_replica_that_dies_are_answered_by_another(
    tmp_path: Path, request: pytest.FixtureRequest, boundary: Boundary
) -> None:
    async with started(tmp_path, request, "postgres", replicas=2) as on:
        await killed_at(on, boundary)
        assert await on.answered(TAKEOVER_SECONDS)
        assert on.api.replies() == {ANNA: ["1001-1"]}
