"""Addresses of this bot's HTTP server that lead on to the pages of wines.

The buttons of wines open these addresses, so that the bot can count the presses. An address holds
the id of a wine and a signature. The page is looked up in the catalogue by the id, so nobody can
make an address that leads elsewhere. The signature shows that the bot has made the address, so
nobody can have a press counted without a button.
"""

import hmac
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from agent.sommelier.wine import Wine

CLICK_PATH: Final = "/go"
SIGNATURE_DIGITS: Final = 16
"""Enough digits that nobody can guess a signature, and few enough for a short address."""


@dataclass(frozen=True, slots=True)
class CountedLinks:
    """Makes and checks signed addresses of this server."""

    base_url: str
    """The public address of this server."""
    key: SecretStr
    """The secret with which addresses are signed."""

    def address_of(self, wine: Wine) -> str:
        """Return the address that leads on to the page of a wine."""
        signature = self._sign(wine.id)
        return f"{self.base_url}{CLICK_PATH}/{wine.id}/{signature}"

    def is_signed(self, wine_id: str, signature: str) -> bool:
        """Return whether the bot has made the address with this id and signature."""
        expected = self._sign(wine_id)
        return hmac.compare_digest(signature.encode(), expected.encode())

    def _sign(self, wine_id: str) -> str:
        """Return the signature of an id."""
        key = self.key.get_secret_value().encode()
        digest = hmac.digest(key, wine_id.encode(), "sha256")
        return digest.hex()[:SIGNATURE_DIGITS]
