"""Prompts from Langfuse: fetched for real in the background, never on the way of a turn."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent.deps import Deps
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.engine.span import Prompt, PromptRef
from agent.prompts import repository_prompts
from agent.sommelier.service import Sommelier
from agent.tracing.exporter import RateLimitedLogger
from agent.tracing.langfuse import LangfuseClient
from agent.tracing.managed import LangfusePrompts, PromptStore
from tests.doubles.langfuse_prompts import (
    PUBLIC_KEY,
    SECRET_KEY,
    LangfusePromptServer,
    Mode,
)
from tests.doubles.model_server import ModelServer, answer_json
from tests.doubles.server import eventually
from tests.fakes import FakeCatalogue, SpanRecord, asked, root_span
from tests.faults.turns import INFORMATIONAL, QUESTION, service

GOOD = "Be brief.\n{{research_rules}}\n{{schema}}"
BETTER = "Be briefer.\n{{research_rules}}\n{{schema}}"
REPOSITORYS = repository_prompts()["sommelier"]
REFINEMENT = repository_prompts()["refinement"]
ROUND = len(repository_prompts())


@pytest.fixture
def langfuse() -> Iterator[LangfusePromptServer]:
    with LangfusePromptServer() as server:
        yield server


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What was logged about prompts so far, from warnings on."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, listener = (
        logging.getLogger("agent.tracing.managed"),
        Listener(logging.WARNING),
    )
    logger.addHandler(listener)
    yield said
    logger.removeHandler(listener)


@asynccontextmanager
async def fetching(
    server: LangfusePromptServer,
    *,
    secret_key: str = SECRET_KEY,
    request_seconds: float = 30.0,
    **settings: Any,
) -> AsyncIterator[LangfusePrompts]:
    """The prompts of `server`, fetched every 20 ms."""
    client = LangfuseClient(PUBLIC_KEY, secret_key, server.base_url, seconds=request_seconds)
    settings = {"every_seconds": 0.02} | settings
    prompts = LangfusePrompts(PromptStore(client), **settings)
    await prompts.start()
    try:
        yield prompts
    finally:
        await prompts.close()


def in_langfuse(text: str, version: int, label: str = "production") -> Prompt:
    return Prompt(text, PromptRef("sommelier", version, label, is_fallback=False))


async def until(prompts: LangfusePrompts, wanted: Prompt) -> None:
    await eventually(
        lambda: prompts.get("sommelier") == wanted,
        seconds=30,
        otherwise=lambda: str(prompts.get("sommelier").ref),
    )


async def rounds(server: LangfusePromptServer, count: int) -> None:
    """Wait until so many further rounds of requests came."""
    before = len(server.asked)
    await eventually(
        lambda: len(server.asked) >= before + ROUND * count,
        seconds=30,
        otherwise=lambda: f"{len(server.asked) - before} requests",
    )


async def turn(model_server: ModelServer, prompts: LangfusePrompts) -> tuple[SpanRecord, str]:
    """A turn's only generation, and the system message it was asked with."""
    model_server.script(answer_json(INFORMATIONAL))
    root, model = root_span(), service(model_server)
    run = Run([model], limits=Limits(seconds=10), deps=Deps(prompts=prompts), span=root)
    try:
        sommelier = Sommelier(catalogue=FakeCatalogue())
        await asked(sommelier, QUESTION, run)
    finally:
        await model.close()
    (generation,) = (span for span in root.children if span.kind == "generation")
    return generation, model_server.requests[-1].json["messages"][0]["content"]


class TestFetching:
    """What an admin saves is in use soon after."""

    async def test_the_first_turn_has_what_langfuse_has(
        self, langfuse: LangfusePromptServer, model_server: ModelServer
    ) -> None:
        langfuse.put("sommelier", GOOD)
        async with fetching(langfuse) as prompts:
            generation, system = await turn(model_server, prompts)
        assert generation.prompt == in_langfuse(GOOD, 1).ref
        assert system.startswith("Be brief.\n\n{")

    async def test_a_new_version_is_in_the_next_turn(
        self, langfuse: LangfusePromptServer, model_server: ModelServer
    ) -> None:
        langfuse.put("sommelier", GOOD)
        async with fetching(langfuse) as prompts:
            await turn(model_server, prompts)
            langfuse.put("sommelier", BETTER)
            await until(prompts, in_langfuse(BETTER, 2))
            generation, system = await turn(model_server, prompts)
        assert generation.prompt == in_langfuse(BETTER, 2).ref
        assert system.startswith("Be briefer.")

    async def test_every_prompt_is_asked_for_by_the_label(
        self, langfuse: LangfusePromptServer
    ) -> None:
        langfuse.put("sommelier", GOOD)
        langfuse.put("sommelier", BETTER, "candidate")
        async with fetching(langfuse, label="candidate", every_seconds=60) as prompts:
            assert prompts.get("sommelier") == in_langfuse(BETTER, 2, "candidate")
            assert prompts.get("refinement") == REFINEMENT
        assert langfuse.asked == [(name, "candidate") for name in repository_prompts()]

    async def test_a_label_taken_away_brings_the_repositorys_prompt_back(
        self, langfuse: LangfusePromptServer, lines: list[str]
    ) -> None:
        langfuse.put("sommelier", GOOD)
        async with fetching(langfuse) as prompts:
            langfuse.prompts["sommelier"][0].labels.remove("production")
            await until(prompts, REPOSITORYS)
        assert lines == []

    async def test_a_prompt_langfuse_does_not_have_is_nothing_to_log(
        self, langfuse: LangfusePromptServer, lines: list[str]
    ) -> None:
        async with fetching(langfuse) as prompts:
            await rounds(langfuse, 2)
            assert prompts.get("sommelier") == REPOSITORYS
        assert lines == []

    async def test_a_name_of_no_prompt_is_an_error(self, langfuse: LangfusePromptServer) -> None:
        async with fetching(langfuse) as prompts:
            with pytest.raises(KeyError):
                prompts.get("barkeeper")


class TestRefusal:
    """A broken version never reaches a turn."""

    async def test_the_last_good_one_stays_and_one_line_says_why(
        self, langfuse: LangfusePromptServer, model_server: ModelServer, lines: list[str]
    ) -> None:
        langfuse.put("sommelier", GOOD)
        async with fetching(langfuse) as prompts:
            langfuse.put("sommelier", "Be brief, {{guest}}. {{research_rules}}")
            await rounds(langfuse, 3)
            generation, _ = await turn(model_server, prompts)
            assert generation.prompt == in_langfuse(GOOD, 1).ref
            langfuse.put("sommelier", [{"role": "system", "content": "{{schema}}"}])
            await rounds(langfuse, 3)
            assert prompts.get("sommelier") == in_langfuse(GOOD, 1)
            langfuse.put("sommelier", BETTER)
            await until(prompts, in_langfuse(BETTER, 4))
        assert lines == [
            "prompt sommelier: version 2 of Langfuse is refused: it lacks {{schema}}; "
            "version 1 (production) stays in use",
            "prompt sommelier: version 3 of Langfuse is refused: it is a chat prompt; it must be "
            "a text prompt; version 1 (production) stays in use",
        ]

    async def test_at_first_the_repositorys_stays(
        self, langfuse: LangfusePromptServer, lines: list[str]
    ) -> None:
        langfuse.put("refinement", "Rewrite the question.")
        langfuse.put("sommelier", GOOD)
        async with fetching(langfuse) as prompts:
            assert prompts.get("refinement") == REFINEMENT
            assert prompts.get("sommelier") == in_langfuse(GOOD, 1)
        assert lines == [
            "prompt refinement: version 1 of Langfuse is refused: it lacks {{schema}}; "
            f"the repository's version {REFINEMENT.ref.version} stays in use"
        ]


class TestTrouble:
    """Whatever is wrong with Langfuse, turns have a prompt at once."""

    @pytest.mark.parametrize(
        ("mode", "said"),
        [
            ("503", "Langfuse answered HTTP 503: Service unavailable"),
            ("html", "the answer is not Langfuse's: check LANGFUSE_BASE_URL"),
            ("other", "the answer is not Langfuse's: check LANGFUSE_BASE_URL"),
            ("black_hole", "Langfuse did not answer within 0.05 s: check LANGFUSE_BASE_URL"),
        ],
    )
    async def test_the_last_good_one_stays_and_one_line_a_minute_says_so(
        self, mode: Mode, said: str, langfuse: LangfusePromptServer, lines: list[str]
    ) -> None:
        now = [100.0]
        langfuse.put("sommelier", GOOD)
        seconds = 0.05 if mode == "black_hole" else 30.0
        async with fetching(
            langfuse, limited_log=RateLimitedLogger(lambda: now[0]), request_seconds=seconds
        ) as prompts:
            await until(prompts, in_langfuse(GOOD, 1))
            langfuse.mode = mode
            await rounds(langfuse, 2)
            assert len(lines) == 1
            now[0] = 159.9
            await rounds(langfuse, 1)
            assert len(lines) == 1
            now[0] = 160.0
            await rounds(langfuse, 1)
            assert len(lines) == 2
            assert prompts.get("sommelier") == in_langfuse(GOOD, 1)
            langfuse.mode = "ok"
            langfuse.put("sommelier", BETTER)
            await until(prompts, in_langfuse(BETTER, 2))
        assert all(
            line.startswith(f"prompts cannot be fetched, the last good ones stay: {said}")
            for line in lines
        )

    async def test_wrong_keys_are_named(
        self, langfuse: LangfusePromptServer, lines: list[str]
    ) -> None:
        async with fetching(langfuse, secret_key="sk-lf-wrong") as prompts:
            await rounds(langfuse, 2)
            assert prompts.get("sommelier") == REPOSITORYS
        assert len(lines) == 1
        assert "check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY" in lines[0]
        assert "sk-lf-wrong" not in lines[0]

    async def test_a_server_that_is_down_costs_the_start_little_and_a_turn_nothing(
        self, langfuse: LangfusePromptServer, model_server: ModelServer, lines: list[str]
    ) -> None:
        langfuse.stop()
        async with fetching(langfuse) as prompts:
            generation, _ = await turn(model_server, prompts)
        assert generation.prompt == REPOSITORYS.ref
        assert len(lines) == 1
        assert "Langfuse cannot be reached (ConnectError)" in lines[0]

    async def test_a_black_hole_holds_neither_start_nor_get_nor_close(
        self, langfuse: LangfusePromptServer
    ) -> None:
        langfuse.mode = "black_hole"
        client = LangfuseClient(PUBLIC_KEY, SECRET_KEY, langfuse.base_url)
        prompts = LangfusePrompts(PromptStore(client))
        await prompts.start(0.05)
        assert prompts.get("sommelier").ref == REPOSITORYS.ref
        await prompts.close()

    async def test_prompts_that_never_started_can_be_closed(
        self, langfuse: LangfusePromptServer
    ) -> None:
        client = LangfuseClient(PUBLIC_KEY, SECRET_KEY, langfuse.base_url)
        prompts = LangfusePrompts(PromptStore(client))
        await prompts.close()
        assert prompts.get("sommelier") == REPOSITORYS
        assert langfuse.asked == []
