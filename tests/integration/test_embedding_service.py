"""The embedding source over a real connection, as the settings make it."""

from collections.abc import Iterator

import pytest

from bot.models import embedder_of
from config import load_settings
from tests.doubles.web import Web, vector


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


async def test_vectors_come_in_the_order_of_the_texts_from_the_models_own_server(web: Web) -> None:
    settings = load_settings(
        None,
        {
            "EMBEDDING_MODEL": "vectors",
            "OPENAI_BASE_URL": f"{web.base_url}/v1",
            "OPENAI_API_KEY": "sk-model",
        },
    )
    embedder = embedder_of(settings)
    assert embedder is not None
    texts = ["oak", "tannin", "acidity"]
    try:
        assert await embedder.embed(texts) == [vector(text) for text in texts]
    finally:
        await embedder.close()
    assert (embedder.name, web.keys) == ("vectors", ["Bearer sk-model"])


def test_without_a_model_for_them_there_are_no_vectors() -> None:
    assert embedder_of(load_settings(None, {"OPENAI_API_KEY": "sk-model"})) is None
