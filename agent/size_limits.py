"""Size limits for input from outside: characters, bytes or numbers of items.

A text over its limit is cut, or refused with a message. The limit of a tool's result is not here,
but in `Limits.result_chars`.
"""

from typing import Final

MESSAGE_CHARS: Final = 8_000
"""A message of a user. Messages that are joined into one turn count as one."""
NAME_CHARS: Final = 64
"""The name of a person or a tool. Telegram allows 64 for a person."""

STORED_CHARS: Final = 2_000
"""A message in the stored history. Users get the full text."""
ANSWER_CHARS: Final = 32_000
"""An answer of a model. 6,000 tokens are some 24,000 characters."""
ARGUMENT_CHARS: Final = 32_000
"""The arguments of one tool call."""
REASONING_CHARS: Final = 100_000
"""The reasoning that a server wants back with the next request. A longer one is not sent back."""
MODEL_RESPONSE_BYTES: Final = 4_000_000
"""A whole response of a model's server. 64 calls with the longest arguments have 2,000,000."""
TOOL_CALLS: Final = 64
"""Tool calls in one answer."""
SERVICE_RESPONSE_BYTES: Final = 8_000_000
"""A response of Langfuse or of an embedding service. 64 long vectors have 5,800,000 bytes."""
SEARCH_RESPONSE_BYTES: Final = 2_000_000
"""A response of a web search."""

FILE_BYTES: Final = 20_000_000
"""A file that a user sends. Bots cannot download larger files from Telegram."""
TELEGRAM_RESPONSE_BYTES: Final = 2 * FILE_BYTES
IMAGES: Final = 8
"""Pictures of one message that are read (albums have up to ten), or pages of a scanned list."""
IMAGE_PIXELS: Final = 50_000_000
"""Pixels of a decoded picture. The best phone cameras take about as many."""
PICTURE_NAME_CHARS: Final = 120
"""A name, a region or a line of text read from a picture."""
WINES_PER_LIST: Final = 300
"""Wines of a wine list in pictures, all its pages together."""

DOCUMENT_PATH_CHARS: Final = 300
DOCUMENT_CHARS: Final = 5_000_000
"""The text of a document. The longest books have some 3,000,000 characters."""
PDF_PAGES: Final = 2_000
