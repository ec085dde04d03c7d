"""How much a model reads and writes at once: from the model library's data where it knows it, else cautiously."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pydantic_ai.models import Model as LibraryModel

HOSTED_WINDOW = 128_000  # what every hosted model of the last years reads
SERVED_WINDOW = (
    32_768  # of one's own server: it may cut what is longer without a word, so rather too little than too much
)
MOST_OUTPUT = 16_384  # more is never asked for unasked: a lost request may have cost all of it
PLAIN_OUTPUT = 8_192  # of a model that does not reason and whose limit is unknown; more is refused by some


class Sizes(NamedTuple):
    """Tokens of input and output together, and of output as it is asked for."""

    context_window: int
    max_output_tokens: int


def sizes_of(
    library_model: LibraryModel,
    *,
    provider: str,
    served: bool,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
) -> Sizes:
    """The sizes; what is given wins. `provider` is the price data's name for it, `served`: by a server of one's own."""
    window = context_window or library_model.context_window or _known_window(library_model.model_name, provider)
    window = window or (SERVED_WINDOW if served else HOSTED_WINDOW)
    profile = library_model.profile
    limit = profile.get("anthropic_max_output_tokens") or (
        MOST_OUTPUT if profile.get("supports_thinking") else PLAIN_OUTPUT
    )
    return Sizes(window, max_output_tokens or min(int(str(limit)), MOST_OUTPUT, window // 4))


def _known_window(model: str, provider: str) -> int | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(model, None, provider, None)[1].context_window
    except LookupError:
        return None
