"""One replying host for each file of contract tests; building one costs more than a hundred calls."""

from __future__ import annotations

import pytest

from tests.hookspecs.replies import ReplyingHost


@pytest.fixture(scope="module")
def replying() -> ReplyingHost:
    """A host whose last plugins reply as told and watch."""
    return ReplyingHost()
