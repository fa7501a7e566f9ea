"""The declaration of a field of a wine: where it is shown, searched, kept and imported."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WineField:
    """The uses that the product makes of a field of a wine.

    By default a field is only imported and stored. It is shown to nobody, and is no evidence.
    """

    is_evidence: bool = False
    """Whether the field is evidence, so that an answer may repeat it."""
    is_searched: bool = False
    """Whether the text of a search finds the words of the field."""
    in_cellar: bool = False
    """Whether the field is kept with the bottles of a user, and exported with them."""
    is_on_card: bool = False
    """A card tells it by the sentence `wine_<name>` of `languages/messages.pot`, whose placeholder
    is `{value}`, or `{count}` if it has a plural. What a card composes of several fields, such as
    the origin, is in `agent/sommelier/cards.py`."""
    model: str = ""
    """The name of the fact for a model. Without a name, the model does not get the field."""
    unsaid: str | bool | None = None
    """The usual value, which goes without saying. The model does not get it."""
    columns: str = ""
    """Further names of its column in wine lists, normalised (no accents, lower case) and separated
    by commas. A column named like the field comes first; of several others, the one with the most
    readable cells is used."""
    has_column: bool = True
    """Whether a wine list may have a column for the field."""
    is_stored: bool = True
    """Whether the table of wines has a column for the field."""

    @property
    def column_names(self) -> frozenset[str]:
        """Return the other names of the field's column in wine lists."""
        if not self.columns:
            return frozenset()
        return frozenset(self.columns.split(", "))
