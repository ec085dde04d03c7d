"""The composition root: a definition becomes what the machine and its effects need. The only place that names adapters."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import msgspec

from treadle.context.prompt import static_prompt
from treadle.core.errors import ConfigurationError, DefinitionError
from treadle.core.redaction import Redactor, secrets_of
from treadle.core.scope_events import Isolation
from treadle.core.settings import MAP_TOKENS, AgentSettings, Guards, Limits, LoopSettings, Policy, with_guards
from treadle.core.usage import Usage
from treadle.effects.actors import CommandActor, FunctionActor
from treadle.effects.checks import CommandCheck, FunctionCheck, verify_command
from treadle.effects.lessons import LessonParts
from treadle.effects.model import unpriced
from treadle.effects.mounts import Mounts
from treadle.effects.parts import AgentParts, LoopParts
from treadle.effects.presets import command_of
from treadle.effects.scope import GitScope
from treadle.effects.worktrees import GitIsolated
from treadle.kernel.mutation import needs_change
from treadle.kernel.plan_words import plan_prompt
from treadle.memory.rules import RuleBook
from treadle.memory.skills import Skill, SkillTools, catalogue, read_skills
from treadle.ports.callback import Actor, Check
from treadle.ports.clock import Clock
from treadle.ports.lessons import Lessons
from treadle.ports.model import Model
from treadle.ports.scope import Isolated
from treadle.ports.toolset import Toolset
from treadle.settings import Settings, map_cache
from treadle.spec.definitions import ActFunction, Agent, CheckFunction, Command, GateForm, Judge, Loop, Person, Rung
from treadle.tools.permission import PermissionTools

from .forked import children_of, first_unpriced, fork_tools
from .inputs import check_text, input_schema
from .library import library_agent, unpriced_agent
from .stores import store_files

KEY_HINTS = ("API_KEY", "ACCESS_TOKEN", "AUTH_TOKEN")
SKILL_FOLDERS = (".treadle/skills", ".claude/skills")
READ_ONLY = ("read_file", "list_dir", "glob", "search", "git_status", "git_diff", "read_output")


@dataclass(frozen=True, slots=True)
class Built:
    """What one loop runs with."""

    loop: Loop
    parts: LoopParts
    settings: LoopSettings
    fingerprint: dict[str, str]
    workspace: str
    redact: Callable[[str], str]
    unpriced: str  # a model whose price is unknown


def build(
    loop: Loop,
    settings: Settings,
    clock: Clock,
    *,
    store: str = "",
    isolation: Isolation | None = None,
    lessons: Lessons | None = None,
) -> Built:
    """Everything is checked here, before anything starts: ConfigurationError and DefinitionError say what and where.

    `store` is the address of the store: a file of it in the workspace is neither undone nor written by the agent.
    `isolation` describes the scope that the loop's workspace is.
    `lessons` are those of that store.
    """
    workspace = _workspace(loop)
    redactor = Redactor(secrets_of(settings.environ))
    redact = redactor.redact
    scope: GitScope | None = None
    isolated: Isolated | None = None
    if workspace is not None:
        scope = GitScope(workspace, state_dir=settings.state_dir / "trees", exclude=store_files(store))
        isolated = None if isolation is None else GitIsolated(isolation, scope)
    children = {name: build(one, settings, clock, store=store) for name, one in children_of(loop, workspace).items()}
    act = _act(loop, workspace, settings, clock, redact, store_files(store), children)
    evaluate = _evaluate(loop, workspace, settings, clock, redact)
    agents = tuple(part for part in (act, evaluate) if isinstance(part, AgentParts))
    without_price = unpriced(agents) or unpriced_agent(act, evaluate) or first_unpriced(children)
    gates = {name: _gate(name, gate, workspace, redact) for name, gate in loop.gates.items()}
    parts = LoopParts(
        act=act,
        evaluate=evaluate,
        scope=scope,
        isolated=isolated,
        redact=redact,
        redact_known=redactor.redact_known,
        map_cache=map_cache(settings.environ),
        lessons=LessonParts(store=lessons, gates=gates, on_loop_recovery=loop.on_loop_recovery),
    )
    return Built(
        loop=loop,
        parts=parts,
        settings=_settings(loop, act, evaluate, settings, priced=not without_price, baseline=scope is not None),
        fingerprint=_fingerprint(loop, act, evaluate),
        workspace=str(workspace or ""),
        redact=redact,
        unpriced=without_price,
    )


def _workspace(loop: Loop) -> Path | None:
    if loop.workspace is None:
        if loop.protect:
            raise DefinitionError("protect needs a workspace.")
        if loop.must_change:
            raise DefinitionError("must_change needs a workspace: what changes is told by it.")
        if loop.isolate:
            raise DefinitionError("isolate needs a workspace: a git repository, or a folder in one.")
        return None
    path = Path(loop.workspace).expanduser()
    check_text("workspace's path", str(path.resolve()))
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise ConfigurationError(
            f"The workspace {path} {what}. Make it, or start with another one: treadle run --workspace DIR."
        )
    import os

    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigurationError(f"The workspace {path} cannot be written. Check its permissions, or name another.")
    return path.resolve()


# ---- actors


def _act(
    loop: Loop,
    workspace: Path | None,
    settings: Settings,
    clock: Clock,
    redact: Callable[[str], str],
    ours: tuple[Path, ...],
    children: Mapping[str, Built],
) -> AgentParts | Actor:
    act = loop.act
    match act:
        case Agent():
            skills = _skills(act, workspace)
            toolset = _act_toolset(loop, act, workspace, settings, ours, skills, children)
            if loop.plan and all(tool.name != "write_plan" for tool in toolset.tools()):
                raise DefinitionError("Plan mode (plan=True) needs the tool write_plan: builtin_tools, or PlanTools.")
            rules = RuleBook(workspace) if act.rules and workspace is not None else None
            mounts = Mounts(skills, rules) if skills or rules else None
            parts = _agent(
                act, "act", toolset, tuple(loop.protect), settings, clock, catalogue(skills) if skills else ""
            )
            return replace(parts, mounts=mounts, ceiling=_ceiling(act))
        case Command():
            if workspace is None:
                raise DefinitionError("A command that acts needs a workspace.")
            command = command_of(act.agent) if act.agent else act.command
            verify_command("aider" if act.agent.startswith("aider") else command, workspace)
            reserve = Usage(requests=1) if act.agent else None  # killed before it told its usage, it is not forgotten
            return CommandActor(
                command, workspace, timeout_s=act.timeout_s, redact=redact, agent=act.agent, reserve=reserve
            )
        case Actor():
            return act
        case _ if library := library_agent(act, clock):
            return library.actor()
        case _:
            return FunctionActor(cast("ActFunction", act))


def _evaluate(
    loop: Loop, workspace: Path | None, settings: Settings, clock: Clock, redact: Callable[[str], str]
) -> AgentParts | Check | None:
    evaluate = Command(command=loop.evaluate) if isinstance(loop.evaluate, str) else loop.evaluate
    match evaluate:
        case Person():
            return None
        case Agent():
            return _agent(evaluate, "evaluate", _evaluate_toolset(evaluate, workspace, settings), (), settings, clock)
        case Command():
            if workspace is None:
                raise DefinitionError("A check command needs a workspace.")
            verify_command(evaluate.command, workspace)
            return CommandCheck(evaluate.command, workspace, timeout_s=evaluate.timeout_s, redact=redact)
        case Check():
            return evaluate
        case _ if library := library_agent(evaluate, clock):
            return library.check()
        case _:
            return FunctionCheck(cast("CheckFunction", evaluate))


def _gate(name: str, gate: GateForm, workspace: Path | None, redact: Callable[[str], str]) -> Check:
    command = Command(command=gate) if isinstance(gate, str) else gate
    if isinstance(command, Check):
        return command
    if not isinstance(command, Command):
        return FunctionCheck(command)
    if workspace is None:
        raise DefinitionError(f"The gate {name} is a command, and needs a workspace.")
    verify_command(command.command, workspace)
    return CommandCheck(command.command, workspace, timeout_s=command.timeout_s, redact=redact)


def _agent(
    agent: Agent,
    role: str,
    toolset: Toolset,
    protected: tuple[str, ...],
    settings: Settings,
    clock: Clock,
    skills: str = "",
) -> AgentParts:
    static = agent.static_prompt
    if static is None:
        static = static_prompt(role, agent.instructions, protected, skills)
    return AgentParts(
        model=_model(agent, settings, clock),
        ladder=tuple(_model(_on_rung(agent, one), settings, clock) for one in agent.escalate_to),
        toolset=toolset,
        static=static,
        dynamic=plan_prompt if role == "act" else None,
        examples=agent.examples,
        tool_choice=agent.tool_choice,
        settings=dict(agent.settings),
        sections=tuple(agent.sections),
    )


def _on_rung(agent: Agent, rung: str | Model | Rung) -> Agent:
    """The agent with the model of a later rung. An address and a key are for one provider only."""
    one = rung if isinstance(rung, Rung) else Rung(model=rung)
    same = _provider(one.model) == _provider(agent.model)
    return replace(
        agent,
        model=one.model,
        base_url=one.base_url or (agent.base_url if same else None),
        api_key=one.api_key or (agent.api_key if same and not one.base_url else None),
        price=one.price or agent.price,
        max_output_tokens=one.max_output_tokens or agent.max_output_tokens,
        escalate_to=(),
    )


def _provider(model: str | Model) -> str:
    return (model if isinstance(model, str) else model.name).partition(":")[0]


def _model(agent: Agent, settings: Settings, clock: Clock) -> Model:
    if isinstance(agent.model, Model):
        return agent.model
    from treadle.models.prices import parse_price
    from treadle.models.registry import model_from_name

    return model_from_name(
        agent.model,
        base_url=agent.base_url,
        api_key=agent.api_key,
        price=None if agent.price is None else parse_price(agent.price),
        max_output_tokens=agent.max_output_tokens,
        context_window=agent.context_window,
        now_us=clock.wall_us,
        environ=settings.environ,
    )


def _act_toolset(
    loop: Loop,
    agent: Agent,
    workspace: Path | None,
    settings: Settings,
    ours: tuple[Path, ...],
    skills: Mapping[str, Skill],
    children: Mapping[str, Built],
) -> Toolset:
    from treadle.tools.combine import CombinedTools

    sets: list[Toolset] = [*_own_tools(agent), *_mcp_tools(agent, workspace, settings)]
    if children:
        sets.append(fork_tools(agent.children, children))
    if skills:
        sets.append(SkillTools(skills))
    if agent.allow is not None:
        sets.append(PermissionTools())
    if agent.builtin_tools:
        from treadle.tools.builtin import ControlTools, PlanTools, WorkspaceTools
        from treadle.tools.protect import ProtectedTools

        sets += [ControlTools(), PlanTools()]
        if workspace is not None:
            hidden = tuple(name for name in settings.environ if name.endswith(KEY_HINTS))
            files: Toolset = WorkspaceTools(workspace, sandbox=loop.sandbox, hidden_env=hidden)
            own = [str(path.relative_to(workspace)) for path in ours if path.is_relative_to(workspace)]
            sets.append(ProtectedTools(files, workspace, (*loop.protect, ".treadle/**", *own)))
    return sets[0] if len(sets) == 1 else CombinedTools(*sets)


def _skills(agent: Agent, workspace: Path | None) -> dict[str, Skill]:
    """ConfigurationError for a folder that was named and is not there, or for a skill that cannot be read."""
    if agent.skills is None:
        folders = [workspace / name for name in SKILL_FOLDERS] if workspace is not None else []
        return read_skills(folder for folder in folders if folder.is_dir())
    given = [Path(folder).expanduser() for folder in agent.skills]
    if missing := [folder for folder in given if not folder.is_dir()]:
        raise ConfigurationError(f"There is no folder of skills {missing[0]}.")
    return read_skills(given)


def _evaluate_toolset(agent: Agent, workspace: Path | None, settings: Settings) -> Toolset:
    from treadle.tools.builtin import ControlTools, WorkspaceTools
    from treadle.tools.combine import CombinedTools
    from treadle.tools.select import SelectedTools
    from treadle.tools.verdict import VerdictTools

    sets: list[Toolset] = [*_own_tools(agent), *_mcp_tools(agent, workspace, settings), VerdictTools()]
    if workspace is not None and agent.builtin_tools:
        sets.append(SelectedTools(CombinedTools(ControlTools(), WorkspaceTools(workspace)), only=READ_ONLY))
    return CombinedTools(*sets)


def _own_tools(agent: Agent) -> list[Toolset]:
    functions = [tool for tool in agent.tools if not isinstance(tool, Toolset)]
    sets = [tool for tool in agent.tools if isinstance(tool, Toolset)]
    if functions:
        from treadle.tools.function import FunctionTools

        sets.append(FunctionTools(*functions))
    return sets


def _mcp_tools(agent: Agent, workspace: Path | None, settings: Settings) -> list[Toolset]:
    if not agent.mcp:
        return []
    from treadle.tools.mcp.toolset import MCPTools

    return [MCPTools(server, settings.environ, str(workspace or Path.cwd())) for server in agent.mcp]


# ---- settings and fingerprint


def _settings(
    loop: Loop,
    actor: AgentParts | Actor,
    evaluate: AgentParts | Check | None,
    settings: Settings,
    *,
    priced: bool,
    baseline: bool,
) -> LoopSettings:
    act = loop.act if isinstance(loop.act, Agent) else None
    judge = loop.evaluate if isinstance(loop.evaluate, Agent) else None
    kind = "person" if evaluate is None else "agent" if isinstance(evaluate, AgentParts) else "callback"
    return LoopSettings(
        loop_id=loop.name,
        role_key=(act.role if act and act.role else f"{loop.name}.act"),
        max_rounds=loop.max_rounds,
        act="agent" if act else "callback",
        evaluate=kind,
        act_agent=_agent_settings(act, actor),
        evaluate_agent=_agent_settings(judge, evaluate),
        act_policy=_policy(act),
        evaluate_policy=_policy(judge),
        limits=Limits(
            max_turns=loop.max_turns,
            max_cost_usd=loop.max_cost_usd,
            max_duration_us=_us(loop.max_time_s),
            max_tokens=loop.max_tokens,
        ),
        guards=with_guards(Guards(), {**settings.guards, **loop.guards}),
        plan_mode=loop.plan,
        priced=priced,
        ceiling=_ceiling(act),
        granted=tuple(act.allow or ()) if act else (),
        baseline=baseline,
        lessons=loop.lessons,
        gates=tuple(loop.gates),
    )


def with_task(settings: LoopSettings, must_change: bool | None, task: str) -> LoopSettings:
    """Whether this task must change something, decided here and nowhere else (AG-09)."""
    must = settings.baseline and needs_change(task) if must_change is None else must_change
    return msgspec.structs.replace(settings, must_change=must, edit_required=must_change is True)


def _ceiling(agent: Agent | None) -> tuple[str, ...] | None:
    return None if agent is None or agent.allow is None else (*agent.allow, *agent.may_ask)


def _agent_settings(agent: Agent | None, parts: object) -> AgentSettings:
    if agent is None:
        return AgentSettings()
    models = parts.models() if isinstance(parts, AgentParts) else ()
    return AgentSettings(
        max_turns_per_act=agent.max_turns_per_act,
        bands=tuple(sorted(agent.warn_at)),
        on_invalid=agent.on_invalid,
        history=agent.history,
        map_tokens=MAP_TOKENS if agent.map_budget is None else agent.map_budget,
        map_asked=agent.map_budget is not None,
        ladder=tuple(model.name for model in models) if agent.escalate_to else (),
        escalate_after=agent.escalate_after,
        compact=agent.compact,
        compact_at=round(agent.compact_at * 100),
    )


def _policy(agent: Agent | None) -> Policy:
    if agent is None:
        return Policy()
    return Policy(max_turns=agent.max_turns, max_cost_usd=agent.max_cost_usd, max_duration_us=_us(agent.max_time_s))


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1_000_000)


def _fingerprint(loop: Loop, act: AgentParts | Actor, evaluate: AgentParts | Check | None) -> dict[str, str]:
    """Prompts, schemas, tools, check and the declared version; never limits, thresholds or prices (FR-25)."""
    parts: dict[str, Any] = {
        "version": loop.version,
        "input schema": input_schema(loop),
        "protect": sorted(loop.protect),
    }
    if loop.plan:
        parts["plan mode"] = True
    if loop.gates:
        parts["gates"] = {name: _callback_name(gate) for name, gate in loop.gates.items()}
    for role, part, definition in (("act", act, loop.act), ("evaluate", evaluate, loop.evaluate)):
        if isinstance(part, AgentParts):
            fixed = [[s.name, s.text if isinstance(s.text, str) else ""] for s in part.sections if s.kind == "static"]
            parts[f"{role} prompt"] = [part.static, *fixed] if fixed else part.static
            parts[f"{role} examples"] = [msgspec.json.encode(example).decode() for example in part.examples]
            parts[f"{role} tools"] = part.toolset.identity()
        else:
            parts[role] = _callback_name(definition)
    return {
        name: blake2b(msgspec.json.encode(value), digest_size=16).hexdigest() for name, value in sorted(parts.items())
    }


def _callback_name(definition: object) -> Mapping[str, Any] | str:
    match definition:
        case str():
            return {"command": definition}
        case Command():
            return {"agent": definition.agent} if definition.agent else {"command": definition.command}
        case Person():
            return "person"
        case Judge():
            return "judge"
        case _ if inspect.isroutine(definition):
            return f"{module_of(definition)}.{definition.__qualname__}"
        case _:
            return type(definition).__qualname__


def module_of(function: Any) -> str:
    """The name by which a function's module is imported, also where it is the script that runs: it is resumed by that name."""
    name: str = function.__module__
    if name != "__main__":
        return name
    main = sys.modules[name]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return spec.name
    file = getattr(main, "__file__", None)
    if file is None:
        return name
    path = Path(file).resolve()
    parts = [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        parts.insert(0, folder.name)
    return ".".join(parts)
