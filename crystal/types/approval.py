"""Risk, authority and what is decided about a tool call."""

from __future__ import annotations

from enum import Enum, Flag, IntEnum, auto

from crystal.types._frozen import Frozen


class Risk(IntEnum):
    """How much a call can harm; ordered."""

    READ = 0
    WRITE = 1
    PRIVILEGED = 2
    FORBIDDEN = 3

    @property
    def label(self) -> str:
        """The word shown to people: ``Read``, ``Write``, ``Privileged``, ``Forbidden``."""
        return self.name.capitalize()


class Authority(Flag):
    """What a call reaches. A set: ``Authority.WORKSPACE`` alone means that nothing else is reached."""

    WORKSPACE = auto()
    OUTSIDE_WORKSPACE = auto()
    NETWORK = auto()
    PRIVILEGED_ESCALATION = auto()

    @property
    def label(self) -> str:
        """The words shown to people, such as ``Workspace + Network``."""
        return " + ".join(_AUTHORITY_WORDS[member] for member in _AUTHORITY_WORDS if member in self)


_AUTHORITY_WORDS = {
    Authority.WORKSPACE: "Workspace",
    Authority.OUTSIDE_WORKSPACE: "OutsideWorkspace",
    Authority.NETWORK: "Network",
    Authority.PRIVILEGED_ESCALATION: "PrivilegedEscalation",
}


class Classification(Frozen):
    """What one call is held to be.

    :param summary: one line for the person who is asked.
    :param require_prompt: the operator must be asked whatever the mode and the grants say.
    """

    risk: Risk
    authority: Authority = Authority.WORKSPACE
    summary: str = ""
    require_prompt: bool = False

    @property
    def label(self) -> str:
        """Risk and authority in words, such as ``Write + Workspace``."""
        return f"{self.risk.label} + {self.authority.label}"


class ApprovalMode(Enum):
    """The operator's standing answer: who is asked about what."""

    DEFAULT = "default"
    EDIT = "edit"
    REVIEW = "review"
    AUDIT = "audit"
    FULL = "full"


class GrantScope(Enum):
    """How far an operator's yes reaches."""

    ONCE = "once"
    SESSION = "session"
    PERSISTENT = "persistent"


class ApprovalFacts(Frozen):
    """What an approval hook is told about the call before the policy decides.

    :param classification: the classification so far, earlier hooks included.
    :param require_prompt: whether the operator will be asked whatever the mode says.
    """

    classification: Classification
    mode: ApprovalMode
    require_prompt: bool = False


class ApprovalAdvice(Frozen):
    """What an ``on_approval`` hook may say: raise the risk, require a prompt, give a reason for the card."""

    risk: Risk | None = None
    require_prompt: bool = False
    reason: str = ""


class ApprovalOutcome(Enum):
    """What the policy says about one call."""

    PASS = "pass"
    ASK = "ask"
    REVIEW = "review"
    REJECT = "reject"


class PolicyDecision(Frozen):
    """The policy's answer.

    :param rule: number of the first rule that applied (the table in docs/approval.md).
    :param offered: the scopes the operator may choose from when asked.
    """

    outcome: ApprovalOutcome
    rule: int
    reason: str
    offered: tuple[GrantScope, ...] = ()


class ApprovalRecord(Frozen):
    """How one call came to run or not: kept with the call, shown by ``crystal why`` and on the JSON event.

    :param host: the classification before any hook.
    :param final: the classification the policy used.
    :param changes: one line for each hook that changed it.
    :param answered_by: ``policy``, ``operator``, ``nobody`` (headless), ``reviewer``; empty while open.
    """

    host: Classification
    final: Classification
    decision: PolicyDecision
    approved: bool
    answered_by: str
    scope: GrantScope | None = None
    changes: tuple[str, ...] = ()
