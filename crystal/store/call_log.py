"""What became of each tool call and each model round: decisions, outcomes, token usage."""

from __future__ import annotations

from typing import Any

from crystal.store.approval_rows import decode_decision, encode_decision
from crystal.store.errors import StoreError
from crystal.store.item_rows import UnreadableRow, clean_text
from crystal.store.session_tables import SessionTables
from crystal.types._frozen import Frozen
from crystal.types.approval import ApprovalRecord
from crystal.types.model import Purpose, Usage

_COLUMNS = "SELECT turn, call_id, name, arguments, parent_call_id, decision, failed, seconds FROM tool_calls"


class CallTrace(Frozen):
    """Everything known about one call.

    :param arguments: the JSON text.
    :param parent_call_id: the call that made this one, or ``None``.
    :param decision: how it came to run or not, ``None`` while undecided.
    :param failed: ``None`` while it has no result; likewise ``seconds``, the time the tool ran.
    """

    session_id: str
    turn: int
    call_id: str
    name: str
    arguments: str
    parent_call_id: str | None = None
    decision: ApprovalRecord | None = None
    failed: bool | None = None
    seconds: float | None = None


class CallLog(SessionTables):
    """Records calls and usage."""

    __slots__ = ()

    def record_call(
        self,
        session_id: str,
        turn: int,
        call_id: str,
        name: str,
        arguments_json: str,
        parent_call_id: str | None = None,
    ) -> None:
        """Note a call before it is judged; a second record of the same id replaces name and arguments."""
        values = (
            self._number(session_id),
            turn,
            clean_text(call_id),
            clean_text(name),
            clean_text(arguments_json),
            None if parent_call_id is None else clean_text(parent_call_id),
        )
        with self._database as connection:
            connection.execute(
                "INSERT INTO tool_calls (session, turn, call_id, name, arguments, parent_call_id) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (session, call_id) DO UPDATE SET turn = excluded.turn, "
                "name = excluded.name, arguments = excluded.arguments, parent_call_id = excluded.parent_call_id",
                values,
            )

    def record_decision(self, session_id: str, call_id: str, record: ApprovalRecord) -> None:
        """Keep how a recorded call came to run or not.

        :raises StoreError: when the call was not recorded.
        """
        statement = "UPDATE tool_calls SET decision = ? WHERE session = ? AND call_id = ?"
        self._update_call(statement, session_id, call_id, (encode_decision(record),))

    def finish_call(self, session_id: str, call_id: str, failed: bool, seconds: float) -> None:
        """Note that a recorded call has its result.

        :param seconds: how long the tool ran.
        :raises StoreError: when the call was not recorded.
        """
        statement = "UPDATE tool_calls SET failed = ?, seconds = ? WHERE session = ? AND call_id = ?"
        self._update_call(statement, session_id, call_id, (failed, seconds))

    def why(self, session_id: str, call_id: str) -> CallTrace | None:
        """Return what is known about a call, ``None`` when the session has no such call."""
        rows = self._database.rows(
            f"{_COLUMNS} WHERE session = ? AND call_id = ?", (self._number(session_id), clean_text(call_id))
        )
        return self._trace(session_id, rows[0]) if rows else None

    def calls(self, session_id: str) -> tuple[CallTrace, ...]:
        """Return every call of a session in the order they were recorded."""
        rows = self._database.rows(f"{_COLUMNS} WHERE session = ? ORDER BY number", (self._number(session_id),))
        return tuple(self._trace(session_id, row) for row in rows)

    def record_usage(
        self,
        session_id: str,
        turn: int,
        step: int,
        purpose: Purpose,
        usage: Usage,
        seconds: float,
        *,
        provider: str = "",
        model: str = "",
    ) -> None:
        """Add the tokens of one model call.

        :param seconds: how long the call took.
        """
        values = (
            self._number(session_id),
            turn,
            step,
            purpose.value,
            clean_text(provider),
            clean_text(model),
            usage.input,
            usage.output,
            usage.cached,
            usage.cache_write,
            usage.reasoning,
            usage.estimated,
            seconds,
        )
        with self._database as connection:
            connection.execute(
                "INSERT INTO usage (session, turn, step, purpose, provider, model, input, output, cached, cache_write, "
                "reasoning, estimated, seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def usage(self, session_id: str) -> Usage:
        """Return the tokens of every model call of a session together."""
        row = self._database.rows(
            "SELECT coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cached), 0), "
            "coalesce(sum(cache_write), 0), coalesce(sum(reasoning), 0), coalesce(max(estimated), 0) "
            "FROM usage WHERE session = ?",
            (self._number(session_id),),
        )[0]
        return Usage(
            input=row[0],
            output=row[1],
            cached=row[2],
            cache_write=row[3],
            reasoning=row[4],
            estimated=bool(row[5]),
        )

    def _update_call(self, statement: str, session_id: str, call_id: str, values: tuple[Any, ...]) -> None:
        number = self._number(session_id)
        with self._database as connection:
            if not connection.execute(statement, (*values, number, clean_text(call_id))).rowcount:
                raise StoreError(f"session {session_id} has no call {call_id}")

    def _trace(self, session_id: str, row: tuple[Any, ...]) -> CallTrace:
        turn, call_id, name, arguments, parent, decision, failed, seconds = row
        try:
            decided = decode_decision(decision) if decision else None
        except UnreadableRow as error:
            raise self._damaged(f"the decision about call {call_id} of session {session_id}") from error
        return CallTrace(
            session_id=session_id,
            turn=turn,
            call_id=call_id,
            name=name,
            arguments=arguments,
            parent_call_id=parent,
            decision=decided,
            failed=None if failed is None else bool(failed),
            seconds=seconds,
        )
