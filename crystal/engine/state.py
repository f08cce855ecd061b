"""What the parts of a running session share: the host, the store, the model and the live values of the session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from crystal.engine.answers import OpenRequests
from crystal.engine.approval.grants import AllowRule, SessionGrants
from crystal.engine.arguments import ArgumentChecker
from crystal.engine.attaching import NOTHING_ATTACHED, Attached
from crystal.engine.budgets import Budgets
from crystal.engine.catalog import FrozenCatalog
from crystal.engine.extensions import Extensions
from crystal.engine.ids import ItemIds
from crystal.engine.prompts.texts import BUILT_IN, Templates
from crystal.engine.transcript import Transcript
from crystal.host.build import Host
from crystal.store.home import Home
from crystal.store.media import MediaStore
from crystal.store.secrets import Redactor
from crystal.store.sessions import SessionFiles, SessionStore, SessionTodos
from crystal.types._frozen import Frozen
from crystal.types.approval import ApprovalMode
from crystal.types.environment import Environment, ModelFacts, SessionModels
from crystal.types.events import Event
from crystal.types.model import ModelClient
from crystal.types.session import SessionFacts
from crystal.types.tools import Catalog
from crystal.workspace.fence import Fence


class Surroundings:
    """What a session reaches outside itself: the clock, chance and waiting; a test hands in its own."""

    def __init__(
        self,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        chance: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.now = now
        self.monotonic = monotonic
        self.chance = chance
        self.sleep = sleep


class ReviewModel(Frozen):
    """The reviewer's own model.

    :param make: makes a new client by the factories of a host.
    """

    model: ModelFacts
    make: Callable[[Host], ModelClient]


class SessionState:
    """The live values of one session. Only the engine's functions change them."""

    def __init__(
        self,
        *,
        session_id: str,
        workspace: Path,
        home: Home,
        host: Host,
        store: SessionStore,
        media: MediaStore,
        redactor: Redactor,
        client: ModelClient,
        model: ModelFacts,
        review: ReviewModel | None,
        approval: ApprovalMode,
        catalog: FrozenCatalog,
        transcript: Transcript,
        budgets: Budgets,
        allow: tuple[AllowRule, ...],
        grants: SessionGrants,
        emit: Callable[[Event], None],
        surroundings: Surroundings,
        ids: ItemIds,
        program_timeout: float | None,
        login_shell: bool,
        make_client: Callable[[Host, bool], ModelClient],
        load_extensions: Callable[[], Awaitable[Extensions]],
    ) -> None:
        self.session_id = session_id
        self.workspace = workspace
        self.home = home
        self.host = host
        self.store = store
        self.media = media
        self.redactor = redactor
        self.client = client
        self.model = model
        self.review = review
        self._own_review_client: ModelClient | None = None
        self.approval = approval
        self.catalog = catalog
        self.transcript = transcript
        self.budgets = budgets
        self.allow = allow
        self.grants = grants
        self.emit = emit
        self.surroundings = surroundings
        self.ids = ids
        self.program_timeout = program_timeout
        self.login_shell = login_shell
        self.make_client = make_client
        self.load_extensions = load_extensions
        self.fence = Fence.at(workspace, home.root)
        self.todos = SessionTodos(store, session_id)
        self.files = SessionFiles(store, session_id)
        self.requests = OpenRequests()
        self.checker = ArgumentChecker()
        self.attached: Attached = NOTHING_ATTACHED
        self.environment = Environment()
        self.models: SessionModels | None = None
        self.templates: Templates = BUILT_IN
        self.follow_ups: list[str] = []
        self.retired_hosts: list[Host] = []  # whose code the session's client still needs
        self.interrupted = False
        self.turn_is_open = False

    def review_client(self) -> ModelClient:
        """Return the client that reviews are asked of; one of a separate model is made on its first use.

        :raises Exception: when it cannot be made.
        """
        if self.review is None:
            return self.client
        if self._own_review_client is None:
            self._own_review_client = self.review.make(self.host)
        return self._own_review_client

    def drop_review_client(self) -> ModelClient | None:
        """Forget the client of a separate review model and return it, for the caller to close."""
        dropped, self._own_review_client = self._own_review_client, None
        return dropped

    @property
    def facts(self) -> SessionFacts:
        """The session as hooks see it."""
        return SessionFacts(id=self.session_id, workspace=self.workspace, approval=self.approval)

    @property
    def mode(self) -> Catalog:
        """Plan or Work."""
        return self.catalog.mode
