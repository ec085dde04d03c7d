"""The built-in tools (AG-23): those of one workspace, those that steer the conversation, and those of the plan."""

from .control import ControlTools
from .planning import PlanTools
from .workspace import WorkspaceTools

__all__ = ["ControlTools", "PlanTools", "WorkspaceTools"]
