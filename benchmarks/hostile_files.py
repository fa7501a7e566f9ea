"""Measure the memory of the running bot, and of its parsers, under hostile files.

The bot runs as its operator runs it, in a process of its own; each user sends a file at the same
time. The bot's own memory is exact (the peak that the kernel keeps). Its children are the parsers,
which end after each file and have a limit of their own; what they share is counted once (PSS), and
sampled, so a shorter peak may be missed. The same for `documents add` and `wines import`, above
what a small file takes.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.test_end_to_end import telegram_at
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
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer
from tests.pictures import drawn

MB = 1_000_000
SAMPLE_SECONDS = 0.02
ANSWER_SECONDS = 180
PDF = {"mime_type": "application/pdf"}
SENT_FILES: dict[str, tuple[bytes, Mapping[str, Any]]] = {
    "workbook named .csv": (
        swelling_workbook(),
        {"file_name": "a.csv", "file_size": None},
    ),
    "2 MB of commas": (commas(), {"file_name": "a.csv", "file_size": None}),
    "20 MB of commas": (commas(20), {"file_name": "a.csv"}),
    "49 megapixels": (large_picture(), {}),
    "nested PDF": (nested_pdf(), PDF),
    "PDF that swells": (swelling_pdf(), PDF),
    "Word file that swells": (swelling_docx(), {"file_name": "a.docx"}),
    "book that swells": (swelling_epub(), {"file_name": "a.epub"}),
    "marks": (marks(), {"file_name": "a.csv"}),
}
DOCUMENTS = {
    "a.pdf": swelling_pdf(),
    "a.docx": swelling_docx(),
    "a.epub": swelling_epub(),
    "a.md": marks(),
    "a.csv": commas(),
}


class Watch:
    """The highest memory of a process and of its children, in MB, while the block runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.bot_mb = self.children_mb = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> "Watch":
        Path(f"/proc/{self.pid}/clear_refs").write_text(
            "5"
        )  # the peak is what is used now
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            self.bot_mb = max(self.bot_mb, _status_mb(self.pid, "VmHWM"))
            children = sum(_shared_mb(child) for child in _children_of(self.pid))
            self.children_mb = max(self.children_mb, children)


def _status_mb(pid: int, name: str) -> int:
    """Return a figure of the status of a process; 0 if it has ended."""
    return _read_kilobytes(Path(f"/proc/{pid}/status"), name) * 1024 // MB


def _shared_mb(pid: int) -> int:
    return _read_kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss") * 1024 // MB


def _read_kilobytes(file: Path, name: str) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0
    )


def _children_of(pid: int) -> Iterator[int]:
    """Yield the processes below one."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = file.read_text().split()
        except OSError:
            continue
        for child in children:
            yield int(child)
            yield from _children_of(int(child))


@contextmanager
def running_bot(environment: Mapping[str, str]) -> Iterator[int]:
    """Run the bot; yield its process id."""
    command = [sys.executable, "-m", "bot", "run"]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


def wait_until_answered(bot_api: BotApi, chat_ids: range) -> float:
    """Return the seconds until each chat has had an answer."""
    began = time.monotonic()
    for chat_id in chat_ids:
        while not bot_api.sent(chat_id):
            if time.monotonic() - began > ANSWER_SECONDS:
                raise RuntimeError(f"no answer in chat {chat_id}")
            time.sleep(0.1)
    return time.monotonic() - began


def measure_bot(folder: str) -> None:
    answer = recommending(intro="Gladly.")
    with BotApi() as bot_api, ModelServer(default=answer) as model:
        settings = telegram_at(bot_api) | seeing(model)
        places = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_DATA_HOME": folder}
        with running_bot(places | settings) as pid:
            bot_api.say("A red for lamb?", chat_id=1)
            bot_api.send("photo", drawn(["Chablis"]), 2)
            bot_api.send("document", b"name,count\nBarolo,1\n", 3, file_name="a.csv")
            wait_until_answered(bot_api, range(1, 4))
            time.sleep(2)  # what is loaded late is loaded then
            idle = _status_mb(pid, "VmRSS")
            with Watch(pid) as watch:
                for chat_id, (data, fields) in enumerate(SENT_FILES.values(), 101):
                    bot_api.send("document", data, chat_id, **fields)
                seconds = wait_until_answered(
                    bot_api, range(101, 101 + len(SENT_FILES))
                )
    print(
        f"{len(SENT_FILES)} hostile files of as many users at once, answered in {seconds:.0f} s:"
    )
    print(
        f"  the bot {watch.bot_mb - idle} MB above {idle} MB, its parsers {watch.children_mb} MB"
    )


def measure_command(folder: str, *arguments: str) -> tuple[int, int]:
    """Return the highest memory of a command and of its parsers in MB."""
    places = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_DATA_HOME": folder}
    command = [sys.executable, "-m", "bot", *arguments]
    output = subprocess.DEVNULL
    with (
        subprocess.Popen(command, env=places, stdout=output, stderr=output) as process,
        Watch(process.pid) as watch,
    ):
        while process.poll() is None:
            time.sleep(SAMPLE_SECONDS)
    return watch.bot_mb, watch.children_mb


def measure_commands(folder: str) -> None:
    harmless, hostile = Path(folder, "harmless"), Path(folder, "hostile")
    harmless.mkdir()
    hostile.mkdir()
    (harmless / "a.md").write_text("Lees are dead yeast.")
    (harmless / "a.csv").write_text("producer,name,country,style\nA,B,Italy,red\n")
    for name, data in DOCUMENTS.items():
        (hostile / name).write_bytes(data)
    documents, wines = ("documents", "add"), ("wines", "import")
    small = {
        documents: measure_command(folder, *documents, str(harmless)),
        wines: measure_command(folder, *wines, str(harmless / "a.csv")),
    }
    large = {
        documents: measure_command(folder, *documents, str(hostile)),
        wines: measure_command(folder, *wines, str(hostile / "a.csv")),
    }
    for command, (idle, _) in small.items():
        most, parsers = large[command]
        name = " ".join(command)
        print(f"  {name}: {most - idle} MB above {idle} MB, its parsers {parsers} MB")


def measure_files() -> None:
    """Print the memory of the bot and of the commands that read files."""
    with tempfile.TemporaryDirectory() as folder:
        measure_bot(folder)
        measure_commands(folder)


if __name__ == "__main__":
    measure_files()
