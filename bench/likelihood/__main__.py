"""How likely a recorded action still is under a compacted view, by a local open-weight model: docs/evidence.md.

    .venv/bin/python -m bench.likelihood points                  # choose the decision points anew, by the rule
    .venv/bin/python -m bench.likelihood inputs [--most 4000]    # the prompt of each, and every view of it, as tokens
    .venv/bin/python -m bench.likelihood validity-inputs         # the pairs of the validity check
    .venv/bin/python -m bench.likelihood probe-inputs            # questions about each session, and the one right answer
    .venv/bin/python -m bench.likelihood summary-prompts         # what a model would be asked to summarise
    .venv/bin/python -m bench.likelihood write                   # lets the scoring model write these summaries
    .venv/bin/python -m bench.likelihood summary-inputs          # the views with them, and how they were judged
    .venv/bin/python -m bench.likelihood shown                   # what of the next action stands in the views, by strings
    .venv/bin/python -m bench.likelihood score [INPUTS]          # on this machine, or --server URL, or --llama
    .venv/bin/python -m bench.likelihood sample                  # all of it for 20 short points, without a GPU
    .venv/bin/python -m bench.likelihood verify                  # PyTorch and the tokens beside llama.cpp's
    .venv/bin/python -m bench.likelihood table [--write]         # from the scores: docs/evidence.md and its picture

Everything can be stopped and goes on where it was. Inputs hold what was recorded and stay in bench/.likelihood, which git ignores;
scores are numbers and are part of the project. Without the recorded sessions only `table` has something to do.
"""

import argparse
import lzma
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.configurations import write_between
from bench.likelihood.build import build, case_of, in_order, own_views, peer_views
from bench.likelihood.evidence import (
    Scores,
    ablation_table,
    beside,
    by_length,
    by_point,
    main_table,
    picture,
    probe_table,
    validity_of,
    validity_table,
    views_in,
)
from bench.likelihood.gguf import Gguf
from bench.likelihood.inputs import write_case
from bench.likelihood.model import FOLDER, model_file, scoring_python
from bench.likelihood.peers import Peers
from bench.likelihood.points import BANDS, MOST_TOKENS, decisions, decisions_of, points, read_points, scripts
from bench.likelihood.probes import NEEDED, cases_of
from bench.likelihood.prompts import PLAIN, other_tokens
from bench.likelihood.score import latest, read_rows
from bench.likelihood.shown import Shown, shown_in, shown_table
from bench.likelihood.summaries import (
    Judged,
    SummaryViews,
    Texts,
    cases_with,
    extracted_and_stand_in,
    fitting,
    judged_table,
    with_summaries,
)
from bench.likelihood.validity import NEEDED_AUC, NEEDED_PAIRS, checked, is_composable, pairs_of, views_of
from bench.likelihood.views import ABLATED_AT
from bench.peers.environment import ROOT
from bench.transcripts import ABSENT, CANONICAL

HERE = Path(__file__).parent
POINTS, COMPOSABLE, JUDGED, SHOWN = (
    HERE / name for name in ("points.jsonl", "composable.json", "summaries.jsonl", "shown.jsonl")
)
SCORES, PROBE_SCORES, SUMMARY_SCORES, SAMPLE_SCORES = (
    HERE / f"{name}.jsonl.xz" for name in ("scores", "scores_probes", "scores_summaries", "scores_sample")
)
"""Kept in the project; scoring appends to a file of the same name in the ignored folder, and `table --write` packs that."""
INPUTS, PEER_INPUTS, PAIRS, PROBES, PROMPTS, TEXTS, SUMMARIES = (
    FOLDER / f"{name}.jsonl"
    for name in ("inputs", "peers", "validity", "probes", "prompts", "texts", "summaries")
)
PAGE = ROOT / "docs" / "evidence.md"
PICTURE = ROOT / "docs" / "pictures" / "likelihood.svg"
BEGIN, END = "<!-- bench.likelihood -->\n", "<!-- end of bench.likelihood -->\n"
SHOWN_POINTS = 120
SAMPLE_POINTS, SAMPLE_TOKENS, SAMPLE_MINUTES = 20, 4_000, 180.0
SAMPLE_VIEWS = "full,lowwater-25,newest-25"


def write_points() -> None:
    """Write the decision points, and print how many there are by source and length."""
    found = points()
    POINTS.write_bytes(b"".join(msgspec.json.encode(point) + b"\n" for point in found))
    counts = Counter((point.source, point.band) for point in found)
    for source in sorted({point.source for point in found}):
        print(f"{source:<28}" + "".join(f"{counts[source, band]:>6}" for band in BANDS))
    print(f"{len(found)} decision points")


def write_inputs(most: int, minutes: float, *, with_peers: bool) -> None:
    """Write what is scored of each decision point that has no line yet."""
    chosen = read_points(POINTS)
    if not with_peers:
        for number, _ in enumerate(build(INPUTS, chosen, own_views, most=most, minutes=minutes), start=1):
            print(f"\r{number} points", end="", file=sys.stderr, flush=True)
        return
    with Peers() as peers:
        print(", ".join(f"{name} {version}" for name, version in peers.versions().items()))
        made = build(PEER_INPUTS, chosen, lambda each: peer_views(each, peers), most=most, minutes=minutes)
        for number, _ in enumerate(made, start=1):
            print(f"\r{number} points", end="", file=sys.stderr, flush=True)
        for name, why in peers.failed.items():
            print(f"{name}: {why}")


def write_pairs(most: int) -> None:
    """Write the prompts of the validity check, and of which of them the name can be put together from parts said elsewhere."""
    FOLDER.mkdir(exist_ok=True)
    every = (each for source, script in scripts() for each in decisions_of(source, script, most=most))
    found = checked(every)
    PAIRS.write_bytes(b"".join(write_case(case_of(each, dict(views_of(each)))) for each in found))
    told = {each.point.name: is_composable(each, pairs_of(each)[0]) for each in found}
    COMPOSABLE.write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=0) + b"\n")
    print(f"{len(found)} pairs")


def write_probes(most: int) -> None:
    """Write the questions about the session of each decision point."""
    FOLDER.mkdir(exist_ok=True)
    chosen = [each for each in read_points(POINTS) if not most or each.tokens <= most]
    kinds: Counter[str] = Counter()
    with PROBES.open("wb") as file:
        for decision in decisions(chosen):
            for case in cases_of(decision):
                file.write(write_case(case))
                kinds[case.spots[0].kind] += 1
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items())))


def write_prompts() -> None:
    """Write what a model would be asked to summarise at the first points where the engine asks for a summary."""
    with SummaryViews(Texts(), only_asks=True) as views:
        chosen = in_order(fitting(read_points(POINTS)))
        for number, _ in enumerate(with_summaries(chosen, views), start=1):
            print(f"\r{number} points", end="", file=sys.stderr, flush=True)
        asked = views.texts.asked.values()
    PROMPTS.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in asked))
    print(f"{len(asked)} prompts")


def write_summary_inputs(texts: Path) -> None:
    """Write the views with the summaries that the model wrote, and how they were judged."""
    with SummaryViews(Texts(texts)) as views, SUMMARIES.open("wb") as file:
        chosen = in_order(fitting(read_points(POINTS)))
        for number, (decision, made) in enumerate(with_summaries(chosen, views), start=1):
            for case in cases_with(decision, {**dict(extracted_and_stand_in(decision)), **made}):
                file.write(write_case(case))
            print(f"\r{number} points", end="", file=sys.stderr, flush=True)
    JUDGED.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in views.judged))
    print(f"{len(views.judged)} summaries judged, {len(views.texts.asked)} prompts without an answer")


def score(arguments: Sequence[str]) -> int:
    """Run the scoring in its environment."""
    command = [str(scoring_python()), "-m", "bench.likelihood.score", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def write_shown() -> None:
    """Write what of the next action stands in the views of the first points, and print it."""
    rows = [row for decision in in_order(read_points(POINTS)[:SHOWN_POINTS]) for row in shown_in(decision)]
    SHOWN.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    print("\n".join(shown_table(rows)))


def write(prompts: Path, texts: Path) -> int:
    """Let the model answer prompts, in the environment of the scoring."""
    command = [str(scoring_python()), "-m", "bench.likelihood.write", str(prompts), str(texts)]
    return subprocess.run([*command, "--model", str(model_file())], cwd=ROOT, check=False).returncode


def sample(minutes: float) -> int:
    """Score three views of some short prompts on this machine, and print what they say."""
    write_inputs(SAMPLE_TOKENS, minutes, with_peers=False)
    sizes = ["--most", str(SAMPLE_TOKENS), "--points", str(SAMPLE_POINTS), "--minutes", str(minutes)]
    done = score(
        [
            str(INPUTS),
            str(FOLDER / SAMPLE_SCORES.stem),
            "--model",
            str(model_file()),
            "--views",
            SAMPLE_VIEWS,
            *sizes,
        ]
    )
    scores = scores_of(SAMPLE_SCORES)
    print("\n".join([*main_table(scores), "", *beside(scores)]))
    return done


def scores_of(kept: Path) -> Scores:
    """Return the scores of a kept file with what was scored since."""
    return by_point([*read_rows(kept), *read_rows(FOLDER / kept.stem)])


def keep_scores() -> None:
    """Pack what was scored since into the files that are kept."""
    for kept in (SCORES, PROBE_SCORES, SUMMARY_SCORES, SAMPLE_SCORES):
        new = FOLDER / kept.stem
        if new.exists():
            rows = latest([*read_rows(kept), *read_rows(new)])
            kept.write_bytes(lzma.compress(b"".join(msgspec.json.encode(row) + b"\n" for row in rows)))
            new.unlink()


def page() -> Iterator[str]:
    """Yield the part of the page that is made of scores."""
    full = scores_of(SCORES)
    found = validity_of(full)
    yield from ["### Validity", ""]
    if found is None:
        yield "No pair has been scored."
    else:
        yield from validity_table(full, msgspec.json.decode(COMPOSABLE.read_bytes(), type=dict[str, bool]))
        verdict = "passes" if found.passes else "does not pass"
        yield ""
        yield (
            f"The check asks for an AUC of at least {NEEDED_AUC} on at least {NEEDED_PAIRS} pairs: over references it **{verdict}**, "
            f"with {found.auc:.3f} on {found.pairs}."
        )
    if found is not None and found.passes:
        yield from _tables(full)
    else:
        yield from ["", "Until it passes, no table of views is published."]
    yield from _summaries()
    asked = scores_of(PROBE_SCORES)
    if asked:
        yield from ["", "### Questions about the session", "", *probe_table(asked), ""]
        yield f"Kinds that are right less than {NEEDED:.0%} of the time with the full prompt say nothing about views."
    sampled = scores_of(SAMPLE_SCORES)
    yield from ["", "### The sample, on a processor", ""]
    if sampled:
        yield f"{len(sampled)} points with prompts of up to {SAMPLE_TOKENS:,} tokens; beside them the same points and views of the full run."
        same = {point: {view: full[point][view] for view in views} for point, views in sampled.items()}
        yield from ["", *main_table(sampled), "", *beside(sampled), "", *main_table(same), "", *beside(same)]
    else:
        yield "Nothing has been scored."


def _tables(full: Scores) -> Iterator[str]:
    ablated = f"lowwater-{ABLATED_AT:.0%}"
    parts = {
        "What each view loses": main_table(full),
        "Beside Lowwater at the same number of tokens": beside(full),
        f"Lowwater's parts, switched off one at a time under a ceiling of {ABLATED_AT:.0%}": ablation_table(
            full, ablated
        ),
        "By length of the full prompt": by_length(full, views_in(full)),
    }
    for title, lines in parts.items():
        yield from ["", f"### {title}", "", *lines]
    if SHOWN.exists():
        rows = [msgspec.json.decode(line, type=Shown) for line in SHOWN.read_bytes().splitlines()]
        yield from ["", "### What stands in the view, by strings", "", *shown_table(rows)]
    yield from ["", "![Share of the prompt's tokens against nats lost](pictures/likelihood.svg)"]


def _summaries() -> Iterator[str]:
    scores = scores_of(SUMMARY_SCORES)
    if scores:
        judged = [msgspec.json.decode(line, type=Judged) for line in JUDGED.read_bytes().splitlines()]
        yield from [
            "",
            "### Summaries by a real model",
            "",
            *judged_table(judged),
            "",
            *main_table(scores),
            "",
        ]
        yield from beside(scores, "extractive")


def main() -> int:
    """Do what was asked for."""
    asked = _parser().parse_args()
    match asked.command:
        case "table":
            return _table(write=asked.write)
        case "score":
            return _score(asked)
        case "write":
            return write(PROMPTS, TEXTS)
        case "verify":
            return _verify()
        case _ if not CANONICAL.is_dir():
            print(ABSENT)
            return 0
        case "sample":
            return sample(asked.minutes)
        case _:
            _make(asked)
            return 0


def _make(asked: argparse.Namespace) -> None:
    """Write what is made of the recorded sessions."""
    match asked.command:
        case "points":
            write_points()
        case "inputs":
            write_inputs(asked.most, asked.minutes, with_peers=asked.peers)
        case "probe-inputs":
            write_probes(asked.most)
        case "validity-inputs":
            write_pairs(asked.most or MOST_TOKENS)
        case "shown":
            write_shown()
        case "summary-prompts":
            write_prompts()
        case _:
            write_summary_inputs(asked.texts)


def _table(*, write: bool) -> int:
    if write:
        keep_scores()
    said = "\n".join(page())
    print(said)
    if write:
        write_between(PAGE, BEGIN, END, said)
        PICTURE.write_text(picture(scores_of(SCORES)), encoding="utf-8")
    return 0


def _score(asked: argparse.Namespace) -> int:
    inputs = asked.inputs or INPUTS
    by = ["--server", asked.server] if asked.server else ["--llama" if asked.llama else "--model"]
    if not asked.server:
        by.append(str(model_file()))
    limits = ["--minutes", str(asked.minutes), "--most", str(asked.most), "--points", str(asked.points)]
    kept = {PROBES.stem: PROBE_SCORES, SUMMARIES.stem: SUMMARY_SCORES}
    to = kept.get(inputs.name.partition(".")[0], SCORES)
    return score([str(inputs), str(FOLDER / to.stem), *by, *limits, "--views", asked.views])


def _verify() -> int:
    spelled = Gguf(model_file()).metadata["tokenizer.ggml.tokens"]
    wrong = other_tokens(spelled)
    print(f"{PLAIN - len(wrong):,} of {PLAIN:,} tokens are the same bytes as in the model's file")
    command = [str(scoring_python()), "-m", "bench.likelihood.verify", str(INPUTS), str(model_file())]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def _file(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {name}; {__package__} --help says what makes it")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("points", help="choose the decision points")
    making = commands.add_parser("inputs", help="make what is scored")
    making.add_argument(
        "--peers", action="store_true", help="the views of the peers, from their own packages"
    )
    pairs = commands.add_parser("validity-inputs", help="make the pairs of the validity check")
    probing = commands.add_parser("probe-inputs", help="make the questions about each session")
    commands.add_parser("shown", help="count by strings what stands in the views")
    commands.add_parser("summary-prompts", help="make the requests for summaries")
    commands.add_parser("write", help="let the scoring model answer them")
    summarised = commands.add_parser("summary-inputs", help="make the views with these summaries")
    summarised.add_argument("--texts", type=_file, default=str(TEXTS), help="what the model wrote")
    scoring = commands.add_parser("score", help="score a file of inputs")
    scoring.add_argument("inputs", nargs="?", type=_file)
    scoring.add_argument("--server", default="", help="the address of a vLLM server with the model")
    scoring.add_argument("--llama", action="store_true", help="by llama.cpp instead of PyTorch")
    scoring.add_argument("--views", default="", help="beginnings of the names of views")
    scoring.add_argument("--points", type=int, default=0, help="so many points at most")
    for each in (making, pairs, probing, scoring):
        each.add_argument("--most", type=int, default=0, help="leave out points with longer prompts")
    sampling = commands.add_parser("sample", help="20 short points on this machine")
    for each in (making, scoring, sampling):
        each.add_argument("--minutes", type=float, default=SAMPLE_MINUTES, help="stop after so many minutes")
    commands.add_parser("verify", help="compare PyTorch and the tokens with llama.cpp")
    writing = commands.add_parser("table", help="print what the scores say")
    writing.add_argument("--write", action="store_true", help="put it into docs/evidence.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
