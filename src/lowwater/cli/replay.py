"""`lowwater replay`: shows what recorded sessions would have cost under other policies, compared with the optimum."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lowwater.cli.command import AsJson

Where = Literal["local", "ray"]


def replay(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH…", help="Recorded sessions: files, or folders with all below them."),
    ],
    *,
    policies: Annotated[
        str, typer.Option(metavar="A,B,…", help="Only these policies; the optimum is always there.")
    ] = "",
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Replay with the prices, window and cache rules of this model, or price sheet (anthropic-r10, "
            "anthropic-r05, openai-30m, deepseek).",
        ),
    ] = "",
    full: Annotated[
        str,
        typer.Option(
            metavar="A,B,…|all|none", help="Which policies the real engine plays too, on the real messages."
        ),
    ] = "rent-or-buy,never",
    configuration: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The real engine's setup: shipped (as `lowwater run` on an API key), full (summaries just in "
            "time), own-model (by the session's model), keyless (by none), no-recall (nor recall).",
        ),
    ] = "shipped",
    thorough: Annotated[bool, typer.Option("--thorough", help="The real engine in both arms.")] = False,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep finished sessions there; run again, only the others are played."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes to play in; as many as cores.")
    ] = None,
    engine: Annotated[Where, typer.Option(help="Play here, or on a Ray cluster.")] = "local",
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="The Ray cluster; without it, one is started on this machine for the run.",
        ),
    ] = "",
    json: AsJson = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one page for a browser, too.")
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write tables for DuckDB and the like, too.",
        ),
    ] = None,
) -> None:
    """Show what recorded sessions would have cost under other policies.

    Each session is played again at its own times, without its own compactions
    and, beside it, as recorded. Policies are compared with the optimum, the
    cheapest schedule in hindsight ("~": with actions that it has not); costs
    include rework: a recall for each later use of something no longer in
    view. In the pessimistic arm the cache sometimes loses prefixes.

    lowwater replay ~/.claude/projects
    lowwater replay sessions/ --model claude-opus-5-5 --json | jq .policies
    lowwater replay sessions/ --policies rent-or-buy,claude-code --run replay.run
    lowwater replay ~/.claude/projects --html replay.html --configuration keyless
    lowwater replay sessions/ --engine ray --address auto --parquet tables/
    """
    from lowwater.cli.replay_run import Wanted, replay_all  # noqa: PLC0415 - numpy takes a while to load

    replay_all(
        Wanted(
            paths=tuple(paths),
            policies=_names(policies),
            model=model,
            full=_names(full),
            configuration=configuration,
            thorough=thorough,
            run=run,
            workers=workers,
            engine=engine,
            address=address,
            json=json,
            html=html,
            parquet=parquet,
        )
    )


def _names(given: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
