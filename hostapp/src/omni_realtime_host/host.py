"""All that one process serves: its models, its sessions, and whether it is stopping."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from starlette.websockets import WebSocket

from omni_realtime.protocol import ProtocolError
from omni_realtime_host.auth import Auth, accepted_subprotocol
from omni_realtime_host.config_schema import Server
from omni_realtime_host.connection import Connection
from omni_realtime_host.dialect_choice import speaks_beta
from omni_realtime_host.http_errors import RequestRefusedError, refusal_of
from omni_realtime_host.model_choice import choose_model, opening_of
from omni_realtime_host.served_model import ServedModel

logger = logging.getLogger(__name__)

LAST_EVENTS_S = 2.0
"""How long the last events of ended responses may take to reach their clients."""


class Host:
    """Admits sessions and ends them."""

    def __init__(self, models: Sequence[ServedModel], server: Server) -> None:
        self.models = tuple(models)
        self.auth = Auth(key.get_secret_value() for key in server.api_keys)
        self._limits = server.limits
        self._connections: set[Connection] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False

    async def start(self) -> None:
        """Load and warm every model, all at once.

        Raises:
            StartError: if one of them cannot start.
        """
        results = await asyncio.gather(*(model.start() for model in self.models), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        """Free every model."""
        await asyncio.gather(*(model.close() for model in self.models))

    async def drain(self) -> None:
        """Admit no more sessions, and close each one as soon as no response of it is running; waits ``shutdown_s`` at most."""
        self._stopping = True
        for connection in tuple(self._connections):
            connection.drain()
        await self._become_idle(self._limits.shutdown_s)

    async def end(self) -> None:
        """End the responses that still run, and close every session."""
        for connection in tuple(self._connections):
            connection.stop()
        await self._become_idle(LAST_EVENTS_S)

    def not_ready(self) -> dict[str, str]:
        """Return why sessions are refused, by model; empty when the host is ready."""
        if self._stopping:
            return {model.name: "the host is stopping" for model in self.models}
        return {model.name: model.not_ready for model in self.models if model.not_ready}

    async def serve(self, websocket: WebSocket) -> None:
        """Carry one client's session from its upgrade to its end."""
        try:
            connection = self._admit(websocket)
        except RequestRefusedError as refusal:
            await self.refuse(websocket, refusal)
            return
        self._connections.add(connection)
        self._idle.clear()
        try:
            await websocket.accept(accepted_subprotocol(websocket.scope["subprotocols"]))
            await connection.run()
        finally:
            logger.info("%s: closed", connection.id)
            self._connections.discard(connection)
            if not self._connections:
                self._idle.set()

    async def refuse(self, websocket: WebSocket, refusal: RequestRefusedError) -> None:
        """Answer an upgrade with an HTTP error."""
        logger.info("an upgrade was refused: %d %s", refusal.status, refusal.code)
        await websocket.send_denial_response(refusal.response())

    def _admit(self, websocket: WebSocket) -> Connection:
        key = self.auth.check_session(websocket)
        query = dict(websocket.query_params)
        if key:
            key.check_query(query, only_model=len(self.models) == 1)
            query["model"] = key.model
        model = choose_model(query, self.models)
        self._check_room(model)
        opening = key.session if key else opening_of(query, model)
        try:
            connection = Connection(websocket, model, self._limits, opening, beta=speaks_beta(websocket))
        except ProtocolError as error:
            raise refusal_of(error) from None
        logger.info("%s: open, model %s", connection.id, model.name)
        return connection

    def _check_room(self, model: ServedModel) -> None:
        if self._stopping:
            raise RequestRefusedError(503, "The host is stopping. Connect again in a moment.", code="shutting_down", type="server_error")
        if model.not_ready:
            advice = "Try again in a moment." if model.loading else "Its operator has to restart the host."
            message = f"The model '{model.name}' is not ready: {model.not_ready}. {advice}"
            raise RequestRefusedError(503, message, code="model_not_ready", type="server_error")
        if len(self._connections) >= self._limits.sessions:
            message = f"The host serves {self._limits.sessions} sessions at a time, and all are taken. Try again later."
            raise RequestRefusedError(503, message, code="too_many_sessions", type="server_error")

    async def _become_idle(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
