"""`python -m tests.attacks [N]`: every attack, or N of them; findings by kind, status 1 if any.

`--write` puts the table into docs/attacks.md.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.attacks.corpus import Attack, attacks, sample
from tests.attacks.judge import Finding, Judge
from tests.attacks.stage import staged

DOCUMENT = Path(__file__).parents[2] / "docs" / "attacks.md"
BEGIN, END = "<!-- attacks -->", "<!-- /attacks -->"


async def run(wanted: Sequence[Attack], home: Path, *, writes: bool = False) -> bool:
    """Whether nothing was found; prints what was."""
    async with staged(home, wanted) as stage:
        began = time.monotonic()
        await stage.run(wanted)
        seconds = time.monotonic() - began
        judge = Judge(stage, wanted)
        found, effects = judge.findings(), judge.effects()
        outcomes = stage.rows("SELECT outcome, count(*) FROM turns GROUP BY outcome")
        second = stage.second
    shown = table(wanted, found)
    print(shown)
    for each in found:
        print(each.line())
    print("\n".join(effects))
    print(f"{len(wanted)} attacks in {seconds:.0f} s, outcomes {dict(outcomes)}")
    answered = [each for each in second if each is not None]
    print(
        f"second chat: {len(answered)} of {len(second)} answered; {len(stage.refused)} not imported"
    )
    if writes:
        beside = f"Beside them {len(answered)} of {len(second)} ordinary questions were answered."
        write(f"{shown}\n\n{beside} Effects on data and others: {len(effects)}.")
    print(f"{len({each.attack.ref for each in found})} attacks with findings")
    return not found and not effects and answered == second


def table(wanted: Sequence[Attack], found: Sequence[Finding]) -> str:
    """By kind: how many texts, and how many of them with which finding."""
    lines = ["| kind | texts | with findings | of which |", "| :-- | --: | --: | :-- |"]
    for kind, texts in sorted(Counter(each.kind for each in wanted).items()):
        its = [each for each in found if each.attack.kind == kind]
        whats = Counter(what for what, _ in {(each.what, each.attack.ref) for each in its})
        named = ", ".join(f"{what} {count}" for what, count in whats.most_common())
        struck = len({each.attack.ref for each in its})
        lines.append(f"| {kind.replace('_', ' ')} | {texts} | {struck} | {named} |")
    attacked = len({each.attack.ref for each in found})
    return "\n".join([*lines, f"| all | {len(wanted)} | {attacked} | |"])


def write(result: str) -> None:
    """Put the table into the document, in place of the last one."""
    head, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    DOCUMENT.write_text(f"{head}{BEGIN}\n\n{result}\n\n{END}{tail}")


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("number", nargs="?", type=int, help="how many; all without it")
    parser.add_argument("--write", action="store_true", help="put the table into the document")
    given = parser.parse_args(arguments)
    wanted = sample(given.number) if given.number else attacks()
    with tempfile.TemporaryDirectory(prefix="sommelier-attacks-") as home:
        return 0 if asyncio.run(run(wanted, Path(home), writes=given.write)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
