"""The built-in tools (AG-23): those of one workspace, and those that steer the conversation."""

from .control import ControlTools
from .workspace import WorkspaceTools

__all__ = ["ControlTools", "WorkspaceTools"]
