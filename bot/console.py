"""Talk in a terminal: every line is a command or a turn of one conversation.

In a terminal there is a prompt, and the answer as it forms; in a pipe only the text of the answers.
"""

import asyncio
import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Final, get_args

from rich.console import Console
from rich.live import Live
from rich.prompt import Confirm
from rich.text import Text

from agent.i18n import translate, use_language
from agent.mcp import McpServers, Proposal, open_servers
from agent.sommelier.answer import to_history
from agent.turn import AnswerFunction
from bot import look_ups
from bot.care import SafetyService
from bot.question import Kind, Question
from bot.resources import Resources, forget_old, open_resources, sommelier_of
from bot.tasks import in_background, run_shutdown_step
from bot.telegram.render import parse
from bot.tracing import send_traces
from bot.turn import TurnRunner
from config import Settings

QUIT: Final = ("/quit", "/exit")
LOOK_UPS: Final = {f"/{name}": name for name in get_args(look_ups.Name)}
ONLY_IN_TELEGRAM: Final = ("/taste", "/cellar", "/settings", "/privacy", "/export", "/forget")
SENTENCES: Final = {
    **{"/start": "greeting", "/help": "help", "/stop": "nothing_to_stop"},
    **dict.fromkeys(ONLY_IN_TELEGRAM, "only_in_telegram"),
}
"""The names of the sentences that answer commands without a turn."""
STYLES: Final = {"b": "bold", "i": "italic", "code": "cyan", "pre": "cyan", "blockquote": "dim"}
DRAFT_SECONDS: Final = 0.1


def is_terminal() -> bool:
    """Tell whether a user types here, and reads."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def chat(settings: Settings) -> None:
    """Talk until the input ends, /quit, Ctrl-C or Ctrl-D; the conversation is forgotten then."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    language = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG")
    leaving = contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError, EOFError)
    with use_language(language), leaving:
        asyncio.run(_converse(settings, Console(highlight=False) if is_terminal() else None))


async def _converse(settings: Settings, console: Console | None) -> None:
    """Answer every line, then forget the conversation: the next user may be somebody else."""
    if console:
        console.print(f"[bold]Sommelier[/] [dim]· {translate('terminal_leave')}[/]")
    if settings.server is None:
        hint = translate("terminal_no_model")
        (console or Console(stderr=True)).print(hint, style="dim", soft_wrap=True)
    async with (
        open_resources(settings) as resources,
        send_traces(settings, resources.sessions),
        open_servers(settings.mcp_servers) as servers,
    ):
        chat = TerminalChat(resources, servers, console)
        await forget_old(settings, resources.repositories)
        for server in servers.connections:  # they cannot connect while a line is awaited
            await server.settled.wait()
        # The event loop is blocked while a line is awaited: let Ctrl-C end that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            for line in _lines(console):
                await chat.answer(line)
        finally:
            # A second Ctrl-C must not interrupt the clean-up.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            await run_shutdown_step("forgetting the user", chat.forget)


def _lines(console: Console | None) -> Iterator[str]:
    """Yield the lines of standard input until /quit; at a terminal greet, and prompt for them."""
    typed = iter(sys.stdin or ())
    if console:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415 - importing it is what turns editing on
        console.print("", rich_text(translate("greeting")), "", sep="\n")
        typed = iter(lambda: input(translate("terminal_prompt")), "/quit")
    for text in typed:
        line = text.strip("\ufeff\r\n\t ")
        if line in QUIT:
            return
        if line:
            yield line


class TerminalChat:
    """The conversation of one user, in this process alone; at a `console` with drafts.

    `id` stands for the user and their chat. It is above every id of Telegram's (52 bits), so that
    a conversation here never mixes with one there.
    """

    def __init__(self, resources: Resources, servers: McpServers, console: Console | None) -> None:
        self.id, self.console = (1 << 52) + os.getpid(), console
        self.resources, self.servers = resources, servers
        self.sommelier = sommelier_of(resources, servers)
        self.messages, self.memory = resources.repositories.messages, resources.repositories.memory
        self.turns = TurnRunner(
            base_run=resources.run,
            safety=SafetyService(help=resources.help, memory=self.memory),
            store=resources.repositories.turns,
        )

    async def answer(self, line: str) -> None:
        """Answer a command, or a message to the sommelier; raise CancelledError to leave."""
        command, _, words = line.partition(" ")
        if not command.startswith("/"):
            await self._recommend(line)
            return
        if name := LOOK_UPS.get(command):
            found = look_ups.read_look_up(name, words, self.resources)
            if isinstance(found, look_ups.LookUp):
                await self._run_turn(self._question(found.question, name), found.work)
                return
            sentence = found
        elif command == "/new":
            count = await self.messages.forget(self.id)
            await self.turns.safety.forget(self.id)
            sentence = translate("forgotten" if count else "nothing_to_forget")
        else:
            sentence = translate(SENTENCES.get(command, "unknown_command"))
        help_offered = await self.turns.offer_help(self._question(line))
        self._show(help_offered.full_text if help_offered else sentence)

    async def _recommend(self, message: str) -> None:
        """Show the sommelier's answer; run the tool calls that it proposes if the user agrees."""
        history = to_history(await self.messages.recent(self.id))
        proposals = await self._run_turn(
            self._question(message),
            lambda run: self.sommelier.answer(message, replace(run, history=history)),
        )
        for proposal in proposals if self.console else ():
            title = f"▶ {proposal.tool}"
            if Confirm.ask(title, console=self.console, default=False):
                work = partial(look_ups.run_proposal, proposal, servers=self.servers)
                await self._run_turn(self._question(title), work)

    def _question(self, text: str, kind: Kind = "chat") -> Question:
        name = f"terminal {self.id}"
        return Question(
            text=text, chat_id=self.id, user_id=self.id, session=name, user=name, kind=kind
        )

    async def _run_turn(self, question: Question, work: AnswerFunction) -> Sequence[Proposal]:
        """Run a turn and show its reply; return the tool calls that it proposes.

        Ctrl-C stops the answer, a second one leaves.
        """
        stop, drafts = question.state.stop, list[Callable[[], str]]()
        loop, turn = asyncio.get_running_loop(), asyncio.current_task()

        def press_ctrl_c() -> None:
            if stop.is_asked and turn:
                turn.cancel()
            stop.ask()

        loop.add_signal_handler(signal.SIGINT, press_ctrl_c)
        try:
            async with in_background(partial(_show_drafts, drafts, self.console)):
                reply = await self.turns.run_turn(
                    question, lambda run: work(replace(run, show_draft=drafts.append))
                )
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        self._show(reply.full_text)
        return reply.proposals

    def _show(self, markdown: str) -> None:
        text = rich_text(markdown)
        if self.console:
            self.console.print("", text, "", sep="\n")
        else:
            print(text.plain, end="\n\n", flush=True)

    async def forget(self) -> None:
        """Forget the messages, and everything that the user told of themselves."""
        await self.messages.forget(self.id)
        await self.memory.forget(self.id)


async def _show_drafts(drafts: Sequence[Callable[[], str]], console: Console | None) -> None:
    """Show the end of the newest draft at a terminal until cancelled; then it is gone."""
    if console is None:
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while True:
            draft = rich_text(drafts[-1]()) if drafts else Text()
            lines = draft.wrap(console, console.width)[-max(1, console.height - 4) :]
            thinking = Text(translate("terminal_thinking"), "dim")
            live.update(Text("\n").join([*lines, thinking]), refresh=True)
            await asyncio.sleep(DRAFT_SECONDS)


def rich_text(markdown: str) -> Text:
    """Return Markdown as text for a terminal; a link is followed by its address in brackets."""
    shown = Text()
    for marks, styled in groupby(zip(*parse(markdown), strict=True), key=itemgetter(1)):
        style = " ".join(STYLES.get(mark.tag, "") for mark in marks)
        shown.append("".join(char for char, _ in styled), style)
        for mark in marks:
            if mark.tag == "a":
                shown.append(f" ({mark.value})")
    return shown
