"""Loops and workflows that a Python module defines, named as module:attribute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from treadle.core.errors import ConfigurationError

if TYPE_CHECKING:
    from treadle.spec.definitions import Loop
    from treadle.spec.workflows import Workflow

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


def names_definition(text: str) -> bool:
    """Whether it is spelled module:attribute."""
    return _NAME.fullmatch(text) is not None


def imported(name: str) -> Loop | Workflow:
    """What the module defines. ConfigurationError where it is not there, or is neither a Loop nor a Workflow."""
    import sys
    from importlib import import_module
    from pathlib import Path

    from treadle.spec.definitions import Loop
    from treadle.spec.workflows import Workflow

    module_name, _, attribute = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        found: object = import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise ConfigurationError(
            f"The definition {name} cannot be imported: {type(error).__name__}: {error}."
            " Run this where it can be (the current folder counts)."
        ) from error
    if not isinstance(found, Loop | Workflow):
        raise ConfigurationError(f"{name} is no Loop and no Workflow.")
    return found


def workflow_of(definition: str, execution_id: str) -> Workflow:
    """The workflow that a stored execution names. ConfigurationError."""
    from treadle.spec.workflows import Workflow

    if not definition:
        raise ConfigurationError(
            f"{execution_id} was started from Python and names no definition: go on with it from there, by resume_workflow."
        )
    found = imported(definition)
    if not isinstance(found, Workflow):
        raise ConfigurationError(f"{definition} is no Workflow any more.")
    return found
