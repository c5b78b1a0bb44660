"""The dashboard's routes: pages and figures to read, a stream of what changes, and the few things one can do to a session.

It reads and changes sessions through the store, like any other process, so that it works beside a gateway and over a store alone. Nothing
is read before the page has shown the token (`access.py`); contents are plain text in JSON, and the page's content policy lets it
load nothing but its own files.
"""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from lowwater.core.stored import Listed
from lowwater.errors import BadInput, LowwaterError
from lowwater.gateway.dashboard.access import HEADER, DashboardAccess, Grant, cookie_name
from lowwater.gateway.dashboard.contents import Contents
from lowwater.gateway.dashboard.figures import WindowFillings, compaction_page, session_page, session_rows
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.origin_checks import refuse_web_pages
from lowwater.gateway.relay import Receive, Scope, Send
from lowwater.gateway.upstream import Refused
from lowwater.protocols import Store
from lowwater.session.reopen import open_kept
from lowwater.session.session import Session

PATH = "/dashboard"
_log = logging.getLogger("lowwater.gateway")
_PAGE_ROWS = 100
_MOST_BODY = 64 * 1024
_UNDO_SECONDS = 600.0
"""How long a deletion can be taken back; the session is deleted after that."""
_LOOK_SECONDS = 1.0
_LIST_SECONDS = 3.0
"""How often a stream looks whether its session has changed, or the list of sessions."""
_STEP_SECONDS = 0.25
_BEAT_SECONDS = 15.0
"""After how much silence a stream says that it is there."""
_MOST_STREAMS = 50
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_STYLES = (
    "colours.css",
    "layout.css",
    "controls.css",
    "tables.css",
    "uplot/uPlot.min.css",
    "charts.css",
    "media.css",
)
_SCRIPTS = ("uplot/uPlot.iife.min.js", "base.js", "table.js", "chart.js", "theme.js")

_LOCKED = "open the URL that Lowwater printed: it holds the token"

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]


class _Denied(Exception):
    """The request may not see or do this; carries the status and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Dashboard:
    """The ASGI application below `/dashboard`."""

    def __init__(
        self,
        store: Store,
        options: GatewayOptions,
        access: DashboardAccess,
        *,
        now: Callable[[], float] = time.time,
        undo_seconds: float = _UNDO_SECONDS,
    ) -> None:
        self._store = store
        self._options = options
        self._access = access
        self._now = now
        self._undo_seconds = undo_seconds
        self._secret = store.secret()
        self._contents = Contents(store, options.settings)
        self._fillings = WindowFillings(store, options.settings)
        self._deletions: dict[str, _Deletion] = {}
        self._listed: tuple[float, list[Listed]] = (float("-inf"), [])
        self._streams = 0
        self._is_ending = False
        reads: Mapping[str, Callable[[Request, Grant], Awaitable[object]]] = {
            "export": self._export,
            "sessions": self._sessions,
            "session": self._session,
            "filling": self._filling,
            "reason": self._reason,
            "compaction": self._compaction,
            "message": self._message,
            "pins": self._pins,
            "search": self._search,
        }
        acts: Mapping[str, Callable[[Mapping[str, Any], Grant], Awaitable[object]]] = {
            "undo": self._undo,
            "pin": self._pin,
            "unpin": self._unpin,
            "compact": self._compact,
            "delete": self._delete,
            "restore": self._restore,
        }
        entry = {"login": self._login, "unlock": self._unlock, "logout": self._logout}
        self._app = Starlette(
            routes=[
                Route(PATH, _page),
                Route(f"{PATH}/", _page),
                Route(f"{PATH}/app.css", _style),
                Route(f"{PATH}/app.js", _script),
                *(
                    Route(f"{PATH}/api/{name}", _endpoint(each), methods=["POST"])
                    for name, each in entry.items()
                ),
                Route(f"{PATH}/api/events", _endpoint(self._events)),
                *(Route(f"{PATH}/api/{name}", self._reading(each)) for name, each in reads.items()),
                *(
                    Route(f"{PATH}/api/{name}", self._acting(each), methods=["POST"])
                    for name, each in acts.items()
                ),
            ]
        )

    @staticmethod
    def has(path: str) -> bool:
        """Return whether a path is the dashboard's."""
        return path == PATH or path.startswith(f"{PATH}/")

    def url(self, base: str, session: str = "") -> str:
        """Return the URL that opens the dashboard, token included: whoever has it gets in."""
        return f"{base}{PATH}#token={self._access.token}" + (
            f"&s={quote(session, safe='')}" if session else ""
        )

    def end_streams(self) -> None:
        """Let open pages' streams end, so that a server that stops need not wait for them."""
        self._is_ending = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request to a path below `/dashboard`."""
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        try:
            refuse_web_pages(scope, headers, self._options)
        except Refused as refused:
            await _json({"error": refused.message}, status=refused.status)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """End; sessions whose deletion could still be taken back are kept."""
        for deletion in self._deletions.values():
            deletion.task.cancel()
        self._deletions.clear()

    # Getting in

    async def _login(self, request: Request) -> Response:
        body = await _body(request)
        cookie = self._access.admit(str(body.get("token", "")))
        if cookie is None:
            raise _Denied(403, "that is not this dashboard's token: take the whole URL that was printed")
        grant = self._access.grant_of(cookie)
        answer = _json({"page_key": grant.page_key if grant else ""})
        answer.set_cookie(cookie_name(request.url.port), cookie, path=PATH, httponly=True, samesite="strict")
        return answer

    async def _unlock(self, request: Request) -> object:
        body = await _body(request)
        self._grant(request)
        key, cookie = str(body.get("key", "")), _cookie(request)
        if not self._access.unlock(cookie, key, self._options, self._secret):
            raise _Denied(403, "that key opens nothing here")
        return {"ok": True}

    async def _logout(self, request: Request) -> Response:
        await _body(request)
        self._grant(request)
        self._access.lock(_cookie(request))
        answer = _json({"ok": True})
        answer.delete_cookie(cookie_name(request.url.port), path=PATH, httponly=True, samesite="strict")
        return answer

    def _grant(self, request: Request) -> Grant:
        cookie, page_key = _cookie(request), request.headers.get(HEADER, "")
        grant = self._access.opened(cookie, page_key)
        if grant is None:
            raise _Denied(401, _LOCKED)
        return grant

    def _reading(self, read: Callable[[Request, Grant], Awaitable[object]]) -> Endpoint:
        """Return the endpoint of what only reads."""

        async def granted(request: Request) -> object:
            return await read(request, self._grant(request))

        return _endpoint(granted)

    def _acting(self, act: Callable[[Mapping[str, Any], Grant], Awaitable[object]]) -> Endpoint:
        """Return the endpoint of an action, which only the dashboard's own page can ask for."""

        async def granted(request: Request) -> object:
            body = await _body(request)
            return await act(body, self._grant(request))

        return _endpoint(granted)

    # Reading

    async def _sessions(self, request: Request, grant: Grant) -> object:
        words = request.query_params.get("words", "").lower()
        first = max(0, _number(request, "first", 0))
        known = await self._all()
        sees = {each.name: grant.sees(each.about) for each in known}
        found = [each for each in known if _matches(each, words, sees=sees[each.name])] if words else known
        deleted = {name: each.until for name, each in self._deletions.items()}
        shown = found[first : first + _PAGE_ROWS]
        rows = await run_in_threadpool(session_rows, self._store, shown, sees=sees, deleted=deleted)
        return {
            "sessions": rows,
            "found": len(found),
            "total": len(known),
            "is_owner": grant.is_owner,
            "now": self._now(),
        }

    async def _session(self, request: Request, grant: Grant) -> object:
        listed = await self._named(request.query_params.get("name", ""))
        page = await run_in_threadpool(
            session_page, self._store, listed, self._options.settings, sees=grant.sees(listed.about)
        )
        deletion = self._deletions.get(listed.name)
        return page | {"deleted_at": deletion.until if deletion else None, "now": self._now()}

    async def _filling(self, request: Request, _: Grant) -> object:
        listed = await self._named(request.query_params.get("name", ""))
        return await run_in_threadpool(self._fillings.page, listed)

    async def _reason(self, request: Request, _: Grant) -> object:
        listed = await self._named(request.query_params.get("name", ""))
        return await run_in_threadpool(compaction_page, self._store, listed, _number(request, "number", 0))

    async def _compaction(self, request: Request, grant: Grant) -> object:
        listed = await self._seen(request.query_params.get("name", ""), grant)
        return await run_in_threadpool(self._contents.compaction, listed, _number(request, "number", 0))

    async def _message(self, request: Request, grant: Grant) -> object:
        listed = await self._seen(request.query_params.get("name", ""), grant)
        return await run_in_threadpool(self._contents.message, listed, _number(request, "number", 0))

    async def _pins(self, request: Request, grant: Grant) -> object:
        listed = await self._seen(request.query_params.get("name", ""), grant)
        return {"pins": await run_in_threadpool(self._contents.pins, listed)}

    async def _search(self, request: Request, grant: Grant) -> object:
        words, name = request.query_params.get("words", ""), request.query_params.get("name", "")
        known = [await self._seen(name, grant)] if name else await self._all()
        visible = {each.name: each for each in known if grant.sees(each.about)}
        return {"hits": await run_in_threadpool(self._contents.search, words, visible, session=name)}

    async def _export(self, request: Request, grant: Grant) -> Response:
        listed = await self._seen(request.query_params.get("name", ""), grant)
        lines = await run_in_threadpool(self._contents.export, listed)
        file = re.sub(r"[^A-Za-z0-9._-]", "-", listed.name)[:80]
        disposition = {"content-disposition": f'attachment; filename="{file}.jsonl"'}
        return Response(lines, media_type="application/x-ndjson", headers=_HEADERS | disposition)

    async def _all(self) -> list[Listed]:
        """Return all sessions, as they were a moment ago at most."""
        read_at, known = self._listed
        if time.monotonic() - read_at > _LOOK_SECONDS:
            known = await run_in_threadpool(self._store.sessions)
            self._listed = (time.monotonic(), known)
        return known

    async def _named(self, name: str) -> Listed:
        found = next((each for each in await self._all() if each.name == name), None)
        if found is None:
            raise _Denied(404, "there is no such session (any more)")
        return found

    async def _seen(self, name: str, grant: Grant) -> Listed:
        listed = await self._named(name)
        if not grant.sees(listed.about):
            raise _Denied(403, "contents need the key of the tenant that the session belongs to")
        return listed

    # A stream of what changes

    async def _events(self, request: Request) -> Response:
        # An EventSource cannot send the header; the stream says only that something has changed.
        if self._access.grant_of(_cookie(request)) is None:
            raise _Denied(401, _LOCKED)
        if self._streams >= _MOST_STREAMS:
            raise _Denied(503, "too many pages are open")
        changes = self._changes(request.query_params.get("name", ""), request)
        return StreamingResponse(changes, media_type="text/event-stream", headers=_HEADERS)

    async def _changes(self, name: str, request: Request) -> AsyncIterator[str]:
        """Yield an event whenever the session has changed or, without a name, the list; until the cookie no longer holds."""
        self._streams += 1
        try:
            was, silent = None, 0.0
            wait = _LOOK_SECONDS if name else _LIST_SECONDS
            while not self._is_ending and self._access.grant_of(_cookie(request)) is not None:
                state = await self._state_of(name)
                if state != was:
                    yield f"data: {state}\n\n"
                    was, silent = state, 0.0
                elif silent >= _BEAT_SECONDS:
                    yield ": here\n\n"
                    silent = 0.0
                silent += await self._pause(wait)
        except LowwaterError as error:
            _log.warning("the dashboard's stream ended: %s", type(error).__name__)
        finally:
            self._streams -= 1

    async def _pause(self, seconds: float) -> float:
        """Wait in small steps, so that the end of the server is noticed; return for how long."""
        for _ in range(round(seconds / _STEP_SECONDS)):
            if not self._is_ending:
                await asyncio.sleep(_STEP_SECONDS)
        return seconds

    async def _state_of(self, name: str) -> str:
        if name:
            return str((await run_in_threadpool(self._store.outline, name)).version)
        known = await self._all()
        newest = known[0] if known else None
        return f"{len(known)}-{newest.version if newest else 0}-{len(self._deletions)}"

    # Acting

    async def _changed(self, body: Mapping[str, Any], grant: Grant, change: Callable[[Session], T]) -> T:
        listed = await self._seen(str(body.get("name", "")), grant)
        if listed.name in self._deletions:
            raise _Denied(409, "this session is being deleted: restore it first")
        session = await run_in_threadpool(open_kept, self._store, listed, self._options.settings)
        done = await run_in_threadpool(change, session)
        self._listed = (float("-inf"), [])
        return done

    async def _undo(self, body: Mapping[str, Any], grant: Grant) -> object:
        to = str(body.get("to", ""))
        await self._changed(body, grant, lambda session: session.rewind(to))
        return {"ok": True}

    async def _pin(self, body: Mapping[str, Any], grant: Grant) -> object:
        text = str(body.get("text", ""))
        await self._changed(body, grant, lambda session: session.pin(text))
        return {"ok": True}

    async def _unpin(self, body: Mapping[str, Any], grant: Grant) -> object:
        text = str(body.get("text", ""))
        await self._changed(body, grant, lambda session: session.unpin(text))
        return {"ok": True}

    async def _compact(self, body: Mapping[str, Any], grant: Grant) -> object:
        focus = str(body.get("focus", ""))
        done = await self._changed(body, grant, lambda session: session.compress(focus or None))
        if done is None:
            return {"ok": False, "said": "nothing can be removed that would make the prompt smaller"}
        return {"ok": True, "before": done.before, "after": done.after}

    async def _delete(self, body: Mapping[str, Any], grant: Grant) -> object:
        listed = await self._seen(str(body.get("name", "")), grant)
        if body.get("confirmed") != listed.name:
            raise _Denied(400, "say which session to delete by its whole name")
        if listed.name not in self._deletions:
            until = self._now() + self._undo_seconds
            task = asyncio.create_task(self._delete_later(listed))
            self._deletions[listed.name] = _Deletion(until, task)
        return {"ok": True, "deleted_at": self._deletions[listed.name].until}

    async def _delete_later(self, listed: Listed) -> None:
        await asyncio.sleep(self._undo_seconds)
        try:
            current = await run_in_threadpool(self._store.outline, listed.name)
            if current.version == listed.version:
                await run_in_threadpool(self._store.delete, listed.name)
            else:
                _log.warning("a session was not deleted: it has gone on since")
        except LowwaterError as error:
            _log.warning("a session could not be deleted: %s", type(error).__name__)
        finally:
            self._deletions.pop(listed.name, None)
            self._listed = (float("-inf"), [])

    async def _restore(self, body: Mapping[str, Any], grant: Grant) -> object:
        listed = await self._seen(str(body.get("name", "")), grant)
        deletion = self._deletions.pop(listed.name, None)
        if deletion is None:
            raise _Denied(409, "this session is not being deleted")
        deletion.task.cancel()
        return {"ok": True}


class DashboardServer:
    """The dashboard over a store, without a gateway around it."""

    header_seconds = 30.0

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or follow the server's start and end."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http" and Dashboard.has(scope["path"]):
            await self._dashboard(scope, receive, send)
        elif scope["type"] == "http":
            is_root = scope["path"] == "/"
            answer = RedirectResponse(PATH) if is_root else _json({"error": "not found"}, status=404)
            await answer(scope, receive, send)

    def end_streams(self) -> None:
        """Let open pages' streams end."""
        self._dashboard.end_streams()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await self._dashboard.close()
        await send({"type": "lifespan.shutdown.complete"})


class _Deletion:
    """A session that is going to be deleted."""

    def __init__(self, until: float, task: "asyncio.Task[None]") -> None:
        self.until = until
        self.task = task


def _matches(listed: Listed, words: str, *, sees: bool) -> bool:
    told = f"{listed.name} {listed.model} {listed.about.source.partition(':')[0]} {listed.about.title if sees else ''}"
    return all(word in told.lower() for word in words.split())


def _cookie(request: Request) -> str:
    return request.cookies.get(cookie_name(request.url.port), "")


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else default


async def _body(request: Request) -> Mapping[str, Any]:
    """Return the JSON object in a request of our page; other sites' pages cannot send its header."""
    if not request.headers.get(HEADER) or request.headers.get("content-type") != "application/json":
        raise _Denied(403, "actions come from the dashboard's own page")
    pieces = bytearray()
    async for piece in request.stream():
        pieces += piece
        if len(pieces) > _MOST_BODY:
            raise _Denied(413, "that is too long")
    try:
        return msgspec.json.decode(bytes(pieces), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _Denied(400, "that is no JSON object") from None


def _endpoint(answering: Callable[[Request], Awaitable[object]]) -> Endpoint:
    """Return an endpoint that answers with a response or with values as JSON, or says why it cannot."""

    async def endpoint(request: Request) -> Response:
        try:
            answer = await answering(request)
        except _Denied as denied:
            return _json({"error": str(denied)}, status=denied.status)
        except BadInput as error:
            return _json({"error": str(error)}, status=400)
        except LowwaterError as error:
            return _json({"error": f"the store could not be used: {type(error).__name__}"}, status=503)
        return answer if isinstance(answer, Response) else _json(answer)

    return endpoint


def _json(value: object, *, status: int = 200) -> Response:
    return Response(
        msgspec.json.encode(value), status_code=status, media_type="application/json", headers=_HEADERS
    )


async def _page(_: Request) -> Response:
    return Response(_asset("index.html"), media_type="text/html", headers=_HEADERS)


async def _style(_: Request) -> Response:
    return Response(_styles(), media_type="text/css", headers=_HEADERS)


async def _script(_: Request) -> Response:
    return Response(_scripts(), media_type="text/javascript", headers=_HEADERS)


@cache
def _styles() -> str:
    return "\n".join([*map(_shared, _STYLES), _asset("dashboard.css")])


@cache
def _scripts() -> str:
    parts = [*map(_shared, _SCRIPTS), _asset("dashboard.js")]
    return "\n".join([f"/*\n{_shared('uplot/LICENSE')}*/", "(() => {", '"use strict";', *parts, "})();"])


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _shared(name: str) -> str:
    return files("lowwater").joinpath("data", "pages", name).read_text(encoding="utf-8")
