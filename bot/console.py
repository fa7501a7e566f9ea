"""The conversation in a terminal, through the same handlers as in Telegram.

In a terminal there is a prompt, colour and a spinner; in a pipe only the text of the answers.
"""

import asyncio
import contextlib
import io
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from agent.i18n import say, speaking
from bot.telegram.local_telegram import LocalTelegram
from bot.telegram.render import Piece, from_html

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.spinner import Spinner
    from rich.text import Text

    from bot.app import App

QUIT: Final = frozenset({"/quit", "/exit"})
LOCALE: Final = ("LC_ALL", "LC_MESSAGES", "LANG")
"""What the language of a terminal is set by."""
STYLES: Final = {"b": "bold", "i": "italic", "code": "cyan", "pre": "cyan", "blockquote": "dim"}


OpenApp = Callable[[LocalTelegram], AbstractAsyncContextManager["App"]]


class Screen(Protocol):
    """Where the conversation is typed and shown."""

    def lines(self) -> Iterator[str]:
        """What the person types, until the end of input."""
        ...

    def show(self, html: str) -> None:
        """Show one message of the bot."""
        ...

    def hint(self, text: str) -> None:
        """Say what can be typed now."""
        ...

    def waiting(self) -> AbstractContextManager[object]:
        """Say that something is going on, until the block ends."""
        ...


class Pipe:
    """Lines from standard input, the answers' bare text to standard output."""

    def lines(self) -> Iterator[str]:
        """Every line of standard input."""
        yield from sys.stdin or ()

    def show(self, html: str) -> None:
        """Print a message and an empty line after it."""
        print(plain_text(html), end="\n\n", flush=True)

    def hint(self, text: str) -> None:
        """Say nothing."""

    def waiting(self) -> AbstractContextManager[object]:
        """Say nothing."""
        return contextlib.nullcontext()


class Terminal:
    """A prompt, answers in colour, and above a spinner the draft of the one that forms."""

    def __init__(self, console: "Console", telegram: LocalTelegram) -> None:
        self._console, self._telegram = console, telegram

    def lines(self) -> Iterator[str]:
        """Lines typed at the prompt, with editing and history; until Ctrl-D."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415 - importing it is what turns editing on
        while True:
            try:
                yield input(say("terminal_prompt"))
            except EOFError:
                self._console.print()
                return

    def show(self, html: str) -> None:
        """Print a message between empty lines."""
        self._console.print()
        self._console.print(rich_text(html))
        self._console.print()

    def hint(self, text: str) -> None:
        """Print it dim, and an empty line after it."""
        self._console.print(text, style="dim", end="\n\n")

    def waiting(self) -> AbstractContextManager[object]:
        """What there is of the answer, and a spinner; gone when the block ends."""
        from rich.live import Live  # noqa: PLC0415
        from rich.spinner import Spinner  # noqa: PLC0415

        forming = partial(self._forming, Spinner("dots", f"[dim]{say('terminal_thinking')}"))
        return Live(
            console=self._console, get_renderable=forming, transient=True, refresh_per_second=10
        )

    def _forming(self, spinner: "Spinner") -> "Group":
        """The last lines of the draft, as many as there is room for."""
        from rich.console import Group  # noqa: PLC0415

        if not (draft := self._telegram.draft):
            return Group(spinner)
        lines = rich_text(draft).wrap(self._console, self._console.width)
        return Group("", *lines[-max(1, self._console.height - 4) :], "", spinner)


def is_terminal() -> bool:
    """Whether somebody types here, and reads."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def chat(open_app: OpenApp, *, has_model: bool) -> None:
    """Talk until the input ends, /quit, Ctrl-C or Ctrl-D; the conversation is forgotten then."""
    interactive = is_terminal()
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with (
            speaking(next(filter(None, map(os.environ.get, LOCALE)), None)),
            contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError),
        ):
            if not has_model and not interactive:
                print(say("terminal_no_model"), file=sys.stderr)
            telegram = LocalTelegram(shows_follow_ups=interactive)
            screen = _terminal(telegram, has_model=has_model) if interactive else Pipe()
            _run(open_app, telegram, screen, greet=interactive)
    except BrokenPipeError:
        # The reader has gone; the interpreter must not flush into the pipe again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminal(telegram: LocalTelegram, *, has_model: bool) -> Terminal:
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False)
    console.print(f"[bold]Sommelier[/] [dim]· {say('terminal_leave')}[/]")
    if not has_model:
        console.print(f"[dim]{say('terminal_no_model')}[/]")
    return Terminal(console, telegram)


def _run(open_app: OpenApp, telegram: LocalTelegram, screen: Screen, *, greet: bool) -> None:
    # The loop runs only while there is something to do: at the prompt Ctrl-C and line editing
    # then work as in any program.
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()
        try:
            with screen.waiting():
                app = runner.run(_open(open_app(telegram), telegram, opened))
            for line in itertools.chain(["/start"] if greet else [], screen.lines()):
                if line.strip() in QUIT:
                    break
                if not line.strip("\ufeff\r\n\t "):
                    continue
                with screen.waiting():
                    runner.run(_answered(app, telegram, line.strip("\ufeff\r\n")))
                for html in telegram.take():
                    screen.show(html)
                if telegram.hint:
                    screen.hint(telegram.hint)
        finally:
            # Nothing cuts the leaving off in the middle, nor what comes after it.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            runner.run(opened.aclose())


async def _open(
    opening: AbstractAsyncContextManager["App"], telegram: LocalTelegram, opened: AsyncExitStack
) -> "App":
    app = await opened.enter_async_context(opening)
    await app.application.initialize()
    opened.push_async_callback(app.talk.repositories.messages.forget, telegram.chat_id)
    return app


async def _answered(app: "App", telegram: LocalTelegram, line: str) -> None:
    """Have a line answered. The first Ctrl-C stops the answer that forms, the next one leaves.

    Raises:
        CancelledError: the person leaves.
    """
    loop, answering, presses = asyncio.get_running_loop(), asyncio.current_task(), itertools.count()

    def pressed() -> None:
        is_first = next(presses) == 0
        is_stopped = is_first and app.talk.turns.stop(chat_id=telegram.chat_id)
        if not is_stopped and answering is not None:
            answering.cancel()

    loop.add_signal_handler(signal.SIGINT, pressed)
    try:
        update = telegram.typed(line, app.application.bot)
        await app.application.process_update(update)
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def plain_text(html: str) -> str:
    """A message as plain text; a link is followed by its address in brackets."""
    return "".join(piece.text for piece in with_addresses(from_html(html)))


def rich_text(html: str) -> "Text":
    """A message as text for a terminal."""
    from rich.text import Text  # noqa: PLC0415

    text = Text()
    for piece in with_addresses(from_html(html)):
        styles = [STYLES[mark.tag] for mark in piece.marks if mark.tag in STYLES]
        text.append(piece.text, " ".join(styles))
    return text


def with_addresses(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces, each link followed by its address, unless the link says just that."""
    said = ""
    following = [*pieces[1:], Piece("")]
    for piece, after in zip(pieces, following, strict=True):
        yield piece
        link = next((mark for mark in piece.marks if mark.tag == "a"), None)
        said = said + piece.text if link else ""
        if link and link not in after.marks:
            if said.strip() != link.value:
                yield Piece(f" ({link.value})", piece.marks[: piece.marks.index(link)])
            said = ""
