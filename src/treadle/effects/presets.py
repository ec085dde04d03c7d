"""Coding agents by name: how each is started without a terminal, and what its output says of usage, cost and ending (AG-26).

The formats are those that the programs print (tests/fixtures/agents): `claude -p --output-format json` (one result object),
`codex exec --json` and `opencode run --format json` (an event a line), `gemini --output-format json` (one object with `stats`),
and the `Tokens:` and `Cost:` lines of aider.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple, cast

from treadle.core.errors import ConfigurationError, InvalidUsage
from treadle.core.usage import ZERO_USD, Usage

_Object = dict[str, Any]
_LONGEST_WORDS = 4_000


class Report(NamedTuple):
    """What an agent's output says. `failure` is empty where it ended well; `said` is its last word."""

    usage: Usage | None = None
    failure: str = ""
    said: str = ""


class Preset(NamedTuple):
    """How an agent is started; it reads the task from stdin, or from the file that TREADLE_PROMPT_FILE names."""

    argv: tuple[str, ...]
    read: Callable[[str], Report]


def command_of(agent: str) -> tuple[str, ...]:
    """The command of `NAME [ARGUMENTS]`: the arguments follow the preset's own. ConfigurationError for a name that is none."""
    words = _words(agent)
    preset = PRESETS[words[0]]
    if preset.argv[0] == "sh":
        return (*preset.argv[:-1], f"{preset.argv[-1]} {shlex.join(words[1:])}".rstrip())
    return (*preset.argv, *words[1:])


def report_of(agent: str, output: str) -> Report:
    """What the agent's output says; nothing at all where it cannot be understood."""
    try:
        report = PRESETS[_words(agent)[0]].read(output)
        return report._replace(said=report.said[-_LONGEST_WORDS:], failure=report.failure[:_LONGEST_WORDS])
    except (LookupError, TypeError, ValueError, AttributeError, InvalidUsage, ArithmeticError):
        return Report()  # another release of it may print something else: exit code and check still judge


def _words(agent: str) -> list[str]:
    try:
        words = shlex.split(agent)
    except ValueError as error:
        raise ConfigurationError(f"--agent {agent!r} cannot be read: {error}") from error
    if not words or words[0] not in PRESETS:
        raise ConfigurationError(
            f"There is no agent {agent!r}. Known: {', '.join(PRESETS)}; any other by --agent-command CMD."
        )
    return words


def _lines(output: str) -> list[_Object]:
    """The JSON objects that have a line to themselves."""
    found: list[_Object] = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                value = json.loads(line, parse_float=Decimal)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                found.append(cast("_Object", value))
    return found


def _whole(output: str, *keys: str) -> _Object:
    """The last object that has one of these keys, over however many lines. LookupError."""
    decoder = json.JSONDecoder(parse_float=Decimal)
    for match in reversed(list(re.finditer(r"^\{", output, re.MULTILINE))[-200:]):
        try:
            value = decoder.raw_decode(output, match.start())[0]
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and any(key in value for key in keys):
            return cast("_Object", value)
    raise LookupError


def _usage(given: int, made: int, read: int, written: int, requests: int, cost: Any = ZERO_USD) -> Usage:
    money = cost if isinstance(cost, Decimal) else Decimal(str(cost))
    return Usage(
        input_tokens=given,
        output_tokens=made,
        cache_read_tokens=read,
        cache_write_tokens=written,
        requests=requests,
        cost_usd=money,
    ).checked()


def _claude(output: str) -> Report:
    result = _whole(output, "total_cost_usd", "num_turns")
    requests, cost = max(1, result.get("num_turns") or 1), result.get("total_cost_usd") or ZERO_USD
    models = list(cast("dict[str, _Object]", result.get("modelUsage") or {}).values())
    if models:  # those of its helpers besides, as the cost has them
        read, written = _sum(models, "cacheReadInputTokens"), _sum(models, "cacheCreationInputTokens")
        given, made = _sum(models, "inputTokens"), _sum(models, "outputTokens")
    else:
        counts = [cast("_Object", result.get("usage") or {})]
        read, written = _sum(counts, "cache_read_input_tokens"), _sum(counts, "cache_creation_input_tokens")
        given, made = _sum(counts, "input_tokens"), _sum(counts, "output_tokens")
    usage = _usage(given + read + written, made, read, written, requests, cost)
    said, how = str(result.get("result") or ""), str(result.get("subtype") or "")
    if result.get("is_error") is not True and how in ("", "success"):
        return Report(usage, "", said)
    why = said or "; ".join(str(error) for error in result.get("errors") or ()) or "it failed"
    return Report(usage, f"claude: {why[:500]}" + (f" ({how})" if how not in ("", "success") else ""), said)


def _codex(output: str) -> Report:
    events = _lines(output)
    turns = [cast("_Object", event["usage"]) for event in events if event.get("type") == "turn.completed"]
    usage = None
    if turns:
        usage = _usage(
            _sum(turns, "input_tokens"),
            _sum(turns, "output_tokens"),
            _sum(turns, "cached_input_tokens"),
            _sum(turns, "cache_write_input_tokens"),
            len(turns),
        )
    failure = ""
    none: _Object = {}
    last = next((e for e in reversed(events) if str(e.get("type")).startswith("turn.")), none)
    if last.get("type") == "turn.failed":
        failure = f"codex: {_told(last.get('error'), 'the turn failed')}"
    items = [cast("_Object", event["item"]) for event in events if event.get("type") == "item.completed"]
    said = [str(item.get("text", "")) for item in items if item.get("type") == "agent_message"]
    return Report(usage, failure, said[-1] if said else "")


def _gemini(output: str) -> Report:
    whole = _whole(output, "stats", "response", "error")
    error = whole.get("error")
    failure = f"gemini: {_told(error)}" if error else ""
    models = cast("dict[str, _Object]", cast("_Object", whole.get("stats") or {}).get("models") or {})
    usage = None
    if models:
        tokens = [cast("_Object", model["tokens"]) for model in models.values()]
        usage = _usage(
            _sum(tokens, "prompt"),
            _sum(tokens, "candidates") + _sum(tokens, "thoughts"),
            _sum(tokens, "cached"),
            0,
            sum(cast("_Object", model.get("api") or {}).get("totalRequests", 1) for model in models.values()),
        )
    return Report(usage, failure, str(whole.get("response") or ""))


def _opencode(output: str) -> Report:
    events = _lines(output)
    steps = [cast("_Object", event["part"]) for event in events if event.get("type") in ("step_finish", "step-finish")]
    usage = None
    if steps:
        tokens = [cast("_Object", step["tokens"]) for step in steps]
        caches = [cast("_Object", token.get("cache") or {}) for token in tokens]
        read, written = _sum(caches, "read"), _sum(caches, "write")
        usage = _usage(
            _sum(tokens, "input") + read + written,
            _sum(tokens, "output") + _sum(tokens, "reasoning"),
            read,
            written,
            len(steps),
            sum((Decimal(str(step.get("cost") or 0)) for step in steps), ZERO_USD),
        )
    errors = [event.get("error") for event in events if event.get("type") == "error"]
    failure = f"opencode: {_told(errors[-1])}" if errors else ""
    texts = [cast("_Object", event["part"]).get("text", "") for event in events if event.get("type") == "text"]
    return Report(usage, failure, str(texts[-1]) if texts else "")


_TOKENS = re.compile(r"^Tokens: (.+)$", re.MULTILINE)
_COUNT = re.compile(r"([\d.,]+)([kM]?) (sent|cache write|cache hit|received)")
_REFUSED = re.compile(r"^litellm\.\w*Error: (.+)$", re.MULTILINE)
_COST = re.compile(r"Cost: \$[\d.]+ message, \$([\d.]+) session")


def _aider(output: str) -> Report:
    messages = [{kind: _number(*number) for *number, kind in _COUNT.findall(line)} for line in _TOKENS.findall(output)]
    if not messages:
        return Report(
            failure=f"aider: {refused[-1]}" if (refused := _REFUSED.findall(output)) else ""
        )  # its exit code is 0
    cost = _COST.findall(output)
    read, written = _sum(messages, "cache hit"), _sum(messages, "cache write")
    sent = _sum(messages, "sent") + read + written
    return Report(
        _usage(sent, _sum(messages, "received"), read, written, len(messages), Decimal(cost[-1]) if cost else ZERO_USD)
    )


def _number(digits: str, unit: str) -> int:
    return int(Decimal(digits.replace(",", "").rstrip(".")) * {"": 1, "k": 1_000, "M": 1_000_000}[unit])


def _told(error: Any, otherwise: str = "it failed") -> str:
    """The words of an error, which may be those of a provider's answer in JSON inside, or under `data`."""
    words: Any = error
    for _ in range(4):
        if isinstance(words, str) and words.startswith("{"):
            try:
                words = json.loads(words)
            except ValueError:
                break
        if not isinstance(words, dict):
            break
        found = cast("_Object", words)
        words = found.get("error") or found.get("message") or found.get("data") or found.get("name")
    return str(words or otherwise)


def _sum(of: Iterable[_Object], name: str) -> int:
    return sum(one.get(name) or 0 for one in of)


_AIDER = 'aider --yes-always --no-pretty --no-stream --no-auto-commits --message-file "$TREADLE_PROMPT_FILE"'
PRESETS: dict[str, Preset] = {
    "claude": Preset(("claude", "-p", "--output-format", "json", "--permission-mode", "acceptEdits"), _claude),
    "codex": Preset(("codex", "exec", "--json", "--sandbox", "workspace-write", "--skip-git-repo-check"), _codex),
    "gemini": Preset(("gemini", "--output-format", "json", "--approval-mode", "auto_edit"), _gemini),
    "opencode": Preset(("opencode", "run", "--format", "json"), _opencode),
    "aider": Preset(("sh", "-c", _AIDER), _aider),
}
