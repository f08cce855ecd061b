"""The loop guard counts equal calls with equal results, running."""

from __future__ import annotations

from crystal.engine.loop_guard import STOP_AT, WARN_AT, WARNING, LoopGuard


def test_the_guard_warns_at_the_third_and_stops_at_the_fifth() -> None:
    assert (WARN_AT, STOP_AT) == (3, 5)
    assert "third" in WARNING
    assert "fifth" in WARNING


def test_equal_calls_are_counted_from_one() -> None:
    guard = LoopGuard()
    assert [guard.add("read", '{"path": "a"}', "x") for _ in range(5)] == [1, 2, 3, 4, 5]


def test_any_difference_begins_anew() -> None:
    guard = LoopGuard()
    calls = [
        ("read", '{"path": "a"}', "x"),
        ("read", '{"path": "a"}', "x"),
        ("read", '{"path": "a"}', "y"),
        ("read", '{"path": "b"}', "y"),
        ("list", '{"path": "b"}', "y"),
        ("read", '{"path": "a"}', "x"),
        ("read", '{"path": "a"}', "x"),
    ]
    assert [guard.add(*call) for call in calls] == [1, 2, 1, 1, 1, 1, 2]


def test_the_order_of_the_arguments_makes_no_difference() -> None:
    guard = LoopGuard()
    assert guard.add("grep", {"pattern": "a", "path": "b"}, "x") == 1
    assert guard.add("grep", {"path": "b", "pattern": "a"}, "x") == 2
