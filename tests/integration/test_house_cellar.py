"""The house sommelier over the starter catalogue: what was ruled out is in no answer."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agent.ports import StoredMessage
from agent.sommelier import Reply, Sommelier
from agent.wine import Wine
from db.catalogue import load_starter
from db.engine import create_engine, session_factory
from db.migrate import upgrade
from db.repositories.wines import SqlCatalogue
from tests.fakes import root_span
