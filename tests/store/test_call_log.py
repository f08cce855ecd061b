from __future__ import annotations

import sqlite3

import pytest

from crystal.store.home import Home
from crystal.store.sessions import CallTrace, SessionRecord, SessionStore, StoreError
from crystal.types.approval import (
    ApprovalOutcome,
    ApprovalRecord,
    Authority,
    Classification,
    GrantScope,
    PolicyDecision,
    Risk,
)
from crystal.types.model import Purpose, Usage

RECORD = ApprovalRecord(
    host=Classification(risk=Risk.WRITE, summary="bash: npm ci"),
    final=Classification(
        risk=Risk.WRITE, authority=Authority.WORKSPACE | Authority.NETWORK, summary="npm ci", require_prompt=True
    ),
    decision=PolicyDecision(outcome=ApprovalOutcome.ASK, rule=2, reason="a hook", offered=(GrantScope.ONCE,)),
    approved=True,
    answered_by="operator",
    scope=GrantScope.ONCE,
    changes=("plugin:home/acme: Workspace to Workspace + Network",),
)


def test_the_story_of_a_call_is_told_whole(store: SessionStore) -> None:
    assert store.why("s1", "c1") is None
    store.record_call("s1", 2, "c1", "bash", '{"command": "npm ci"}', None)
    begun = CallTrace(session_id="s1", turn=2, call_id="c1", name="bash", arguments='{"command": "npm ci"}')
    assert store.why("s1", "c1") == begun
    store.record_decision("s1", "c1", RECORD)
    store.finish_call("s1", "c1", True, 1.5)
    assert store.why("s1", "c1") == CallTrace(
        session_id="s1",
        turn=2,
        call_id="c1",
        name="bash",
        arguments='{"command": "npm ci"}',
        decision=RECORD,
        failed=True,
        seconds=1.5,
    )


def test_inner_calls_name_their_parent_and_keep_their_order(store: SessionStore) -> None:
    store.record_call("s1", 1, "c1", "run_script", "{}", None)
    store.record_call("s1", 1, "c1.1", "read", "{}", "c1")
    store.create(SessionRecord(id="s2", workspace="/w"))
    store.record_call("s2", 1, "c1", "grep", "{}", None)
    assert [(call.call_id, call.name, call.parent_call_id) for call in store.calls("s1")] == [
        ("c1", "run_script", None),
        ("c1.1", "read", "c1"),
    ]
    assert [call.name for call in store.calls("s2")] == ["grep"]


def test_recording_a_call_again_keeps_its_decision(store: SessionStore) -> None:
    store.record_call("s1", 1, "c1", "read", '{"path": "a"}', None)
    store.record_decision("s1", "c1", RECORD)
    store.record_call("s1", 1, "c1", "read", '{"path": "b\ud800"}', None)
    trace = store.why("s1", "c1")
    assert trace is not None
    assert (trace.arguments, trace.decision) == ('{"path": "b\ufffd"}', RECORD)


def test_an_outcome_of_no_call_is_refused(store: SessionStore) -> None:
    with pytest.raises(StoreError, match="session s1 has no call c9"):
        store.record_decision("s1", "c9", RECORD)
    with pytest.raises(StoreError, match="session s1 has no call c9"):
        store.finish_call("s1", "c9", False, 0.0)


def test_a_decision_that_cannot_be_read_says_so(home: Home, store: SessionStore) -> None:
    store.record_call("s1", 1, "c1", "read", "{}", None)
    connection = sqlite3.connect(home.database, isolation_level=None)
    connection.execute("UPDATE tool_calls SET decision = '{}'")
    connection.close()
    with pytest.raises(StoreError, match="the decision about call c1 of session s1 cannot be read"):
        store.why("s1", "c1")


def test_usage_adds_up_over_every_purpose(store: SessionStore) -> None:
    assert store.usage("s1") == Usage()
    first = Usage(input=10, output=2, cached=5, cache_write=1, reasoning=1)
    second = Usage(input=1, output=1, estimated=True)
    store.record_usage("s1", 1, 1, Purpose.WORK, first, 0.5)
    assert store.usage("s1") == first
    store.record_usage("s1", 1, 2, Purpose.REVIEW, second, 0.5, provider="openai", model="gpt")
    assert store.usage("s1") == first + second
