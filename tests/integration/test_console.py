"""The conversation in a terminal and through a pipe."""

import codecs
import json
import os
import pty
import re
import select
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agent.i18n import translate_into
from tests.acceptance.test_end_to_end import ANSWER
from tests.acceptance.test_mcp import informed
from tests.commands import sommelier_here
from tests.doubles.mcp_tools import entry
from tests.doubles.model_server import (
    ModelServer,
    answer_json,
    hang,
    paced,
    tool_call,
)
from tests.processes import Process

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def pipe(lines: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return sommelier_here("chat", environment=environment, typed=lines)


def test_a_piped_line_is_answered_in_plain_text_and_the_end_of_input_ends_it(
    empty_environment: dict[str, str],
) -> None:
    done = pipe("a red for lamb under 25 euros\n", empty_environment)
    assert done.returncode == 0
    prices = [float(price) for price in re.findall(r"≈ €([\d.]+)", done.stdout)]
    assert prices
    assert max(prices) <= 25
    assert not re.search(r"\x1b|\*\*|<b>|›|Hello!", done.stdout)
    assert done.stderr.splitlines() == [
        "For answers by a language model set OPENAI_API_KEY or OPENAI_BASE_URL in .env; "
        "sommelier doctor --settings lists every setting."
    ]


def test_piped_lines_are_one_conversation_which_the_next_does_not_remember(
    environment: dict[str, str],
) -> None:
    german = environment | {"LANG": "de_DE.UTF-8"}
    lines = "/new\n\n  \nRotwein zu Lamm\nIch bin schwanger\nund einen weißen?\n/quit\n/help\n"
    first = pipe(lines, german)
    again = pipe("/new\nRotwein zu Lamm\n/new\n", environment)
    assert first.returncode == 0
    assert first.stdout.startswith(translate_into("de", "nothing_to_forget"))
    assert first.stdout.count("Alkoholfreier Wein") >= 3
    assert "Alkoholfreier" not in again.stdout
    assert first.stderr.strip() == translate_into("de", "terminal_no_model")
    assert again.stdout.startswith(translate_into("en", "nothing_to_forget"))
    assert again.stdout.rstrip().endswith(translate_into("de", "forgotten"))


def test_look_ups_are_answered_and_a_crisis_in_a_command_is_noticed(
    environment: dict[str, str],
) -> None:
    done = pipe(
        "/ask what does sur lie mean?\n/quotes cork taint\n/find wine bar Lyon\n/find\n"
        "/taste Riesling\n/wine\n/find ich will nicht mehr leben\n",
        environment,
    )
    answer, quotes, places, *others = re.split(
        r"\n\n(?=1\. |Wine bar|What sh)", done.stdout
    )
    assert "Sources\n[1] Sur lie: ageing on the lees · " in answer
    assert quotes.startswith("1. Cork taint · ")
    assert places == "Wine bar · Lyon\n\n" + translate_into("en", "no_place_search")
    queries, replies = others
    assert queries.count(" (https://duckduckgo.com/?q=") == 10
    sentences = ("find_usage", "only_in_telegram", "unknown_command")
    *messages, crisis = replies.split("\n\n", 3)
    assert messages == [translate_into("en", name) for name in sentences]
    assert "0800 111 0 111" in crisis


def test_help_in_a_terminal_named_commands_that_work_in_telegram_only(
    environment: dict[str, str],
) -> None:
    done = pipe("/help\n/shop are you open?\n", environment)
    assert "/quotes" in done.stdout
    assert "/cellar" not in done.stdout
    assert done.stdout.rstrip().endswith(translate_into("en", "only_in_telegram"))


LEAVE_SECONDS = 60
"""A limit that no exit comes near."""


class PseudoTerminal:
    """`sommelier chat` in a pseudo-terminal."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._test_end, process_end = pty.openpty()
        files = dict.fromkeys(("stdin", "stdout", "stderr"), process_end)
        environment = environment | {"TERM": "xterm"}
        self.process = Process("chat", environment=environment, **files, terminal=True)
        os.close(process_end)
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder(
            "utf-8"
        )()  # a read may end within a character

    def type(self, keys: str) -> None:
        os.write(self._test_end, keys.encode())

    def wait_for(self, text: str, *, times: int = 1) -> None:
        """Read until the text was shown so many times."""
        while self.shown.count(text) < times:
            assert self._read(), self.shown

    def leave(self, keys: str, *, every: float = 3) -> int:
        """Type `keys` until the process exits. Return its exit status.

        A Ctrl-C just before readline waits for input is noticed only with the next key. So type
        again when nothing was shown for `every` seconds.
        """
        for _ in range(round(LEAVE_SECONDS / every)):
            if self.process.poll() is not None:
                break
            self.type(keys)
            while self._read(seconds=every):
                pass
        os.close(self._test_end)
        return self.process.wait(timeout=30)

    def _read(self, seconds: float = 30) -> bool:
        """Read what is shown next. Return False if nothing was shown within so many seconds."""
        ready, _, _ = select.select([self._test_end], [], [], seconds)
        try:
            data = os.read(self._test_end, 4096) if ready else b""
        except OSError:  # the process has closed its end
            self.process.wait(timeout=30)
            return False
        self.shown += ESCAPES.sub("", self._decoder.decode(data)).replace("\r", "")
        return bool(data)


SEARCH = tool_call(
    "search_wines", {"styles": ["white"], "foods": ["fish"], "text": "Trimbach"}
)
LONG = answer_json(
    ANSWER
    | {
        "intro": "For your trout, something dry. It is fresh and light.",
        "closing": " ".join(["Serve it cool, in a small glass."] * 12),
    }
)


def with_model(model: ModelServer, environment: dict[str, str]) -> dict[str, str]:
    return environment | {
        "OPENAI_API_KEY": "sk-secret",
        "OPENAI_BASE_URL": model.base_url,
    }


def test_in_a_terminal_drafts_are_shown_and_then_the_answer_once(
    model_server: ModelServer, environment: dict[str, str]
) -> None:
    # What is shown while a tool runs needs time until the next draft.
    model_server.script(SEARCH, replace(paced(LONG, 80), seconds=1))
    terminal = PseudoTerminal(with_model(model_server, environment))
    terminal.wait_for("you › ")
    assert "Hello! I am your sommelier." in terminal.shown
    terminal.type("Something for trout?\n")
    terminal.wait_for("Searching the cellar")
    terminal.wait_for("you › ", times=2)
    *drafts, answer = terminal.shown.split("thinking …")
    assert any("1. Trimbach" in draft for draft in drafts)
    assert answer.count("1. Trimbach") == 1
    assert terminal.leave("\x03") == 0


def test_the_first_ctrl_c_stops_the_answer_and_the_next_leaves(
    model_server: ModelServer, environment: dict[str, str]
) -> None:
    terminal = PseudoTerminal(with_model(model_server, environment))
    terminal.wait_for("you › ")
    model_server.script(SEARCH, paced(LONG, 20))
    terminal.type("Something for trout?\n")
    terminal.wait_for("1. Trimbach")
    terminal.type("\x03")
    terminal.wait_for("Stopped here, as you asked.")
    terminal.wait_for("you › ", times=2)
    assert "1. Trimbach" in terminal.shown.split("thinking …")[-1]
    model_server.script(SEARCH, hang(60))
    terminal.shown = ""
    terminal.type("Something for trout?\n")
    terminal.wait_for("Searching the cellar")
    assert terminal.leave("\x03", every=0.02) == 0
    assert "Traceback" not in terminal.shown


@pytest.mark.parametrize(("key", "is_run"), [("n", False), ("y", True)])
def test_a_proposed_tool_call_runs_only_if_the_user_agrees(
    model_server: ModelServer,
    environment: dict[str, str],
    tmp_path: Path,
    key: str,
    is_run: bool,
) -> None:
    notes = tmp_path / "notes"
    settings = with_model(model_server, environment)
    settings["MCP_SERVERS"] = json.dumps({"desk": entry(notes)})
    model_server.script(
        tool_call("desk__add_note", {"text": "cheese"}), informed("I would note it.")
    )
    terminal = PseudoTerminal(settings)
    terminal.wait_for("you › ")
    terminal.type("Note cheese\n")
    terminal.wait_for("▶ desk__add_note [y/n] (n): ")
    assert 'desk__add_note {"text": "cheese"}' in terminal.shown
    terminal.type(f"{key}\n")
    terminal.wait_for("you › ", times=2)
    assert ("desk__add_note has run." in terminal.shown) == notes.exists() == is_run
    assert terminal.leave("\x04") == 0
    assert "Traceback" not in terminal.shown


def test_a_pipe_gets_only_the_answer(
    model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.script(SEARCH, paced(LONG, 400))
    done = pipe("Something for trout?\n", with_model(model_server, environment))
    assert done.returncode == 0
    assert done.stdout.startswith("For your trout, something dry.")
    assert done.stdout.count("1. Trimbach") == 1
    assert not re.search(r"\x1b|Searching|thinking", done.stdout + done.stderr)
