"""Hostile files from users and from folders: refused, within limits that the test sets."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from agent.files import FileReader, TooCostly, Unreadable, parse_in_process
from agent.senses.sent_files import render_pages, to_data_url
from db.documents.adding import add_documents
from db.documents.reading import read_document
from db.documents.store import SqlDocumentStore
from db.engine import Sessions
from db.wines.lists.cellar import read_cellar
from db.wines.lists.importing import read_catalogue_safely
from db.wines.lists.problems import CatalogueFileError
from tests.acceptance.test_end_to_end import running_here
from tests.acceptance.test_pictures import recommending, seeing
from tests.attacks.hostile_files import (
    commas,
    large_picture,
    marks,
    nested_pdf,
    swelling_docx,
    swelling_epub,
    swelling_pdf,
    swelling_workbook,
)
from tests.attacks.limits import run_with_limits
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer
from tests.files import xlsx
from tests.pictures import drawn

MORE_MEMORY = 100_000_000
"""Bytes; the server that stands for Telegram, in this process too, keeps 20 MB several times."""
TABLES = [swelling_workbook(), commas(), commas(20)]
NO_LIST = "I can't find a list of wines in that file."


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Fail if this process needs much more memory at any time than at the beginning."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is used now
    before = memory_of_this_process("VmHWM")
    yield
    assert memory_of_this_process("VmHWM") - before < MORE_MEMORY


def memory_of_this_process(name: str) -> int:
    """Return a figure of `/proc/self/status` in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(
        1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")
    )


async def test_no_table_of_a_user_is_opened_in_the_bot(
    bot_api: BotApi, environment: dict[str, str], little_memory: None
) -> None:
    async with running_here(bot_api, environment):
        for chat_id, data in enumerate(TABLES, 7001):
            bot_api.send(
                "document", data, chat_id, file_name="mine.csv", file_size=None
            )
        for chat_id in range(7001, 7004):
            (said,) = await bot_api.wait_for_message(1, chat_id)
            assert said.startswith(NO_LIST)
        workbook = xlsx({"Cellar": [["name", "count"], ["Barolo 2016", 6]]})
        bot_api.send("document", workbook, 7001, file_name="mine.csv")
        assert "6 bottles" in (await bot_api.wait_for_message(2, 7001))[1]


async def test_no_picture_of_a_user_is_opened_in_the_bot(
    bot_api: BotApi,
    model_server: ModelServer,
    environment: dict[str, str],
    little_memory: None,
) -> None:
    model_server.default = recommending(intro="Gladly.")
    async with running_here(bot_api, environment, **seeing(model_server)):
        for _ in range(
            2
        ):  # in an album, Telegram gives a document no type if it has none
            bot_api.send("photo", drawn(["x"]), 7001, media_group_id="7")
            bot_api.send("document", large_picture(), 7001, media_group_id="7")
        bot_api.send("document", swelling_pdf(), 7002, mime_type="application/pdf")
        for chat_id in (7001, 7002):
            await bot_api.wait_for_message(1, chat_id, timeout=40)


@pytest.mark.parametrize(
    ("parse", "data", "arguments"),
    [
        (render_pages, nested_pdf, ()),
        (read_document, swelling_pdf, ("a.pdf",)),
        (read_document, swelling_docx, ("a.docx",)),
        (read_document, swelling_epub, ("a.epub",)),
        (read_document, commas, ("a.csv",)),
    ],
)
async def test_a_hostile_file_is_refused_within_limits(
    parse: Callable[..., object], data: Callable[[], bytes], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(Unreadable):
        await parse_in_process(parse, data(), *arguments, seconds=3)


def test_a_parser_keeps_a_lower_limit_that_it_inherits_and_gets_the_others() -> None:
    shown = run_with_limits(
        "import asyncio; from agent.files import parse_in_process;"
        "from tests.attacks.limits import read_own_limits;"
        "resource.setrlimit(resource.RLIMIT_AS, (900_000_000, 900_000_000));"
        "print(asyncio.run(parse_in_process(read_own_limits, b'', seconds=3)))"
    )
    assert shown == str({"processor seconds": 3, "bytes of memory": 900_000_000})


async def test_a_document_of_combining_marks_is_read() -> None:
    document = await parse_in_process(read_document, marks(), "a.md")
    assert sum(len(section.text) for section in document.sections) < 20


async def never() -> bytes:
    await asyncio.Event().wait()
    return b""


async def test_the_documents_of_others_do_not_delay_a_photo() -> None:
    files = FileReader()
    hostile = [
        asyncio.create_task(files.read(never, render_pages, user_id=number))
        for number in range(5)
    ]

    async def download() -> bytes:
        return drawn(["Chablis"])

    photo = await files.read(download, to_data_url, user_id=9, is_photo=True)
    assert photo.startswith("data:image/jpeg")
    assert not any(task.done() for task in hostile)
    for task in hostile:
        task.cancel()


async def test_one_document_of_a_user_is_read_at_a_time_and_none_waits_for_ever() -> (
    None
):
    files = FileReader(wait_seconds=0.2)
    begun: list[int] = []

    def downloading(number: int) -> Callable[[], Awaitable[bytes]]:
        async def download() -> bytes:
            begun.append(number)
            return await never()

        return download

    reads = [
        files.read(downloading(number), read_cellar, user_id=number // 2)
        for number in (0, 1)
    ]
    results = await asyncio.gather(*reads, return_exceptions=True)
    assert begun == [0]
    assert [type(result) for result in results] == [TooCostly, TooCostly]


async def test_only_regular_files_of_the_folder_itself_are_indexed(
    sessions: Sessions, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text(
        "The secret of the cellar is under the stairs."
    )
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "lees.md").write_text("Lees are dead yeast.")
    (folder / "same.md").symlink_to(folder / "lees.md")
    (folder / "stolen.txt").symlink_to("../secret.txt")
    (folder / "zero.txt").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.txt")
    report = await add_documents(SqlDocumentStore(sessions), [folder])
    assert report.added == ["notes/lees.md", "notes/same.md"]
    assert report.problems == [
        "notes/stolen.txt is a link that leaves the folder; copy the file",
        "notes/zero.txt is a link that leaves the folder; copy the file",
        "notes/pipe.txt is not a file",
    ]


@pytest.mark.parametrize(
    "name", ["/dev/zero", "pipe.csv", "workbook.csv", "commas.csv"]
)
async def test_a_wine_list_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "workbook.csv").write_bytes(swelling_workbook())
    (tmp_path / "commas.csv").write_bytes(commas(20))
    with pytest.raises(CatalogueFileError):
        await read_catalogue_safely(tmp_path / name)


async def test_the_cells_of_a_list_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    notes = "x" * 20_000 + marks(100_000).decode()
    path.write_text(f"producer,name,country,style,notes\nA,B,Italy,red,{notes}\n")
    (wine,) = (await read_catalogue_safely(path)).wines
    assert len(wine.notes) <= 5_000
    path.write_text(
        f"producer,name,country,style,notes\nA,B,Italy,red,{marks(100_000).decode()}\n"
    )
    (wine,) = (await read_catalogue_safely(path)).wines
    assert len(wine.notes) <= 9
