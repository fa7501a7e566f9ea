"""Kills of real processes, the shortest form; `make crash-test` is the long one."""

from pathlib import Path

from tests.crash.harness import stage
from tests.crash.scenarios import (
    CORRECTING,
    Moment,
    Result,
    corrected,
    crashes,
    frozen_replica,
)

MOMENTS = (Moment("send done"), Moment(step="committed"))


async def test_no_message_is_lost_reordered_or_answered_twice_however_the_process_dies(
    tmp_path: Path,
) -> None:
    results = await crashes(tmp_path, MOMENTS, messages=24, chats=6)
    assert bad(results) == []
    values = {row.what: row.value for row in results}
    assert (values["messages"], values["kills"]) == ("24", "2")


async def test_a_replica_that_lost_its_locks_goes_on_with_no_turn_of_theirs(
    tmp_path: Path, postgres_url: str
) -> None:
    assert bad(await frozen_replica(tmp_path, postgres_url, messages=24)) == []


async def test_corrections_are_taken_in_wherever_they_come_and_whoever_dies(
    tmp_path: Path, postgres_url: str
) -> None:
    replicas = stage(tmp_path, server_url=postgres_url, replicas=2, settings=CORRECTING)
    async with replicas as on:
        assert bad(await corrected("corrections", on, rounds=2)) == []


def bad(results: list[Result]) -> list[Result]:
    return [row for row in results if not row.ok]
