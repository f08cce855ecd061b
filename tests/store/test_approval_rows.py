from __future__ import annotations

from functools import reduce
from operator import or_

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.store.approval_rows import decode_decision, encode_decision
from crystal.store.item_rows import UnreadableRow
from crystal.types.approval import (
    ApprovalOutcome,
    ApprovalRecord,
    Authority,
    Classification,
    GrantScope,
    PolicyDecision,
    Risk,
)

classifications = st.builds(
    Classification,
    risk=st.sampled_from(Risk),
    authority=st.sets(st.sampled_from(Authority)).map(lambda chosen: reduce(or_, chosen, Authority(0))),
    summary=st.text(st.characters(), max_size=20),
    require_prompt=st.booleans(),
)


records = st.builds(
    ApprovalRecord,
    host=classifications,
    final=classifications,
    decision=st.builds(
        PolicyDecision,
        outcome=st.sampled_from(ApprovalOutcome),
        rule=st.integers(min_value=1, max_value=11),
        reason=st.text(st.characters(), max_size=20),
        offered=st.lists(st.sampled_from(GrantScope), max_size=3).map(tuple),
    ),
    approved=st.booleans(),
    answered_by=st.sampled_from(["", "policy", "operator", "nobody", "reviewer"]),
    scope=st.none() | st.sampled_from(GrantScope),
    changes=st.lists(st.text(max_size=20), max_size=3).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(records)
def test_a_decision_comes_back_as_it_was(record: ApprovalRecord) -> None:
    text = encode_decision(record)
    assert text.isascii()
    assert decode_decision(text) == record


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"host": 5}', "no JSON"])
def test_what_is_no_decision_is_refused(text: str) -> None:
    with pytest.raises(UnreadableRow):
        decode_decision(text)


def test_a_word_of_a_later_release_is_refused_and_not_guessed() -> None:
    plain = Classification(risk=Risk.READ)
    record = ApprovalRecord(
        host=plain,
        final=plain,
        decision=PolicyDecision(outcome=ApprovalOutcome.PASS, rule=4, reason=""),
        approved=True,
        answered_by="policy",
    )
    text = encode_decision(record)
    assert '"risk":"read"' in text
    with pytest.raises(UnreadableRow):
        decode_decision(text.replace('"risk":"read"', '"risk":"dire"'))
