"""The contract of every repository, run against SQLite and a real Postgres."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from agent.sommelier.wine import Catalogue, Wine, WineQuery
from agent.turn import Role, StoredMessage
from db.engine import Sessions
from db.repositories.people import MessageRepository, store_messages
from db.repositories.privacy import SqlPersonalData
from db.wines.catalogue import SqlCatalogue

CHAT, OTHER_CHAT = -1_001_234_567_890_123, 42
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def catalogue(cellar_sessions: Sessions) -> Catalogue:
    return SqlCatalogue(cellar_sessions)


@pytest.fixture
def messages(sessions: Sessions) -> MessageRepository:
    return MessageRepository(sessions, now=lambda: NOON)


async def create(
    messages: MessageRepository, chat_id: int, role: Role, text: str, wine_ids: Sequence[str] = ()
) -> None:
    message = StoredMessage(role, text, tuple(wine_ids))
    async with messages._sessions.begin() as session:
        await store_messages(session, chat_id, [message], None, NOON)


async def similar(catalogue: Catalogue, wine_id: str, **query: Any) -> list[str]:
    result = await catalogue.similar(wine_id, WineQuery(**query))
    return [wine.id for wine in result.wines]


async def files_of(sessions: Sessions) -> bytes:
    """All bytes of an SQLite database's files."""
    async with sessions() as session:
        path = Path((await session.execute(text("PRAGMA database_list"))).one().file)
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


class TestRepositories:
    """What every database must do."""

    @pytest.mark.parametrize("unknown", ["nobody", "", "x' OR 1=1 --", "\x00", "\ud800"])
    async def test_unknown_ids_are_left_out(
        self, catalogue: Catalogue, cellar: dict[str, Wine], unknown: str
    ) -> None:
        known = cellar["taylors-lbv-2017"]
        assert await catalogue.get([unknown, known.id]) == [known]
        assert await similar(catalogue, unknown) == []

    async def test_similar_wines_are_near_in_stock_and_never_the_wine_itself(
        self, catalogue: Catalogue
    ) -> None:
        like_bollinger = await similar(catalogue, "bollinger-special-cuvee-nv", limit=2)
        assert like_bollinger == ["billecart-brut-rose-nv", "raventos-blanc-de-blancs-2021"]
        everything = await catalogue.similar("bollinger-special-cuvee-nv", WineQuery(limit=12))
        assert everything.total == 20
        assert await similar(catalogue, "bollinger-special-cuvee-nv", countries=["England"]) == []

    async def test_similar_wines_pass_the_filters(self, catalogue: Catalogue) -> None:
        cheaper = await similar(catalogue, "jamet-cote-rotie-2018", max_price=20, limit=2)
        assert cheaper[0] == "guigal-cotes-du-rhone-2020"
        spanish = await similar(catalogue, "jamet-cote-rotie-2018", countries=["Spain"], limit=2)
        assert set(spanish) == {"muga-rioja-reserva-2018", "borsao-garnacha-2021"}
        rather = {"countries": ["Spain"], "soft": ["countries"], "limit": 3}
        assert set((await similar(catalogue, "jamet-cote-rotie-2018", **rather))[:2]) >= set(
            spanish
        )

    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    async def test_no_byte_is_left_of_who_is_forgotten(
        self, messages: MessageRepository, sessions: Sessions
    ) -> None:
        for number in range(50):
            await create(messages, OTHER_CHAT, "user", f"zanzibar {number}")
            await create(messages, CHAT, "user", f"quebracho {number}")
        await SqlPersonalData(sessions).forget(OTHER_CHAT, "hash")
        kept = await files_of(sessions)
        assert b"quebracho" in kept
        assert b"zanzibar" not in kept

    async def test_messages_come_back_oldest_first_until_their_chat_is_forgotten(
        self, messages: MessageRepository
    ) -> None:
        await create(messages, CHAT, "user", "A red for lamb?")
        await create(messages, CHAT, "assistant", "Côte-Rôtie 🍷", ["jamet", "guigal"])
        await create(messages, OTHER_CHAT, "user", "stays")
        assert await messages.recent(CHAT) == [
            StoredMessage("user", "A red for lamb?", (), NOON),
            StoredMessage("assistant", "Côte-Rôtie 🍷", ("jamet", "guigal"), NOON),
        ]
        assert await messages.forget(CHAT) == 2
        assert await messages.recent(CHAT) == []
        assert [message.content for message in await messages.recent(OTHER_CHAT)] == ["stays"]
