"""The declaration of a field of a wine: where it is shown, searched, kept and imported."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WineField:
    """The uses that the product makes of a field of a wine.

    By default a field is only imported and stored. Such a field is shown to nobody, and is no
    evidence.
    """

    is_evidence: bool = False
    """Whether the field is evidence, so that an answer may repeat it."""
    is_searched: bool = False
    """Whether the text of a search finds the words of the field."""
    in_cellar: bool = False
    """Whether the field is kept with the bottles of a user, and exported with them."""
    is_on_card: bool = False
    """Whether a card states the field by a sentence of its own.

    The sentence is `wine_<name>` in `languages/messages.pot`. Its placeholder is `{value}`, or
    `{count}` if the sentence has a plural. What a card composes of several fields, such as the
    origin, is in `agent/sommelier/cards.py`.
    """
    model: str = ""
    """The name of the fact for a model. Without a name, the model does not get the field."""
    unsaid: str | bool | None = None
    """The usual value, which goes without saying. The model does not get it."""
    columns: str = ""
    """Further titles of the field's column in wine lists, separated by commas.

    They are normalised: lower case, without accents. A column with the field's own name as its
    title comes first. Of several others, the one with the most readable cells is used.
    """
    has_column: bool = True
    """Whether a wine list may have a column for the field."""
    is_stored: bool = True
    """Whether the table of wines has a column for the field."""

    @property
    def column_titles(self) -> frozenset[str]:
        """Return the further titles of the field's column in wine lists."""
        if not self.columns:
            return frozenset()
        return frozenset(self.columns.split(", "))
