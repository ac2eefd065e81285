"""The routes: the Realtime socket, the list of models, health, and a page for people."""

from __future__ import annotations

import html
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from omni_realtime_host import __version__
from omni_realtime_host.client_secrets import create_client_secret
from omni_realtime_host.failure_log import log_failure
from omni_realtime_host.host import Host, logger
from omni_realtime_host.http_errors import RequestRefusedError

REALTIME_PATH = "/v1/realtime"
"""Where clients connect."""
CLIENT_SECRETS_PATH = f"{REALTIME_PATH}/client_secrets"
"""Where an application's server makes keys for its browsers."""


def create_app(host: Host) -> Starlette:
    """Make the ASGI app of ``host``; whoever runs it starts, drains and closes the host."""

    async def list_models(request: Request) -> Response:
        host.auth.check(request)
        return JSONResponse({"object": "list", "data": [_model(host, name) for name in _names(host)]})

    async def get_model(request: Request) -> Response:
        host.auth.check(request)
        name = request.path_params["name"]
        if name not in _names(host):
            raise RequestRefusedError(404, f"The model {name!r} is not served here.", code="model_not_found", param="model")
        return JSONResponse(_model(host, name))

    async def client_secrets(request: Request) -> Response:
        return await create_client_secret(host, request)

    async def health(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_request: Request) -> Response:
        reasons = host.not_ready()
        return JSONResponse({"status": "not ready" if reasons else "ready", "reasons": reasons}, 503 if reasons else 200)

    async def page(request: Request) -> Response:
        return HTMLResponse(_page(host, request))

    async def plain_request(_request: Request) -> Response:
        message = f"{REALTIME_PATH} is a WebSocket. Connect with a client of the OpenAI Realtime API; see / for a first conversation."
        return RequestRefusedError(426, message, code="upgrade_required").response()

    async def other_socket(websocket: WebSocket) -> None:
        message = f"There is no WebSocket at {websocket.url.path[:128]}. Clients connect to {REALTIME_PATH}."
        await host.refuse(websocket, RequestRefusedError(404, message, code="unknown_url"))

    routes = [
        WebSocketRoute(REALTIME_PATH, host.serve),
        WebSocketRoute("/{path:path}", other_socket),
        Route(REALTIME_PATH, plain_request),
        Route(CLIENT_SECRETS_PATH, client_secrets, methods=["POST"]),
        Route("/v1/models", list_models),
        Route("/v1/models/{name:path}", get_model),
        Route("/health", health),
        Route("/ready", ready),
        Route("/", page),
    ]
    handlers: dict[Any, Any] = {RequestRefusedError: _refused, HTTPException: _http_error, Exception: _failed}
    return Starlette(routes=routes, exception_handlers=handlers)


def _names(host: Host) -> list[str]:
    return [model.name for model in host.models]


def _model(host: Host, name: str) -> dict[str, Any]:
    model = next(model for model in host.models if model.name == name)
    return {"id": model.name, "object": "model", "created": model.created, "owned_by": model.adapter.plugin.distribution}


async def _refused(_request: Request, refusal: RequestRefusedError) -> Response:
    return refusal.response()


async def _http_error(request: Request, error: HTTPException) -> Response:
    message = f"{request.method} {request.url.path[:128]}: {error.detail}. Clients connect to {REALTIME_PATH}."
    codes = {404: "unknown_url", 405: "method_not_allowed"}
    response = RequestRefusedError(error.status_code, message, code=codes.get(error.status_code, "bad_request")).response()
    response.headers.update(error.headers or {})
    return response


async def _failed(_request: Request, error: Exception) -> Response:
    log_failure(logger, "a request", error)
    return RequestRefusedError(500, "The host failed to answer. Try again.", code="server_error", type="server_error").response()


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>omni-realtime</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
td, th {{ padding: .2rem 1rem .2rem 0; text-align: left }}
pre {{ padding: 1rem; background: #8882; overflow: auto }}
</style>
<h1>omni-realtime {version}</h1>
<p>This host speaks the OpenAI Realtime API. Connect a client to <code>{url}</code>.</p>
<table>
<tr><th>Model<th>Plugin<th>State</tr>
{rows}
</table>
<h2>Next step</h2>
<pre>from openai import OpenAI

client = OpenAI(base_url="{base_url}", api_key="{key}")
with client.realtime.connect(model="{model}") as connection:
    connection.session.update(session={{"type": "realtime", "output_modalities": ["text"]}})
    connection.conversation.item.create(
        item={{"type": "message", "role": "user", "content": [{{"type": "input_text", "text": "Hello!"}}]}}
    )
    connection.response.create()
    for event in connection:
        if event.type == "response.output_text.delta":
            print(event.delta, end="", flush=True)
        elif event.type == "response.done":
            break
</pre>
</html>
"""
_ROW = "<tr><td><code>{name}</code><td>{plugin}<td>{state}</tr>"


def _page(host: Host, request: Request) -> str:
    base = request.base_url
    socket_url = base.replace(scheme="wss" if base.scheme == "https" else "ws")
    rows = [
        _ROW.format(
            name=html.escape(model.name),
            plugin=html.escape(f"{model.adapter.plugin.name} ({model.adapter.plugin.distribution} {model.adapter.plugin.version})"),
            state=html.escape(model.not_ready or "ready"),
        )
        for model in host.models
    ]
    return _PAGE.format(
        version=__version__,
        url=html.escape(f"{str(socket_url).rstrip('/')}{REALTIME_PATH}"),
        base_url=html.escape(f"{str(base).rstrip('/')}/v1"),
        key="YOUR KEY" if host.auth.needs_key else "none",
        model=html.escape(host.models[0].name),
        rows="\n".join(rows),
    )
