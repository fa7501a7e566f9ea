"""The conversation in a terminal and in a pipe, as a process of its own."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.console import plain_text, rich_text

CHAT = [sys.executable, "-m", "bot", "chat"]
ROOT = Path(__file__).parents[2]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An empty machine: no settings, no data, an empty home."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm",
    }


def piped(lines: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        CHAT,
        input=lines,
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_piped_line_is_answered_in_plain_text_and_the_end_of_input_ends_it(
    environment: dict[str, str],
) -> None:
    done = piped("a red for lamb under 25 euros\n", environment)
    assert done.returncode == 0
    prices = [float(price) for price in re.findall(r"≈ €([\d.]+)", done.stdout)]
    assert prices
    assert max(prices) <= 25
    assert not re.search(r"\x1b|\*\*|<b>|you ›|Hello!", done.stdout)
    assert done.stderr.splitlines() == [
        "For answers by a language model set OPENAI_API_KEY or OPENAI_BASE_URL in .env; "
        ".env.example lists every setting."
    ]


def test_several_piped_lines_are_turns_of_one_conversation_in_order(
    environment: dict[str, str],
) -> None:
    done = piped("/new\n\n  \na red for lamb\n/new\n/quit\n/help\n", environment)
    assert done.returncode == 0
    texts = [
        "There is nothing to forget yet. What would you like to drink?",
        "I have forgotten our conversation. What would you like to drink?",
    ]
    assert done.stdout.startswith(texts[0])
    assert done.stdout.rstrip().endswith(texts[1])
    assert done.stdout.count("forget our conversation") == 0


def test_nothing_of_a_piped_conversation_is_remembered_by_the_next(
    environment: dict[str, str],
) -> None:
    piped("a red for lamb\n", environment)
    assert piped("/new\n", environment).stdout.startswith("There is nothing to forget yet.")


def test_no_input_at_all_ends_quietly(environment: dict[str, str]) -> None:
    done = piped("", environment)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_reader_that_goes_away_ends_it_without_a_traceback(environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed_pipe:
        done = subprocess.run(
            CHAT,
            input=b"/help\n/help\n",
            stdout=closed_pipe,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=environment["HOME"],
            timeout=60,
            check=False,
        )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr


class PseudoTerminal:
    """A process that believes a person sits in front of it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            CHAT,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            cwd=environment["HOME"],
            start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509
        )
        os.close(theirs)
        self.shown = ""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            self._read()

    def leave(self, keys: str) -> int:
        """Type `keys`, again after a second if need be; the exit status.

        A Ctrl-C that comes in just before readline begins to wait is noticed with the next key.
        """
        for _ in range(30):
            self.type(keys)
            while self._read(seconds=1):
                pass
            if self.process.poll() is not None:
                break
        os.close(self._ours)
        return self.process.wait(timeout=1)

    def _read(self, seconds: float = 30) -> bool:
        ready, _, _ = select.select([self._ours], [], [], seconds)
        try:
            data = os.read(self._ours, 4096) if ready else b""
        except OSError:  # the other side is closed
            self.process.wait(timeout=10)
            return False
        self.shown += ESCAPES.sub("", data.decode(errors="replace")).replace("\r", "")
        return bool(data)


def take_terminal() -> None:
    import fcntl  # noqa: PLC0415
    import termios  # noqa: PLC0415

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("leave", ["/quit\n", "\x04", "\x03"])
def test_in_a_terminal_there_is_a_greeting_a_prompt_and_a_way_out(
    environment: dict[str, str], leave: str
) -> None:
    terminal = PseudoTerminal(environment)
    terminal.wait_for("you › ")
    assert "Hello! I am your sommelier." in terminal.shown
    assert "OPENAI_API_KEY" in terminal.shown
    terminal.shown = ""
    terminal.type("/new\n")
    terminal.wait_for("you › ")
    assert "There is nothing to forget yet." in terminal.shown
    assert terminal.leave(leave) == 0
    assert "Traceback" not in terminal.shown


HTML = (
    '<b>Chinon</b> &amp; <a href="https://x.org/?a=1&amp;b">the <i>maker</i></a>, '
    "<code>a&lt;b</code>"
)


def test_a_message_as_plain_text() -> None:
    assert plain_text(HTML) == "Chinon & the maker (https://x.org/?a=1&b), a<b"


def test_a_link_that_says_its_address_is_not_written_twice() -> None:
    assert plain_text('<a href="https://x.org">https://x.org</a>') == "https://x.org"


def test_a_message_for_a_terminal_keeps_its_styles() -> None:
    text = rich_text(HTML)
    assert text.plain == plain_text(HTML)
    assert [(text.plain[span.start : span.end], span.style) for span in text.spans] == [
        ("Chinon", "bold"),
        ("maker", "italic"),
        ("a<b", "cyan"),
    ]
