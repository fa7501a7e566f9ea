"""The declaration of a field of a wine: where it is told, searched, kept and imported."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WineField:
    """Says what the product does with a field of a wine, besides its name and type.

    By default a field is only imported and stored: nobody is told of it, and it grounds nothing.
    """

    is_evidence: bool = False
    """An answer may say what it says; without this, it grounds nothing."""
    is_searched: bool = False
    """The text of a search finds its words."""
    in_cellar: bool = False
    """It is kept with the bottles that a user owns, and exported with them."""
    is_on_card: bool = False
    """A card tells it by the sentence `wine_<name>` of `languages/messages.pot`, whose placeholder
    is `{value}`, or `{count}` if it has a plural. What a card composes of several fields, such as
    the origin, is in `agent/sommelier/cards.py`."""
    model: str = ""
    """The name of the fact by which a model is told it; without this, a model is not."""
    unsaid: str | bool | None = None
    """The value that goes without saying: a model is not told it."""
    columns: str = ""
    """Further names of its column in wine lists, normalised (no accents, lower case) and separated
    by commas. A column named like the field comes first; of several others, the one with the most
    readable cells is used."""
    has_column: bool = True
    """A column of a wine list tells it."""
    is_stored: bool = True
    """It has a column in the table of wines."""

    @property
    def column_names(self) -> frozenset[str]:
        """Return the further names of its column in wine lists."""
        if not self.columns:
            return frozenset()
        return frozenset(self.columns.split(", "))
