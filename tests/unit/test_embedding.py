"""The embedding model of this machine, behind a model that only counts letters."""

import asyncio
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.documents.embedding import (
    LocalEmbedding,
    LocalModelError,
    TextModel,
    is_installed,
)
from agent.documents.vectors import EmbeddingError, embed
from bot.models import embedder_of
from config import load_settings
from tests.doubles.web import Web, vector

LOCKED = Path(__file__).parents[2] / "requirements"


class Letters:
    """A model whose vectors say how often a text has `a`, `e`, and how long it is."""

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def embed(self, documents: Sequence[str], batch_size: int) -> Iterator[Any]:
        self.threads.add(threading.current_thread().name)
        for text in documents:
            yield np.array([text.count("a"), text.count("e"), len(text)], float)


async def test_vectors_come_in_the_order_of_the_texts_as_plain_numbers(tmp_path: Path) -> None:
    model, asked = Letters(), list[tuple[str, Path]]()

    def load(name: str, cache: Path) -> TextModel:
        asked.append((name, cache))
        return model

    local = LocalEmbedding("small/model", cache=tmp_path, load=load)
    assert asked == []
    found = await asyncio.gather(*(local.embed(["tannin", "lees"]) for _ in range(3)))
    assert found == [[[1.0, 0.0, 6.0], [0.0, 2.0, 4.0]]] * 3
    await local.close()
    assert asked == [("small/model", tmp_path)]
    assert model.threads == {"embedding_0"}


async def test_vectors_come_from_the_models_own_server() -> None:
    with Web() as web:
        values = {"OPENAI_BASE_URL": f"{web.base_url}/v1", "OPENAI_API_KEY": "sk-model"}
        embedder = embedder_of(load_settings(None, {"EMBEDDING_MODEL": "vectors", **values}))
        assert embedder is not None
        texts = ["oak", "tannin", "acidity"]
        assert await embedder.embed(texts) == [vector(text) for text in texts]
        await embedder.close()
    assert (embedder.name, web.keys) == ("vectors", ["Bearer sk-model"])
    assert embedder_of(load_settings(None, values)) is None


async def test_why_a_model_is_not_there_reaches_the_log(tmp_path: Path) -> None:
    def missing(model: str, cache: Path) -> TextModel:
        raise LocalModelError(f"{model} is not there")

    local = LocalEmbedding("gone", cache=tmp_path, load=missing)
    with pytest.raises(EmbeddingError, match="onnx:gone failed: gone is not there"):
        await embed(local, ["oak"], 5)
    await local.close()


@pytest.mark.skipif(is_installed(), reason="the extra `local` is installed here")
async def test_without_the_extra_it_is_said_how_to_install_it(tmp_path: Path) -> None:
    local = LocalEmbedding("small", cache=tmp_path)
    with pytest.raises(LocalModelError, match=r"needs the extra `local`: pip install"):
        await local.embed(["oak"])
    await local.close()


def pins(name: str) -> dict[str, set[str]]:
    """The locked versions of each package; some have one for each Python."""
    found: dict[str, set[str]] = {}
    locked = (LOCKED / name).read_text("utf-8")
    for package, version in re.findall(r"^([\w.-]+)==(\S+)", locked, re.MULTILINE):
        found.setdefault(package, set()).add(version)
    return found


def test_the_extra_is_locked_beside_the_rest_and_is_no_part_of_it() -> None:
    main, local = pins("main.txt"), pins("local.txt")
    assert {"fastembed", "onnxruntime"} <= set(local)
    assert not {"fastembed", "onnxruntime"} & {*main, *pins("dev.txt")}
    assert {name: versions for name, versions in local.items() if name in main} == {
        name: versions for name, versions in main.items() if name in local
    }
