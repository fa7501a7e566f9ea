"""Kills of real processes, the shortest form; `make crash-test` is the long one."""

from pathlib import Path

from tests.crash.harness import RunningServer, stage
from tests.crash.scenarios import (
    CORRECTING,
    Moment,
    Result,
    corrected,
    crashes,
    frozen_replica,
    upgrade,
)

MOMENTS = (
    Moment("send done", boundary="send done"),
    Moment("committed recorded", step="committed"),
)


async def test_no_message_is_lost_reordered_or_answered_twice_however_the_process_dies(
    tmp_path: Path,
) -> None:
    results = await crashes(tmp_path, MOMENTS, messages=24, chats=6)
    assert bad(results) == []
    values = {one.what: one.value for one in results}
    assert (values["messages"], values["kills"]) == ("24", "2")


async def test_a_replica_that_lost_its_locks_goes_on_with_no_turn_of_theirs(
    tmp_path: Path, postgres_url: str
) -> None:
    assert bad(await frozen_replica(tmp_path, RunningServer(postgres_url), messages=24)) == []


async def test_corrections_are_taken_in_wherever_they_come_and_whoever_dies(
    tmp_path: Path, postgres_url: str
) -> None:
    server = RunningServer(postgres_url)
    async with stage(tmp_path, server=server, replicas=2, settings=CORRECTING) as on:
        assert bad(await corrected("corrections", on, rounds=2)) == []


async def test_what_the_release_before_left_is_gone_on_with(
    tmp_path: Path, postgres_url: str
) -> None:
    assert bad(await upgrade(tmp_path, RunningServer(postgres_url), messages=20)) == []


def bad(results: list[Result]) -> list[Result]:
    """What is not as it must be, whatever time it took."""
    return [one for one in results if not one.ok and not one.what.startswith("seconds")]
