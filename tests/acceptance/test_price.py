"""What a turn may take at most, in counts: no clock is looked at, so no machine is too busy for it.

Who makes a turn dearer sees here by what. `python -m benchmarks.profile` prints the whole of it.
"""

from pathlib import Path

from benchmarks.profile import price_of_a_turn
from tests.databases import Databases

MOST = {
    "sqlite": {"modules": 92, "statements": 28, "commits": 5},
    "postgres": {"statements": 29, "commits": 5},
}
"""Of a turn with one tool, a few in a hundred more than when this was last lowered.

Six modules more than before: three check what is said of the shop, of critics and medals, and of
grapes; three are parts of modules that had grown too long: the text of a response, the draft that
forms, and the reply that is made of a response.

Calls and functions are not counted: a step that gets a name of its own is no dearer. On a busy
machine, more of the work beside the turn is counted: some two statements.
"""


async def test_a_turn_takes_no_more_than_it_did(
    tmp_path: Path, databases: Databases
) -> None:
    price = await price_of_a_turn(tmp_path, databases.create())
    taken = {
        "modules": len(price.modules),
        "statements": len(price.statements),
        "commits": price.commits,
    }
    dearer = {
        name: f"{taken[name]} > {most}"
        for name, most in MOST[databases.kind].items()
        if taken[name] > most
    }
    assert not dearer, (
        f"A turn with one tool grew dearer: {dearer}. Called most: {price.calls.most_common(8)}; "
        f"statements: {[each[:60] for each in price.statements]}. Read what is read twice once, "
        "leave out what only passes on; raise MOST only for what people get for it, and say so."
    )
