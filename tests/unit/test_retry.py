"""Retries: number, waits and errors that are not retried."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from agent.servers import Backoff, retry
from db.engine import BRIEF_TRIES, call_or_default, create_engine, retry_forever


class Call:
    """A call that raises the given errors one after the other, then returns "done"."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.waits: list[float] = []

    async def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def failures(number: int) -> Sequence[Exception]:
    return [OSError(str(nth)) for nth in range(1, number + 1)]


async def test_waits_double_up_to_the_maximum_with_jitter() -> None:
    call = Call(*failures(5))
    await retry(call, max_tries=None, backoff=Backoff(1, 5), sleep=call.sleep)
    for wait, doubled in zip(call.waits, (1, 2, 4, 5, 5), strict=True):
        assert doubled / 2 <= wait <= doubled
    call = Call(OSError())
    await retry(call, max_tries=3, should_retry=lambda _: 7.5, sleep=call.sleep)
    assert call.waits == [7.5]


async def test_the_log_names_the_type_of_an_error_and_not_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = Call(OSError("password=secret"))
    with caplog.at_level(logging.WARNING):
        await retry(call, max_tries=2, sleep=call.sleep, description="the database")
    assert "the database failed (OSError)" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "error", [AttributeError, TypeError, KeyError, ValueError, OverflowError]
)
async def test_a_programming_error_is_not_retried_forever(
    error: type[Exception],
) -> None:
    tried: list[int] = []

    async def call() -> None:
        tried.append(1)
        raise error

    with pytest.raises(error):
        await retry_forever(call)
    assert await call_or_default(call, 0, "The call failed", tries=BRIEF_TRIES) == 0
    assert len(tried) == 2


async def test_a_missing_table_is_not_retried(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'empty.db'}")

    async def call() -> None:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT * FROM updates"))

    async with asyncio.timeout(10):
        with pytest.raises(OperationalError):
            await retry_forever(call)
    await engine.dispose()
