"""What a stored execution names as its definition, built again: flags of the command line, or a module:attribute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from treadle.core.errors import ConfigurationError, DefinitionError, InputError

if TYPE_CHECKING:
    from treadle.spec.definitions import Loop
    from treadle.spec.workflows import Workflow

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


def names_definition(text: str) -> bool:
    """Whether it is spelled module:attribute."""
    return _NAME.fullmatch(text) is not None


def imported(name: str) -> Loop | Workflow:
    """What the module defines. ConfigurationError where it is not there, or is neither a Loop nor a Workflow; DefinitionError."""
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
    except InputError as error:
        raise DefinitionError(f"{name} is ill-defined: {error}") from error
    except Exception as error:  # importing runs the user's module, which may raise anything
        said = str(error).rstrip(".")
        raise ConfigurationError(
            f"The definition {name} cannot be imported: {type(error).__name__}: {said}."
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


def defined(definition: str, price: str | None) -> tuple[Loop, str, str | None]:
    """(the loop, its definition where that changed, its endpoint), from stored flags or imported as module:attribute."""
    from treadle.core.values import replace
    from treadle.spec.commandline import decode, encode

    if not definition:
        raise ConfigurationError("It was started from Python and names no definition: resume it from there.")
    if not definition.startswith("{"):
        from treadle.spec.definitions import Loop

        found = imported(definition)
        if not isinstance(found, Loop):
            raise ConfigurationError(f"{definition} is no Loop any more.")
        return found, "", None
    flags = decode(definition)
    if price is None:
        return flags.to_loop(), "", flags.base_url
    flags = replace(flags, price=price)
    return flags.to_loop(), encode(flags), flags.base_url
