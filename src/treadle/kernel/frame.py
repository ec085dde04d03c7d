"""The frame: everything needed to go on with a loop in another process, as one JSON document that vouches for itself.

    {"schema": "treadle.frame", "version": 1, "digest": "sha256:…", "frame": {"kind": "loop-frame", …}}

The digest is over the bytes of `frame` as stored, and the envelope has one spelling only: no byte can change unseen.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal, NamedTuple, NoReturn, cast

import msgspec

from treadle.core.errors import (
    BrokenInvariant,
    DanglingMessage,
    DigestMismatch,
    IdentityMismatch,
    InvalidField,
    MalformedFrame,
    StaleScopeReceipt,
    UnsupportedVersion,
    WrongKind,
)
from treadle.core.events import Phase
from treadle.core.lesson_events import LessonOutcome
from treadle.core.values import Value

SCHEMA = "treadle.frame"
VERSION = 1
KIND = "loop-frame"
KINDS = {
    "loop-frame": "the frame of a loop",
    "agent-frame": "the frame of an agent",
    "task-frame": "the frame of a workflow task",
    "workflow-frame": "the frame of a workflow",
    "export": "an export of a whole loop",
    "workflow-export": "an export of a whole workflow",
}

Document = dict[str, Any]
UpgradeStep = Callable[[Document], Document]
UPGRADES: Mapping[int, UpgradeStep] = {}  # version n -> the step that makes a frame of version n + 1 of it


class LeaseDelta(Value, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One grant or revocation of a capability. A revocation has an id of its own and ends the capability it names."""

    id: str
    op: Literal["grant", "revoke"]
    capability: str
    scope: Literal["turn", "step", "loop"]
    expires_at_ms: int | None = None  # wall time


class SkillActivation(Value, frozen=True, kw_only=True, rename="camel"):
    """The call that mounted a skill, and the message that carries its body."""

    call_id: str
    message_id: str


class ToolEffect(Value, frozen=True, kw_only=True, rename="camel"):
    """What a tool call touched: a kind such as `fs.write`, unknown ones verbatim, and the path, host or command."""

    kind: str
    target: str


class RecalledLesson(Value, frozen=True, kw_only=True, rename="camel"):
    """A lesson as it was recalled at loop start."""

    lesson_id: str
    text: str


class LoopFrame(
    Value, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="kind", tag="loop-frame"
):
    """The continuation of one loop. Optional fields are left out of the JSON where they are None.

    Money is exact: a Decimal here, a number in the JSON. Durations are whole milliseconds of active time.
    `preserved_act_leaf_message_id` alone is null where there is none. The number of rounds allowed is no part of it,
    since a person may raise that; it is given to `check_invariants`.
    """

    loop_id: str
    step_exec_id: str
    role_key: str
    last_act_model_id: str | None = None
    loop_input_json: str
    iteration: int  # from 0
    phase: Phase
    preserved_act_leaf_message_id: str | None
    last_act_output_json: str | None = None  # this and the next: there in evaluate, and only there (FR-07)
    last_act_scope_receipt_json: str | None = None
    turns_taken: int  # this and the next two: act and evaluate together (FR-08)
    cost_usd: Decimal
    elapsed_duration_ms: int
    act_turns_taken: int  # this and the next two: act alone (FR-09)
    act_cost_usd: Decimal
    act_elapsed_duration_ms: int
    granted_loop_leases: tuple[LeaseDelta, ...]
    active_skill_ids: tuple[str, ...]
    active_skill_activations: dict[str, SkillActivation]
    observed_effects: tuple[ToolEffect, ...]
    injected_scoped_rule_ids: tuple[str, ...]
    conflict_check_armed: bool | None = None  # None: the loop has no isolated scope (FR-16)
    recalled_lessons: tuple[RecalledLesson, ...]
    last_rejected_iteration_json: str | None = None
    buffered_gate_recoveries: tuple[Any, ...] | None = None  # JSON values
    accumulated_lesson_outcomes: dict[str, LessonOutcome]

    @property
    def kind(self) -> str:
        """Tells it from frames of other kinds."""
        return KIND


class FrameIdentity(NamedTuple):
    """What a frame must belong to before anything of it is used."""

    loop_id: str
    step_exec_id: str
    role_key: str


class _Head(msgspec.Struct):
    version: int


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    version: int
    digest: str
    frame: msgspec.Raw


_encode = msgspec.json.Encoder(decimal_format="number").encode
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_frame = msgspec.json.Decoder(LoopFrame).decode

_FIELDS = msgspec.structs.fields(LoopFrame)
FIELDS = ("kind", *(field.encode_name for field in _FIELDS))
"""All fields of a frame, by their names in its JSON."""
_NAMES = {field.name: field.encode_name for field in _FIELDS}
_OPTIONAL = tuple(field.encode_name for field in _FIELDS if field.default is None)
_COUNTERS = ("iteration", "turns_taken", "elapsed_duration_ms", "act_turns_taken", "act_elapsed_duration_ms")
_MONEY = ("cost_usd", "act_cost_usd")
_TOTALS = (
    ("turns_taken", "act_turns_taken"),
    ("cost_usd", "act_cost_usd"),
    ("elapsed_duration_ms", "act_elapsed_duration_ms"),
)
_JSON_TEXTS = (
    "loop_input_json",
    "last_act_output_json",
    "last_act_scope_receipt_json",
    "last_rejected_iteration_json",
)


def dump_frame(frame: LoopFrame, *, max_iterations: int | None) -> bytes:
    """The stored form. InvalidField or BrokenInvariant where it would not be read back as the same frame."""
    check_invariants(frame, max_iterations)
    stored = _as_json(frame)
    again = _read_frame(_parse(stored), stored)
    for name, encoded_name in _NAMES.items():
        if getattr(again, name) != getattr(frame, name):
            raise InvalidField("would not be read back as it is", path=f"$.frame.{encoded_name}")
    return _seal(VERSION, _digest(stored), stored)


def load_frame(
    data: bytes,
    *,
    max_iterations: int | None,
    identity: FrameIdentity | None = None,
    has_message: Callable[[str], bool] | None = None,
    receipt_holds: Callable[[str], bool] | None = None,
    steps: Mapping[int, UpgradeStep] = UPGRADES,
) -> LoopFrame:
    """The frame, of this version or an older one. Every fault is a FrameError that names the field.

    `max_iterations` is that of today's definition, None where that is not at hand. `has_message` says whether a message
    is there, `receipt_holds` whether the workspace still holds what a scope receipt (JSON) says; what is not given is
    not checked. `steps` upgrade older versions.
    """
    document, stored, version = _open(data)
    if version < VERSION:
        document = upgrade(document, version, steps, VERSION)
        stored = _as_json(document)
    frame = _read_frame(document, stored)
    check_invariants(frame, max_iterations)
    if identity is not None:
        check_identity(frame, identity)
    if has_message is not None:
        check_messages(frame, has_message)
    if receipt_holds is not None:
        check_scope_receipt(frame, receipt_holds)
    return frame


def upgrade(document: Document, version: int, steps: Mapping[int, UpgradeStep], current: int) -> Document:
    """The document as version `current` has it, a step a version. UnsupportedVersion where a step is missing."""
    while version < current:
        if (step := steps.get(version)) is None:
            raise UnsupportedVersion(f"version {version} can no longer be read here", path="$.version")
        try:
            document = step(document)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InvalidField(f"is no frame of version {version}: {error!r}", path="$.frame") from error
        version += 1
    return document


def check_invariants(frame: LoopFrame, max_iterations: int | None) -> None:
    """What must hold at every load and save (FR-24). InvalidField for a wrong type, BrokenInvariant for the rest."""
    for name in (*_COUNTERS, *_MONEY):
        _check_amount(name, getattr(frame, name), int if name in _COUNTERS else Decimal)
    for name in _JSON_TEXTS:
        _check_json_text(name, getattr(frame, name))
    for total, part in _TOTALS:
        if getattr(frame, total) < getattr(frame, part):
            _broken(total, f"is less than {_NAMES[part]}")
    if max_iterations is not None and frame.iteration >= max_iterations:
        _broken("iteration", f"must be below {max_iterations}, the number of rounds allowed")
    _check_phase(frame)
    _check_members(frame)


def check_identity(frame: LoopFrame, identity: FrameIdentity) -> None:
    """IdentityMismatch for a frame of another loop, step or role."""
    for name in FrameIdentity._fields:
        found, expected = getattr(frame, name), getattr(identity, name)
        if found != expected:
            raise IdentityMismatch(f"is {found!r}, expected {expected!r}", path=f"$.frame.{_NAMES[name]}")


def check_messages(frame: LoopFrame, has_message: Callable[[str], bool]) -> None:
    """DanglingMessage where the leaf or the body of a skill is not there."""
    leaf = frame.preserved_act_leaf_message_id
    if leaf is not None and not has_message(leaf):
        raise DanglingMessage(f"message {leaf!r} is not there", path="$.frame.preservedActLeafMessageId")
    for skill, activation in frame.active_skill_activations.items():
        if not has_message(activation.message_id):
            path = f"$.frame.activeSkillActivations[{skill!r}].messageId"
            raise DanglingMessage(f"message {activation.message_id!r} is not there", path=path)


def check_scope_receipt(frame: LoopFrame, receipt_holds: Callable[[str], bool]) -> None:
    """StaleScopeReceipt where evaluate would judge a workspace that is no longer the one that act left."""
    receipt = frame.last_act_scope_receipt_json
    if receipt is not None and not receipt_holds(receipt):
        raise StaleScopeReceipt(path="$.frame.lastActScopeReceiptJson")


def _digest(stored: bytes) -> str:
    return "sha256:" + hashlib.sha256(stored).hexdigest()


def _seal(version: int, digest: str, stored: bytes) -> bytes:
    return b'{"schema":%b,"version":%d,"digest":%b,"frame":%b}' % (_encode(SCHEMA), version, _encode(digest), stored)


def _open(data: bytes) -> tuple[Document, bytes, int]:
    """The frame, its stored bytes and its version, which is looked at first: a newer frame may differ in all else."""
    version = cast("_Head", _guarded(_decode_head, data, "$")).version
    if version > VERSION:
        text = f"version {version} was written by a newer Treadle; this one reads up to {VERSION}"
        raise UnsupportedVersion(text, path="$.version")
    envelope = cast("_Envelope", _guarded(_decode_envelope, data, "$"))
    if envelope.schema != SCHEMA:
        raise WrongKind(f"is {envelope.schema!r}, expected {SCHEMA!r}", path="$.schema")
    stored = bytes(envelope.frame)
    if _seal(version, envelope.digest, stored) != data:
        raise MalformedFrame("not spelled as it was written: spaces, order of keys, duplicate keys or escapes")
    if envelope.digest != _digest(stored):
        raise DigestMismatch(path="$.digest")
    document = _parse(stored)
    kind = document.get("kind")
    if kind != KIND:
        name = KINDS.get(kind, f"{kind!r}") if isinstance(kind, str) else "no kind"
        raise WrongKind(f"is {name}, expected {KINDS[KIND]}", path="$.frame.kind")
    return document, stored, version


def _parse(stored: bytes) -> Document:
    """The JSON with exact numbers. Stricter than the standard: no key twice, no NaN."""
    try:
        document: object = json.loads(
            stored.decode(), parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_no_duplicates
        )
    except (ValueError, RecursionError) as error:
        raise MalformedFrame(f"is no JSON that can be read: {error}", path="$.frame") from error
    if not isinstance(document, dict):
        raise InvalidField("must be an object", path="$.frame")
    return cast("Document", document)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> Document:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError(f"a key is there twice in {', '.join(key for key, _ in pairs)}")
    return document


def _as_json(value: LoopFrame | Document) -> bytes:
    try:
        return _encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidField(f"cannot be written as JSON: {error}", path="$.frame") from error


def _read_frame(document: Document, stored: bytes) -> LoopFrame:
    """The typed frame. msgspec alone would take a string for money and null for a field that is not there."""
    for name in (_NAMES["cost_usd"], _NAMES["act_cost_usd"]):
        if name in document and type(document[name]) not in (int, Decimal):
            raise InvalidField("must be a number", path=f"$.frame.{name}")
    for name in _OPTIONAL:
        if name in document and document[name] is None:
            raise InvalidField("must be left out where there is none, not null", path=f"$.frame.{name}")
    return cast("LoopFrame", _guarded(_decode_frame, stored, "$.frame"))


_AT = re.compile(r" - at `\$(.*)`$")
_FIELD = re.compile(r"(?:missing required|contains unknown) field `(.+?)`")


def _guarded(decode: Callable[[bytes], object], data: bytes, root: str) -> object:
    try:
        return decode(data)
    except msgspec.ValidationError as error:
        text = str(error)
        at, field = _AT.search(text), _FIELD.search(text)
        path = root + (at[1] if at else "") + (f".{field[1]}" if field else "")
        raise InvalidField(_AT.sub("", text), path=path) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedFrame(str(error), path=root) from error


def _broken(name: str, message: str) -> NoReturn:
    raise BrokenInvariant(message, path=f"$.frame.{_NAMES[name]}")


def _check_amount(name: str, amount: int | Decimal, expected: type[int | Decimal]) -> None:
    if type(amount) is not expected:  # bool is an int to isinstance
        raise InvalidField(f"must be {expected.__name__}, not {amount!r}", path=f"$.frame.{_NAMES[name]}")
    bad = amount.is_signed() or not amount.is_finite() if isinstance(amount, Decimal) else amount < 0
    if bad:
        _broken(name, f"must be finite and not negative, not {amount}")


def _check_json_text(name: str, text: str | None) -> None:
    if text is None:
        return
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError, TypeError) as error:
        raise InvalidField(f"must be JSON: {error}", path=f"$.frame.{_NAMES[name]}") from error


def _check_phase(frame: LoopFrame) -> None:
    for name in ("last_act_output_json", "last_act_scope_receipt_json"):
        there = getattr(frame, name) is not None
        if there is not (frame.phase == "evaluate"):
            _broken(name, f"must {'not ' if there else ''}be there in phase {frame.phase}")
    if frame.iteration > 0 and frame.last_rejected_iteration_json is None:
        _broken("last_rejected_iteration_json", f"must be there in iteration {frame.iteration}")


def _check_members(frame: LoopFrame) -> None:
    _check_unique("granted_loop_leases", (lease.id for lease in frame.granted_loop_leases))
    _check_unique("active_skill_ids", frame.active_skill_ids)
    _check_unique("injected_scoped_rule_ids", frame.injected_scoped_rule_ids)
    _check_unique("recalled_lessons", (lesson.lesson_id for lesson in frame.recalled_lessons))
    _check_unique("observed_effects", (f"{effect.kind} {effect.target}" for effect in frame.observed_effects))
    recalled = {lesson.lesson_id for lesson in frame.recalled_lessons}
    _check_subset("active_skill_activations", frame.active_skill_activations, frame.active_skill_ids, "no active skill")
    _check_subset("accumulated_lesson_outcomes", frame.accumulated_lesson_outcomes, recalled, "no recalled lesson")
    for lease in frame.granted_loop_leases:
        if lease.scope != "loop":
            _broken("granted_loop_leases", f"holds {lease.id!r}, which ends with its {lease.scope}")


def _check_unique(name: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            _broken(name, f"holds {one!r} twice")
        seen.add(one)


def _check_subset(name: str, keys: Iterable[str], whole: Iterable[str], what: str) -> None:
    if strangers := sorted(set(keys).difference(whole)):
        _broken(name, f"holds {strangers[0]!r}, which is {what}")
