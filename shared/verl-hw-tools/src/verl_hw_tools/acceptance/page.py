# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file that needs nothing from outside: verdict, criteria, plots, thresholds."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from verl_hw_tools.acceptance.criterion import Criterion, Status
from verl_hw_tools.acceptance.judge import Verdict
from verl_hw_tools.acceptance.plots import svg
from verl_hw_tools.acceptance.thresholds import names, reasons
from verl_hw_tools.errors import OutputFolderError

_BADGES = {Status.PASSED: "pass", Status.FAILED: "fail", Status.NOT_JUDGED: "not judged"}
_STYLE = """
:root { color-scheme: light; --ink: #1f2328; --pale: #59636e; --line: #d1d9e0; --good: #1a7f37; --bad: #b42318; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f8fa; color: var(--ink); line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 60px; }
header, section { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 20px 24px;
  margin-bottom: 18px; }
header { border-left: 8px solid var(--verdict); }
h1 { margin: 0 0 6px; font-size: 26px; color: var(--verdict); }
h2 { margin: 0 0 10px; font-size: 17px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 0; }
dt { color: var(--pale); } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--pale); font-size: 13px; }
th, td { padding: 8px 12px 8px 0; border-top: 1px solid var(--line); vertical-align: top; }
tr:first-child th { border-top: 0; }
td.number { font-variant-numeric: tabular-nums; min-width: 170px; }
td small { color: var(--pale); display: block; font-size: 13.5px; }
.badge { display: inline-block; min-width: 84px; text-align: center; border-radius: 20px; padding: 1px 10px;
  font-size: 13px; font-weight: 600; }
.pass { background: #dafbe1; color: var(--good); }
.fail { background: #ffdfdb; color: var(--bad); }
.open { background: #eff2f5; color: var(--pale); }
.note { background: #fff8c5; border: 1px solid #eac54f; border-radius: 6px; padding: 6px 12px; margin: 12px 0 0; }
img { display: block; width: 100%; height: auto; }
summary { cursor: pointer; font-weight: 600; }
footer { color: var(--pale); font-size: 13px; }
@media print { body { background: #fff; } header, section { break-inside: avoid; } }
"""


def write_page(verdict: Verdict, path: Path) -> None:
    """Write the report.

    Raises:
        OutputFolderError: It cannot be written.
    """
    try:
        path.write_text(page(verdict), encoding="utf-8")
    except OSError as error:
        raise OutputFolderError(f"--html {path} cannot be written: {error.strerror or error}") from error


def page(verdict: Verdict) -> str:
    """Return the report as HTML."""
    colour = "var(--good)" if verdict.accepted else "var(--bad)"
    stated = [one for one in verdict.criteria if one.stated]
    others = [one for one in verdict.criteria if not one.stated]
    picture = base64.b64encode(svg(verdict).encode()).decode()
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(verdict.headline)}</title>
<style>{_STYLE}</style>
</head>
<body style="--verdict: {colour}">
<main>
<header>
<h1>{escape(verdict.headline)}</h1>
{_about(verdict)}
{"".join(f'<p class="note">{escape(note)}</p>' for note in verdict.notes)}
</header>
<section><h2>What the field asks for</h2>{_table(stated)}</section>
<section><img alt="Curves of the run and its references" src="data:image/svg+xml;base64,{picture}"></section>
{f"<section><h2>What a good reward can hide</h2>{_table(others)}</section>" if others else ""}
<section><details><summary>Thresholds and their reasons</summary>{_thresholds(verdict)}</details></section>
<footer>Written by verl-hw accept. Thin lines: as logged; thick lines: moving average of {verdict.limits.smoothing}
steps. Trend: Mann-Kendall test, one-sided, variance corrected for autocorrelation (Hamed and Rao, 1998).</footer>
</main>
</body>
</html>
"""


def _about(verdict: Verdict) -> str:
    rows = [("run", verdict.run), *(("reference", reference) for reference in verdict.references)]
    return (
        "<dl>"
        + "".join(
            f"<dt>{kind}</dt><dd>{escape(run.source)} ({escape(run.format)}, {run.last_step} steps)</dd>"
            for kind, run in rows
        )
        + "</dl>"
    )


def _table(criteria: Sequence[Criterion]) -> str:
    rows = "".join(_row(one) for one in criteria)
    return (
        '<div class="scroll"><table><tr><th></th><th>criterion</th><th>found</th><th>wanted</th></tr>'
        f"{rows}</table></div>"
    )


def _row(one: Criterion) -> str:
    kind = "open" if one.status is Status.NOT_JUDGED else _BADGES[one.status]
    metric = f" <code>{escape(one.metric)}</code>" if one.metric else ""
    return (
        f'<tr><td><span class="badge {kind}">{_BADGES[one.status]}</span></td>'
        f"<td>{escape(one.title)}<small>{escape(one.meaning)}{metric}</small></td>"
        f'<td class="number">{escape(one.found)}</td><td class="number">{escape(one.wanted)}</td></tr>'
    )


def _thresholds(verdict: Verdict) -> str:
    changed = verdict.limits.adjusted
    rows = "".join(
        f"<tr><td><code>{name}</code></td><td>{getattr(verdict.limits, name):g}"
        f"{' (changed)' if name in changed else ''}</td><td>{escape(reasons()[name])}</td></tr>"
        for name in names()
    )
    return f"<table><tr><th>name</th><th>value</th><th>reason</th></tr>{rows}</table>"
