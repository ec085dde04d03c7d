"""A view as the model library's messages, extended by what is new: a turn costs the same at any length (LG-02)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from treadle.core.errors import ProviderError
from treadle.core.messages import Message, ModelResponded, Prompted, ToolCall, ToolsFinished
from treadle.kernel.view import View

from .extra import response_of

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart

ANY_ID = re.compile(r"[\x21-\x7e]{1,40}")
PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


class MappedView:
    """One view in the form that the library takes. Give it the same view each time.

    Requests that follow one another become one; a batch that was answered in pieces is answered by one request. A call
    id that was used before, or that this provider would refuse (`legal_id`), is replaced in call and result alike.
    `flags_errors`: this provider has a place to say that a result is an error, beside what it says.
    """

    def __init__(self, model: str, *, legal_id: re.Pattern[str] = ANY_ID, flags_errors: bool = False) -> None:
        self._model, self._legal_id, self._flags_errors = model, legal_id, flags_errors
        self._restart(None)

    def _restart(self, generation: int | None) -> None:
        self._generation = generation
        self._done = 0
        self._out: list[ModelMessage] = []
        self._open: list[tuple[ToolCall, str]] = []  # calls without a result yet, with their ids on the wire
        self._ids: set[str] = set()

    def update(self, view: View) -> list[ModelMessage]:
        """All messages of the view. The list stays ours and grows with the next call.

        ProviderError (bad-request) where a call was never answered or a result answers none: no provider would take it.
        """
        if view.generation != self._generation or self._done > len(view.messages):
            self._restart(view.generation)
        for message in view.messages[self._done :]:
            self._add(message)
        self._done = len(view.messages)
        if self._open:
            self._refuse(f"{len(self._open)} tool calls have no result")
        return self._out

    def _add(self, message: Message) -> None:
        from pydantic_ai.messages import ToolReturnPart, UserPromptPart

        if isinstance(message, ToolsFinished):
            parts: list[ModelRequestPart] = []
            for result in message.results:
                if not self._open or self._open[0][0].id != result.id:
                    self._refuse(f"the result of call {result.id!r} answers no open call")
                call, wire_id = self._open.pop(0)
                outcome = "failed" if self._flags_errors and result.status == "error" else "success"
                parts.append(ToolReturnPart(call.name, result.content, wire_id, outcome=outcome))
            self._ask(parts)
        elif self._open:
            self._refuse(f"{len(self._open)} tool calls have no result")
        elif isinstance(message, Prompted):
            self._ask([UserPromptPart(message.text)])
        else:
            self._answer(message)

    def _ask(self, parts: list[ModelRequestPart]) -> None:
        from pydantic_ai.messages import ModelRequest

        if self._out and self._out[-1].kind == "request":
            self._out[-1] = ModelRequest([*self._out[-1].parts, *parts])
        else:
            self._out.append(ModelRequest(parts))

    def _answer(self, message: ModelResponded) -> None:
        if not message.text and not message.calls:  # cut off or filtered: there is nothing to send back
            return
        ids = [self._wire_id(call.id) for call in message.calls]
        self._open = list(zip(message.calls, ids, strict=True))
        self._out.append(response_of(message, self._model, ids))

    def _wire_id(self, id: str) -> str:
        number = len(self._ids)
        while id in self._ids or not self._legal_id.fullmatch(id):
            id = f"call{number:05d}"  # nine letters and digits: the strictest provider takes no other
            number += 1
        self._ids.add(id)
        return id

    def _refuse(self, what: str) -> NoReturn:
        self._restart(None)
        raise ProviderError("bad-request", f"The conversation cannot be sent: {what}.")
