"""What no table of the house knows, by meaning: over a real connection, to a scripted source."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from agent.engine.messages import LLMResponse
from agent.house_sommelier import HouseSommelier
from agent.house_sommelier.data import dishes
from agent.house_sommelier.lexicon import Meaning
from agent.house_sommelier.meaning import REST_SECONDS, MeaningIndex, asked, phrases_of
from agent.house_sommelier.model import WithoutTools
from bot.app import sommelier_of
from bot.resources import open_resources
from bot.services import embedder_of
from config import Settings, settings_of
from tests.doubles.server import eventually
from tests.doubles.web import Embedding, Web
from tests.house import TOOLS, conversation, exchange
from tests.virtual_time import VirtualTimeLoop, in_virtual_time

LIKE = {
    "pljeskavica": ("hamburger",),
    "Pljeskavica": ("hamburger",),
    "hoggety": ("lamb chop",),
    "suede": ("smooth as velvet",),
    "something that feels like a fireplace": ("warming, like a fireplace on a winter evening",),
    "what is the point of swooshing the glass around": ("why do people swirl wine",),
    "thingamajig": ("party",),
    "neitherish": ("lamb chop", "mussel"),
    "almostish": ("hamburger", "wibble", "flumph", "doodah"),
}
"""Words that no table knows, and what they are near to; "neitherish" to two things alike."""
WIDTH = 64
OWN = 0.5
"""How much of a phrase is its own, beside 1 of what it shares with those that mean the same."""


@cache
def senses() -> dict[str, str]:
    """What each phrase of the tables comes to, by name."""
    return {text: _sense(text, said) for text, said in (phrases_of("en") | asked("en")).items()}


def _sense(text: str, said: Sequence[Meaning]) -> str:
    foods = [dishes()[int(at)].foods for field, at_all in said if field == "dish" for at in at_all]
    return str(foods or said or text)


def meant(texts: Sequence[str]) -> list[object]:
    """Vectors whose likeness is 0.5 where texts have nothing in common, as many models have it."""
    return [vector(text) for text in texts]


def vector(text: str) -> list[float]:
    near = [_direction(senses().get(each, each)) for each in LIKE.get(text, (text,))]
    own = np.sum(near, 0) / np.linalg.norm(np.sum(near, 0)) + OWN * _direction(f"own {text}")
    return [1.0, *(own / np.linalg.norm(own)).tolist()]


def _direction(name: str) -> np.ndarray:
    drawn = np.random.default_rng(crc32(name.encode())).normal(size=WIDTH)
    return np.asarray(drawn / np.linalg.norm(drawn))


def settings_with(web: Web, **further: str) -> Settings:
    url = f"{web.base_url}/v1"
    return settings_of({"EMBEDDING_MODEL": "vectors", "EMBEDDING_BASE_URL": url, **further})


@asynccontextmanager
async def understanding(web: Web, seconds: float = 30) -> AsyncIterator[HouseSommelier]:
    embedder = embedder_of(settings_with(web))
    assert embedder is not None
    meaning = MeaningIndex(embedder, seconds)
    yield HouseSommelier(meaning=meaning)
    await meaning.close()
    await embedder.close()


def calls(response: LLMResponse) -> dict[str, object]:
    (call,) = response.tool_calls
    return dict(json.loads(call.arguments)) | {"tool": call.name}


BURGERS: dict[str, object] = {"foods": ["burgers"]}
CASES: tuple[tuple[tuple[str, ...], dict[str, object]], ...] = (
    (("a wine for pljeskavica under 20",), BURGERS | {"max_price": 20.0}),
    (("Pljeskavica for dinner, which wine?",), BURGERS),
    (("a wine for pljeskavica under 20", "rather a white"), BURGERS | {"styles": ["white"]}),
    # No question which of the wines shown is meant.
    (("a red for lamb under 30", "any wine for pljeskavica"), BURGERS | {"max_price": 30.0}),
    (("which wine with hoggety",), {"foods": ["lamb"]}),
    (("a red like suede",), {"styles": ["red"], "tannins": ["none", "low"]}),
    (("something that feels like a fireplace",), {"bodies": ["medium_full", "full"]}),
    (("what is the point of swooshing the glass around",), {"tool": "search_documents"}),
)


async def test_words_that_no_table_knows_fill_the_same_slots() -> None:
    with Web(meant) as web:
        async with understanding(web) as house:
            for said, expected in CASES:
                messages = conversation(*said)
                asked = calls(await house.generate_with_tools(messages, TOOLS))
                assert {name: asked.get(name) for name in expected} == expected, said
            # The tools are called so for a model that calls none itself.
            model = WithoutTools(HouseSommelier(), house.meaning)
            messages = conversation("a wine for pljeskavica under 20")
            assert calls(await model.generate_with_tools(messages, TOOLS))["foods"] == ["burgers"]
            # Known by now, and what the tables understand is not asked.
            before = len(web.asked)
            for text in ("a wine for pljeskavica under 20", "a red for lamb under 30", "hello"):
                await house.generate_with_tools(conversation(text), TOOLS)
            assert len(web.asked) == before
            # What is near to an occasion is no dish, and what is near to many things is none.
            by_tables = HouseSommelier()
            for text in (
                "a red for thingamajig",
                "a red for neitherish",
                "a red for wibble",
                "a red for almostish",
                "a dry white that smells of pljeskavica",
                "why is flumph flumphy?",
            ):
                messages = conversation(text)
                plain = await by_tables.generate_with_tools(messages, TOOLS)
                assert await house.generate_with_tools(messages, TOOLS) == plain, text


async def test_a_question_in_other_words_gets_its_short_answer() -> None:
    messages = conversation("what is the point of swooshing the glass around")
    with Web(meant) as web:
        async with understanding(web) as house:
            asked = await house.generate_with_tools(messages, TOOLS)
            told = exchange(asked, "No document says anything about that.")
            answer = await house.generate_with_tools([*messages, *told], TOOLS)
    assert "more surface, more air" in answer.content


async def held(texts: list[str]) -> list[object]:
    await asyncio.Event().wait()
    return []


RUBBISH: dict[str, Embedding] = {
    "none": lambda texts: [],
    "too few": lambda texts: meant(texts)[1:],
    "one for all": lambda texts: [[1.0, 2.0, 3.0] for _ in texts],
    "words": lambda texts: ["no vector" for _ in texts],
    "nulls": lambda texts: [None for _ in texts],
    "zeros": lambda texts: [[0.0, 0.0] for _ in texts],
    "other lengths for the question": lambda texts: [
        [0.0] * (len(texts) - 1) + [1.0] for _ in texts
    ],
    "chance": lambda texts: [_direction(f"chance {text}").tolist() for text in texts],
    "numbers of letters": lambda texts: [[len(text), text.count("a") + 1.0] for text in texts],
}


@pytest.mark.parametrize("embedding", RUBBISH.values(), ids=RUBBISH)
async def test_rubbish_changes_nothing(embedding: Embedding) -> None:
    with Web(embedding) as web:
        async with understanding(web) as house:
            await assert_as_by_tables(house)


@pytest.mark.parametrize("is_slow", [False, True], ids=["down", "slow"])
async def test_a_source_that_is_down_or_slow_changes_nothing(is_slow: bool) -> None:
    with Web(held) as web:
        async with understanding(web, 0.05) as house:
            if not is_slow:
                web.stop()
            await assert_as_by_tables(house)


async def assert_as_by_tables(house: HouseSommelier) -> None:
    for said, _ in CASES:
        messages = conversation(*said)
        by_tables = await HouseSommelier().generate_with_tools(messages, TOOLS)
        assert await house.generate_with_tools(messages, TOOLS) == by_tables


class Scripted:
    """A source that answers after some seconds, or not at all, and counts how often it is asked."""

    name = "scripted"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_down = False
        self.asked: list[Sequence[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(texts)
        await asyncio.sleep(self.seconds)
        if self.is_down:
            raise ConnectionError("down")
        return [vector(text) for text in texts]


def test_the_tables_phrases_are_made_beside_the_talk_and_a_source_that_fails_has_a_rest() -> None:
    async def talk(loop: VirtualTimeLoop) -> None:
        source = Scripted(1)
        meaning = MeaningIndex(source)
        assert await meaning.glossary(["suede"], "en") == ()
        assert await meaning.glossary(["suede"], "en") == ()
        assert loop.now < 2, "the second message waited for a source that is too slow"
        await asyncio.sleep(120)
        source.seconds = 0
        ((said, meanings),) = await meaning.glossary(["suede", "wibble"], "en")
        assert (said, [each.field for each in meanings]) == ("suede", ["tannins"])
        source.is_down, before = True, len(source.asked)
        for _ in range(3):
            assert await meaning.glossary(["pljeskavica"], "en") == ()
        assert len(source.asked) == before + 1
        source.is_down = False
        await asyncio.sleep(REST_SECONDS)
        # While a turn goes on, it is understood as it was when it began.
        assert await meaning.glossary(["pljeskavica"], "en", may_ask=False) == ()
        assert await meaning.glossary(["pljeskavica"], "en")
        assert len(source.asked) == before + 2
        await meaning.close()

    in_virtual_time(talk)


def database_of(environment: dict[str, str]) -> str:
    (database,) = Path(environment["XDG_DATA_HOME"]).rglob("*.sqlite3")
    return f"sqlite+aiosqlite:///{database}"


async def test_the_bot_uses_the_source_that_its_documents_use(environment: dict[str, str]) -> None:
    with Web(meant) as web:
        settings = settings_with(web, DATABASE_URL=database_of(environment))
        async with open_resources(settings) as resources, asyncio.timeout(60):
            assert resources.meaning is not None
            while not await resources.meaning.glossary(["pljeskavica"], "en"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            reply = await sommelier_of(resources).answer("a red for pljeskavica", resources.run)
    assert "pljeskavica" in reply.text
    assert "pljeskavica" in web.asked
    assert reply.wine_ids


async def test_a_source_that_never_answers_holds_neither_the_start_nor_a_turn(
    tmp_path: Path,
) -> None:
    with Web(held) as web:
        settings = settings_with(web, DATABASE_URL=f"sqlite+aiosqlite:///{tmp_path}/new.sqlite3")
        async with asyncio.timeout(40), open_resources(settings) as resources:
            reply = await sommelier_of(resources).answer("a red for lamb", resources.run)
            # The library gets its vectors meanwhile.
            await eventually(lambda: bool(web.asked), seconds=30, otherwise=lambda: "nobody asked")
    assert reply.wine_ids
