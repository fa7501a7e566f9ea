"""Vectors come from a server with OpenAI's API, checked and of length 1."""

import math
from typing import Any

import httpx2
import pytest

from agent.documents.embedding import Embedder, EmbeddingError
from bot.resources import embedder_of
from config import load_settings
from tests.doubles.web import Web


async def test_vectors_come_from_the_models_own_server_in_the_order_of_the_texts() -> (
    None
):
    with Web() as web:
        values = {"OPENAI_BASE_URL": f"{web.base_url}/v1", "OPENAI_API_KEY": "sk-model"}
        async with httpx2.AsyncClient() as http:
            settings = load_settings(None, {"EMBEDDING_MODEL": "vectors", **values})
            embedder = embedder_of(settings, http)
            assert embedder is not None
            oak, tannin = await embedder.embed(["oak", "tannin"], 5)
            assert embedder_of(load_settings(None, values), http) is None
    assert oak == pytest.approx([3 / math.hypot(3, 2), 2 / math.hypot(3, 2)])
    assert tannin == pytest.approx([3 / math.hypot(3, 5), 5 / math.hypot(3, 5)])
    assert web.keys == ["Bearer sk-model"]


@pytest.mark.parametrize("vectors", [[], [[1.0], [2.0]], [[0.0, 0.0]], ["no vector"]])
async def test_anything_but_one_vector_a_text_is_an_error(vectors: list[Any]) -> None:
    with Web(lambda _: vectors) as web:
        async with httpx2.AsyncClient() as http:
            service = Embedder(http, model="m", base_url=f"{web.base_url}/v1")
            with pytest.raises(EmbeddingError):
                await service.embed(["oak"], 5)
            lost = Embedder(http, model="m", base_url=web.base_url)
            with pytest.raises(EmbeddingError, match="m answered 404"):
                await lost.embed(["oak"], 5)
