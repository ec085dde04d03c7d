"""Types checked alike with and without the extra `local`: its wheel brings none worth reading."""

from typing import Any

def __getattr__(name: str) -> Any: ...
