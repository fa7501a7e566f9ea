"""What is remembered of people, while the process dies: bottles, tastes, reminders, a deletion."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.crash.doubles import Boundary, sleep_until
from tests.crash.harness import Server, Stage
from tests.crash.more import on_both
from tests.crash.scenarios import Result, start

BOUGHT = "I bought six Barolo 2016 at 45"
BUYER, DRINKER, HATER, OWNER, FORGOTTEN = range(5)
SENT: tuple[Boundary, ...] = ("send asked", "send done", "send answered")
TOLD = ("facts", "bottles", "messages", "cares")
"""Tables that hold what somebody told."""
NOON = 14
KILLS = 2
"""Of a round."""


def by_day() -> dict[str, str]:
    """Settings with which it is early afternoon where people live, so that they are reminded."""
    ahead = NOON - datetime.now(UTC).hour
    return {"TIME_ZONE": f"Etc/GMT{-ahead:+d}"}


async def memory(
    folder: Path, server: Server, rounds: Sequence[Boundary] = SENT * 3
) -> list[Result]:
    """Five people at once buy, drink, hate, own and are forgotten; `kill -9` between two steps."""
    scenario = partial(remembering, rounds=rounds)
    return await on_both("memory", scenario, folder, server, settings=by_day())


async def remembering(name: str, on: Stage, rounds: Sequence[Boundary]) -> list[Result]:
    """Kill at each of these boundaries, once while people write and once as it starts again."""
    await start(on.bots)
    people = [range(5000 + 10 * number, 5005 + 10 * number) for number in range(len(rounds))]
    for number, (boundary, them) in enumerate(zip(rounds, people, strict=True)):
        await all_done(on, *prepared(on, them))
        sure = on.api.say("/forget", them[FORGOTTEN])
        await all_done(on, sure)
        struck = armed(on, boundary, passes=number % 4)
        asked = on.api.messages(them[FORGOTTEN])[-1]
        yes = asked["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
        told = [
            on.api.say(BOUGHT, them[BUYER]),
            on.api.say("drank one, wonderful", them[DRINKER]),
            on.api.say("I hate Riesling", them[HATER]),
            on.api.press(asked, yes),
        ]
        await died(on, struck)
        # What it resumes, and the reminder that it begins with, is hit in the same way.
        struck = armed(on, boundary, passes=0)
        on.bots[0].start()
        await died(on, struck)
        on.bots[0].start()
        await on.bots[0].ready()
        await all_done(on, *told)
        await sleep_until(partial(is_reminded, on, them[OWNER]), 20)
    before = [reminded(on, them[OWNER]) for them in people]
    statuses = [(await on.bots[0].stop())[0]]
    on.bots[0].start()
    await on.bots[0].ready()
    await asyncio.sleep(1)
    again = [reminded(on, them[OWNER]) for them in people]
    statuses.append((await on.bots[0].stop())[0])
    return [
        Result(name, "kills", str(on.bots[0].kills)),
        *judged_memory(name, on, people),
        Result(name, "turns that failed", str(failed := on.records.failed_turns()), not failed),
        Result(name, "reminders, and after a further start", f"{before}, {again}", before == again),
        Result(name, "exit statuses", str(statuses), set(statuses) == {0}),
    ]


def prepared(on: Stage, them: Sequence[int]) -> list[int]:
    """What people told before; the ids of the updates."""
    due = datetime.now(UTC).year - 8
    return [
        on.api.say(BOUGHT, them[DRINKER]),
        on.api.say(f"I bought two Barolo {due}", them[OWNER]),
        on.api.say("I hate Merlot", them[FORGOTTEN]),
        on.api.say(BOUGHT, them[FORGOTTEN]),
    ]


def armed(on: Stage, boundary: Boundary, passes: int) -> threading.Event:
    """Have the process be killed when it reaches a boundary; what tells that it was."""
    struck = threading.Event()

    def strike(port: int) -> None:
        on.bots[0].kill()
        struck.set()

    on.watch.arm(boundary, strike, passes)
    return struck


async def died(on: Stage, struck: threading.Event) -> None:
    """Wait for the kill; where nothing reached the boundary it comes now."""
    await sleep_until(struck.is_set, 8)
    on.watch.disarm()
    if not struck.is_set():
        on.bots[0].kill()
    on.bots[0].reap()


async def all_done(on: Stage, *updates: int) -> None:
    """Wait until these updates are answered."""
    listed = ", ".join(map(str, updates))
    query = f"SELECT COUNT(*) FROM updates WHERE update_id IN ({listed}) AND state = 'done'"
    await sleep_until(lambda: on.records.product(query)[0][0] == len(updates), 30)


def reminded(on: Stage, owner: int) -> int:
    return sum("worth opening" in each["text"] for each in on.api.messages(owner))


def is_reminded(on: Stage, owner: int) -> bool:
    return reminded(on, owner) > 0


def judged_memory(name: str, on: Stage, people: Sequence[range]) -> list[Result]:
    """What is kept of everybody, and how often they were told."""
    owned = dict(on.records.product("SELECT user_id, SUM(count) FROM bottles GROUP BY user_id"))
    hated = on.records.product("SELECT user_id FROM facts WHERE kind = 'hate'")
    haters = [user for (user,) in hated]
    gone = ", ".join(str(them[FORGOTTEN]) for them in people)
    left = {
        table: on.records.product(
            f"SELECT COUNT(*) FROM {table} WHERE "
            f"{'chat_id' if table == 'messages' else 'user_id'} IN ({gone})"
        )[0][0]
        for table in TOLD
    }
    wrong = [
        f"{them[who]} owns {owned.get(them[who])}"
        for them in people
        for who, count in ((BUYER, 6), (DRINKER, 5), (OWNER, 2))
        if owned.get(them[who]) != count
    ]
    wrong += [str(them[HATER]) for them in people if haters.count(them[HATER]) != 1]
    told = [
        count
        for them in people
        for count in (
            reminded(on, them[OWNER]),
            *(len(on.api.messages(them[who])) for who in (BUYER, HATER)),
        )
    ]
    # Killed between a send and its record, nobody can know that it arrived.
    most = 1 + KILLS
    return [
        Result(name, "bottles and tastes that are not as told", str(wrong), not wrong),
        Result(name, "kept of those who are forgotten", str(left), not any(left.values())),
        Result(
            name,
            f"reminders and answers, of {most} at most",
            str(told),
            all(1 <= count <= most for count in told),
        ),
    ]
