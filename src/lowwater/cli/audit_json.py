"""What `lowwater audit --json` tells programs.

    {"interrupted", "since", "files", "files_from_cache", "broken_lines", "broken_at": [PLACE…], "unread": [{path, why}…],
     "copied_calls",
     "total":    LINE, "models": [LINE…], "days": [LINE…],
     "sessions": [LINE with agent, path, model, parent, relation, started_at, ended_at, peak_prompt, broken_lines,
                  compactions: [COMPACTION…], foreseen, saving, not_estimated…],
     "compactions": {compactions, cost, saved, net, late, calls_late},
     "possible":    {sessions, recorded, never, rent_or_buy, actions, modelled} or null,
     "not_estimated": {REASON: SESSIONS…}, REASON being numpy, no_prices, no_sizes, copied, too_large or cut,
     "accuracy":    {sessions, median_error, p90_error} or null}

LINE is {name, sessions, calls, unpriced_calls, prompt, uncached, cache_read, cache_write, cache_write_long, output,
hit_share, cost, spending: {reads, writes, uncached, output}, lost, misses: {CAUSE: {misses, tokens, cost}}}. Money is
in nano-dollars, and null if it is not known; times are seconds since the epoch.
"""

from msgspec import to_builtins

from lowwater.lab.audit.findings import AuditedSession, Native
from lowwater.lab.audit.report import Line, Report, by_day, by_model, dearest, line_of

Json = dict[str, object]


def said(report: Report, *, since: float | None, interrupted: bool) -> Json:
    """Return everything an audit found, for programs."""
    return {
        "interrupted": interrupted,
        "since": since,
        "files": report.files,
        "files_from_cache": report.kept,
        "broken_lines": report.broken,
        "broken_at": report.broken_at,
        "unread": [{"path": one.path, "why": one.why} for one in report.unread],
        "copied_calls": report.copied,
        "total": _line(report.total),
        "models": [_line(line) for line in by_model(report.sessions)],
        "days": [_line(line) for line in by_day(report.sessions)],
        "sessions": [_session(session) for session in dearest(report.sessions)],
        "compactions": report.compacted,
        "possible": report.possible,
        "not_estimated": report.not_estimated,
        "accuracy": report.accuracy,
    }


def _line(line: Line) -> Json:
    figures = line.figures
    return {
        "name": line.name,
        "sessions": line.sessions,
        "calls": figures.calls,
        "unpriced_calls": figures.unpriced,
        "prompt": figures.prompt,
        "uncached": figures.uncached,
        "cache_read": figures.cache_read,
        "cache_write": figures.cache_write,
        "cache_write_long": figures.cache_write_long,
        "output": figures.output,
        "hit_share": figures.hit_share,
        "cost": figures.cost,
        "spending": line.spending,
        "lost": line.lost,
        "misses": line.missed,
    }


def _session(session: AuditedSession) -> Json:
    return _line(line_of(session)) | {
        "agent": session.agent,
        "path": session.path,
        "model": session.model,
        "parent": session.parent,
        "relation": session.relation,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "peak_prompt": session.peak_prompt,
        "broken_lines": session.broken,
        "compactions": [_native(native) for native in session.natives],
        "foreseen": session.foreseen,
        "saving": session.saving,
        "not_estimated": session.not_estimated,
    }


def _native(native: Native) -> Json:
    fields: Json = to_builtins(native)
    return fields | {"net": native.net}
