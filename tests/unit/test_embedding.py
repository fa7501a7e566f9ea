"""The embedding model of this machine, behind a model that only counts letters."""

import asyncio
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent.documents.embedding import (
    LocalEmbedding,
    LocalModelError,
    TextModel,
    is_installed,
)
from agent.documents.vectors import EmbeddingError, embed
from bot.commands import doctor

LOCKED = Path(__file__).parents[2] / "requirements"
SEVERAL = [f"text {number}" for number in range(40)]


class Numbers(list[float]):
    """A vector that is a list when asked, as numpy's are."""

    def tolist(self) -> list[float]:
        return list(self)


class Letters:
    """A model whose vectors say how often a text has `a`, `e`, and how long it is."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.threads: set[str] = set()

    def embed(self, documents: Sequence[str], batch_size: int) -> Iterator[Numbers]:
        self.batches.append(batch_size)
        self.threads.add(threading.current_thread().name)
        for text in documents:
            yield Numbers([float(text.count("a")), float(text.count("e")), float(len(text))])


class Loads:
    """Loads `Letters`, and remembers what was asked for."""

    def __init__(self) -> None:
        self.model = Letters()
        self.asked: list[tuple[str, Path]] = []

    def __call__(self, model: str, cache: Path) -> TextModel:
        self.asked.append((model, cache))
        return self.model


async def test_vectors_come_in_the_order_of_the_texts_as_plain_numbers(tmp_path: Path) -> None:
    loads = Loads()
    local = LocalEmbedding("small/model", cache=tmp_path, load=loads)
    assert loads.asked == []
    assert await local.embed(["tannin", "lees"]) == [[1.0, 0.0, 6.0], [0.0, 2.0, 4.0]]
    vectors = await asyncio.gather(*(local.embed(SEVERAL) for _ in range(3)))
    await local.close()
    assert [len(each) for each in vectors] == [40, 40, 40]
    assert loads.asked == [("small/model", tmp_path)]
    assert set(loads.model.batches) == {16}
    assert loads.model.threads == {"embedding_0"}
    assert local.name == "onnx:small/model"


async def test_why_a_model_is_not_there_reaches_the_log_and_the_doctor(tmp_path: Path) -> None:
    def missing(model: str, cache: Path) -> TextModel:
        raise LocalModelError(f"{model} is not there")

    local = LocalEmbedding("gone", cache=tmp_path, load=missing)
    with pytest.raises(EmbeddingError, match="onnx:gone failed: gone is not there"):
        await embed(local, ["oak"], 5)
    with pytest.raises(LocalModelError, match=r"^gone is not there$"):
        await doctor.try_embedder(local)
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
