"""What /stats shows: a table for a phone."""

from dataclasses import replace
from datetime import date, timedelta

from bot.admin.page import parts, stats_table
from db.records import DayStats, Stats

TODAY = date(2026, 5, 7)
DAY = DayStats(
    TODAY,
    people=3,
    turns=40,
    retried=4,
    outcomes={"answered": 30, "salvaged": 4, "fallback": 4, "failed": 2},
    liked=5,
    disliked=1,
    tokens=1_234_567,
    cost_usd=0.4,
    median_seconds=2.34,
    p95_seconds=9.1,
)
QUIET = [DayStats(TODAY - timedelta(days=number)) for number in range(6, 0, -1)]


def test_outcomes_of_another_version_are_drawn_as_other() -> None:
    assert parts(DayStats(TODAY, turns=3, outcomes={"failed": 1, "postponed": 2})) == [
        ("failed", 1),
        ("other", 2),
    ]


def test_the_table_fits_a_phone() -> None:
    week = replace(DAY, people=1234, turns=120_000, median_seconds=3.45, cost_usd=123.4)
    assert stats_table(Stats((*QUIET, DAY), week)).splitlines() == [
        "                  today    7 days",
        "people                3     1,234",
        "turns                40   120,000",
        "retried          4  10%    4   0%",
        "failed           2   5%    2   0%",
        "salvaged         4  10%    4   0%",
        "fallback         4  10%    4   0%",
        "refused          0   0%    0   0%",
        "cost              $0.40   $123.40",
        "tokens            1.2 M     1.2 M",
        "median            2.3 s     3.5 s",
        "95 % within       9.1 s     9.1 s",
        "👍 / 👎             5 / 1     5 / 1",
    ]


def test_the_table_keeps_its_width_when_days_are_very_busy() -> None:
    outcomes = {"fallback": 123_456, "failed": 700_000}
    busy = replace(DAY, turns=1_000_000, retried=999_999, outcomes=outcomes, people=98_765)
    lines = stats_table(Stats((*QUIET, busy), busy)).splitlines()
    assert max(map(len, lines)) <= 34
    assert "fallback      123k  12% 123k  12%" in lines


def test_the_table_of_days_without_turns_has_no_shares() -> None:
    assert "failed                0         0" in stats_table(Stats((*QUIET,), QUIET[0]))
