"""Talk in a terminal, through the handlers that Telegram has too.

In a terminal there is a prompt, and the answer as it forms; in a pipe only the text of the answers.
"""

import asyncio
import contextlib
import io
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from agent.i18n import translate, use_language
from agent.turn import Change
from bot.app import open_dispatcher
from bot.resources import Repositories, open_resources
from bot.running import forget_old
from bot.tasks import bounded
from bot.telegram.dispatch import Dispatcher
from bot.telegram.local import TOKEN, LocalTelegram
from bot.telegram.render import Piece, from_html
from bot.tracing import forget_people
from config import Settings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

QUIT: Final = frozenset({"/quit", "/exit"})
LOCALE: Final = ("LC_ALL", "LC_MESSAGES", "LANG")
STYLES: Final = {"b": "bold", "i": "italic", "code": "cyan", "pre": "cyan", "blockquote": "dim"}


def is_terminal() -> bool:
    """Tell whether a user types here, and reads."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def chat(settings: Settings) -> None:
    """Talk until the input ends, /quit, Ctrl-C or Ctrl-D; the conversation is forgotten then."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    language = next(filter(None, map(os.environ.get, LOCALE)), None)
    try:
        with use_language(language), contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
            _converse(settings, LocalTelegram(), _introduce(has_model=settings.server is not None))
    except BrokenPipeError:
        # The reader has gone; the interpreter must not flush into the pipe again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _introduce(*, has_model: bool) -> "Console | None":
    """Say how to leave and to get a model. Return the terminal, None in a pipe."""
    if not is_terminal():
        if not has_model:
            print(translate("terminal_no_model"), file=sys.stderr)
        return None
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False)
    console.print(f"[bold]Sommelier[/] [dim]· {translate('terminal_leave')}[/]")
    if not has_model:
        console.print(f"[dim]{translate('terminal_no_model')}[/]")
    return console


def _converse(settings: Settings, telegram: LocalTelegram, console: "Console | None") -> None:
    # The loop runs only while there is something to do: at the prompt Ctrl-C and line editing
    # then work as in any program.
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()
        try:
            with _waiting(telegram, console):
                dispatcher = runner.run(opened.enter_async_context(_open_chat(settings, telegram)))
            for typed in _lines(console):
                line = typed.strip("\ufeff\r\n\t ")
                if line in QUIT:
                    break
                if not line:
                    continue
                with _waiting(telegram, console):
                    runner.run(_answer(dispatcher, telegram, line))
                _show(telegram, console)
        finally:
            # A second Ctrl-C must not interrupt the clean-up.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            runner.run(opened.aclose())


@asynccontextmanager
async def _open_chat(settings: Settings, telegram: LocalTelegram) -> AsyncIterator[Dispatcher]:
    """Open a conversation in this process alone: a turn is over when its handler returns.

    At its end its messages and what the user told of themselves are forgotten: the next user may
    be somebody else.
    """
    async with (
        open_resources(settings) as resources,
        open_dispatcher(settings, resources, TOKEN, telegram=telegram) as dispatcher,
    ):
        await dispatcher.bot.initialize()
        await forget_old(settings, dispatcher.conversation)
        try:
            yield dispatcher
        finally:
            repositories, personal = resources.repositories, resources.repositories.personal
            forget_user = partial(_forget_user, repositories, telegram.chat_id)
            await bounded("forgetting the user", forget_user)
            await bounded("forgetting people", partial(forget_people, settings, personal))


async def _forget_user(repositories: Repositories, user_id: int) -> None:
    await repositories.messages.forget(user_id)
    await repositories.memory.forget_concerns(user_id)
    facts = tuple(await repositories.memory.facts(user_id))
    await repositories.turns.change([Change(user_id=user_id, removed_facts=facts)])


async def _answer(dispatcher: Dispatcher, telegram: LocalTelegram, line: str) -> None:
    """Have a line answered. Ctrl-C stops the answer that forms; without one it leaves.

    Raises:
        CancelledError: the user leaves.
    """
    loop, answering = asyncio.get_running_loop(), asyncio.current_task()
    running = dispatcher.conversation.turns.running

    def press_ctrl_c() -> None:
        if not running.stop(chat_id=telegram.chat_id) and answering is not None:
            answering.cancel()

    loop.add_signal_handler(signal.SIGINT, press_ctrl_c)
    try:
        await dispatcher.handle(telegram.update_of(line))
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _lines(console: "Console | None") -> Iterator[str]:
    """Yield the lines of standard input; at a terminal a greeting, then lines until Ctrl-D."""
    if console is None:
        yield from sys.stdin or ()
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - importing it is what turns editing on
    yield "/start"
    with contextlib.suppress(EOFError):
        while True:
            yield input(translate("terminal_prompt"))
    console.print()


def _show(telegram: LocalTelegram, console: "Console | None") -> None:
    """Print the messages that were sent; at a terminal with the buttons that can be pressed."""
    for html in telegram.take():
        if console is None:
            print(rich_text(html).plain, end="\n\n", flush=True)
        else:
            console.print("", rich_text(html), "", sep="\n")
    buttons = [f"{number} {button['text']}" for number, (_, button) in telegram.buttons.items()]
    if console is not None and buttons:
        console.print("   ".join(buttons), style="dim", markup=False, end="\n\n")


def _waiting(telegram: LocalTelegram, console: "Console | None") -> AbstractContextManager[object]:
    """Show the answer as it forms, at a terminal; gone when the block ends."""
    if console is None:
        return contextlib.nullcontext()
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    def forming() -> "Text":
        lines = rich_text(telegram.draft).wrap(console, console.width) if telegram.draft else ()
        shown = [*lines[-max(1, console.height - 4) :], Text(translate("terminal_thinking"), "dim")]
        return Text("\n").join(shown)

    return Live(console=console, get_renderable=forming, transient=True, refresh_per_second=10)


def rich_text(html: str) -> "Text":
    """Return a message as text for a terminal; a link is followed by its address in brackets."""
    from rich.text import Text  # noqa: PLC0415

    text, pieces = Text(), from_html(html)
    for piece, following in itertools.zip_longest(pieces, pieces[1:], fillvalue=Piece("")):
        styles = [STYLES[mark.tag] for mark in piece.marks if mark.tag in STYLES]
        text.append(piece.text, " ".join(styles))
        for link in (mark for mark in piece.marks if mark.tag == "a"):
            if link not in following.marks and piece.text.strip() != link.value:
                text.append(f" ({link.value})")
    return text
