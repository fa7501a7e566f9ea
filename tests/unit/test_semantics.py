"""The four rules of R-005 of the structured-output research."""

import pytest

from agent.sommelier.sommelier_prompts import (
    ResponseType,
    SommelierResponse,
    WineRecommendation,
    validate_semantic_content,
)

WINE = WineRecommendation(wine_id="a", description="Fresh.")
BARE = WineRecommendation(wine_id="a")


@pytest.mark.parametrize(
    ("kind", "intro", "wines", "closing", "valid"),
    [
        ("recommendation", "For you:", [WINE], "", True),
        ("recommendation", "", [WINE], "", True),
        ("recommendation", "For you:", [], "", False),
        ("recommendation", "", [BARE], " ", False),
        ("recommendation", "", [BARE], "Enjoy.", True),
        ("informational", "Tannin dries.", [], "", True),
        ("informational", "", [], "Tannin dries.", True),
        ("informational", "", [], "", False),
        ("off_topic", "I only know wine.", [], "", True),
        ("off_topic", " ", [], "I only know wine.", False),
    ],
)
def test_r005_a_valid_form_that_says_nothing_is_no_answer(
    kind: ResponseType,
    intro: str,
    wines: list[WineRecommendation],
    closing: str,
    valid: bool,
) -> None:
    response = SommelierResponse(
        response_type=kind, intro=intro, wines=wines, closing=closing
    )
    assert (validate_semantic_content(response) is None) == valid
