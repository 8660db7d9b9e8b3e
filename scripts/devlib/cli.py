# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The subcommands of ``scripts/dev.py``."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from devlib import environment as envs
from devlib.console import EXIT_INTERRUPTED, DevError, InterruptedByUser, Phases, call, fail, say
from devlib.stack_command import stack

USAGE = """\
usage: python3 scripts/dev.py COMMAND [ARGUMENT ...]

Makes the locked environment in .venv (and uv, where there is none), then runs one command in it.

  demo [ARG ...]      a simulated demo: verl-hw demo ARG ...       (try: demo grpo --vendor cambricon)
  test [ARG ...]      static checks, then pytest ARG ...           (try: test -k platform)
       --slow         every test, the long end-to-end runs too
       --ci           what CI runs: the default tests and the slow ones marked 'ci' (implied by CI=true)
       --no-lint      pytest only
  lint [--fix]        ruff, mypy, layers, codespell, tree, dependencies, documentation; --fix lets ruff mend and format
  docs [ARG ...]      documentation into build/docs/html, where a warning is an error; ARG ... goes to sphinx-build
       --links        ask every link to another site instead
  build [ARG ...]     wheel and sdist of every package into dist/, checked with twine
  box OUT [ARG ...]   a folder that runs verl on a machine with a device and no network (docs/real_silicon.md)
  run COMMAND [ARG]   any command of the environment               (try: run verl-hw detect)
  stack NAME [...]    the tests in an image's versions, beside .venv  (see: stack --help)
  sync                the environment only

Everything after COMMAND that is not listed here is passed on as it stands; the exit status is the command's own.
"""

SELECTIONS = {"--fast": "not slow", "--ci": "not slow or ci", "--slow": ""}
# A run of CI that is not over by then leaves out slow tests; runners end it after 90 minutes.
CI_SECONDS = 75 * 60
# Each with one thread: two processes on two cores. A file's tests stay together, since they share what is dear to make.
PARALLEL = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
_BEGAN = time.monotonic()


def main(argv: list[str]) -> int:
    """Run one subcommand.

    Returns:
        The exit status: the command's own, 2 for something to put right first, 130 after Ctrl-C.
    """
    commands = {command.__name__: command for command in (demo, test, lint, docs, build, box, run, sync, stack)}
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0 if argv else 2
    name, arguments = argv[0], argv[1:]
    if name not in commands:
        return fail(f"unknown command {name!r}\n\n{USAGE}")
    try:
        return commands[name](arguments)
    except DevError as error:
        return fail(str(error))
    except (InterruptedByUser, KeyboardInterrupt):
        print("\ndev.py: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def demo(arguments: list[str]) -> int:
    """Run the demo; replaces this process, so that Ctrl-C and the exit status are the demo's own."""
    envs.check_compiler()
    activate = envs.environment_dir() / "bin" / "activate"
    say(f"verl-hw is in the environment: source {activate}, or python3 scripts/dev.py run verl-hw ...")
    return run(["verl-hw", "demo", *arguments])


def run(arguments: list[str]) -> int:
    """Replace this process by a command of the environment, in the caller's folder."""
    if not arguments:
        raise DevError("run what? For example:  python3 scripts/dev.py run verl-hw detect")
    env = _prepared()
    command = shutil.which(arguments[0], path=env["PATH"])
    if command is None:
        raise DevError(f"no command {arguments[0]!r} in the environment or on PATH")
    sys.stdout.flush()
    os.execve(command, [command, *arguments[1:]], env)


def sync(arguments: list[str]) -> int:
    """Make the environment and do nothing else."""
    if arguments:
        raise DevError(f"sync takes no arguments, got {' '.join(arguments)}")
    _prepared()
    return 0


def test(arguments: list[str]) -> int:
    """Static checks, then pytest, whose closing line is the last thing said in CI."""
    if {"-h", "--help"} & set(arguments):
        print(USAGE, end="")
        return 0
    envs.check_compiler()
    in_ci = os.environ.get("CI", "").lower() in ("1", "true")
    own = {"--no-lint", *SELECTIONS}
    selection = next((option for option in arguments if option in SELECTIONS), "--ci" if in_ci else "--fast")
    phases = Phases(cwd=envs.ROOT, env=_prepared())
    if "--no-lint" not in arguments:
        _static_checks(phases)
        say(f"static checks: {phases.summary()}")
    before = list(phases.failed)
    command = [envs.executable("pytest"), "-m", SELECTIONS[selection]]
    options = [option for option in arguments if option not in own]
    parallel = _parallel(options)
    env = {**({"OMP_NUM_THREADS": "1"} if parallel else {}), **phases.env}
    command += [*parallel, *(["--durations=40"] if in_ci else []), *options]
    if in_ci:
        if selection == "--ci":
            command += [f"--time-budget={max(0.0, CI_SECONDS - (time.monotonic() - _BEGAN)):.0f}"]
        # No line of our own after pytest's.
        say(f"== pytest ({selection[2:]})")
        status = call(command, cwd=envs.ROOT, env=env)
    else:
        phases.env = env
        status = phases.run(f"pytest ({selection[2:]})", command)
        say(phases.summary())
    return status or (1 if before else 0)


def _parallel(options: Sequence[str]) -> Sequence[str]:
    """pytest's options for two processes, where there are two cores and nobody wants to look into one."""
    by_hand = ("-n", "--numprocesses", "--dist", "--pdb", "--trace", "-s", "--capture")
    if (os.cpu_count() or 1) < 2 or any(option.startswith(by_hand) for option in options):
        return ()
    return PARALLEL


def lint(arguments: list[str]) -> int:
    """The static checks alone."""
    if arguments not in ([], ["--fix"]):
        raise DevError(f"lint takes --fix or nothing, got {' '.join(arguments)}")
    phases = Phases(cwd=envs.ROOT, env=_prepared())
    if arguments:
        phases.run("ruff check --fix", [envs.executable("ruff"), "check", "--fix", "."])
        phases.run("ruff format", [envs.executable("ruff"), "format", "."])
    _static_checks(phases)
    say(phases.summary())
    return 1 if phases.failed else 0


def docs(arguments: list[str]) -> int:
    """The documentation; links inside it are checked, and with ``--links`` those to other sites."""
    phases = Phases(cwd=envs.ROOT, env=_prepared())
    links = "--links" in arguments
    options = [option for option in arguments if option != "--links"]
    _build_docs(phases, "linkcheck" if links else "html", options)
    say(phases.summary())
    return 1 if phases.failed else 0


def build(arguments: list[str]) -> int:
    """Wheel and sdist of every package, as a release builds them: without the workspace's own sources."""
    dist = envs.ROOT / "dist"
    for old in (*dist.glob("verl_hw_*.whl"), *dist.glob("verl_hw_*.tar.gz")):
        old.unlink()
    env = _prepared()
    phases = Phases(cwd=envs.ROOT, env=env)
    command = [_uv(env), "build", "--all-packages", "--no-sources", "--out-dir", str(dist), *arguments]
    if phases.run("uv build", command) == 0:
        built = sorted(str(path.relative_to(envs.ROOT)) for path in dist.glob("verl_hw_*") if path.is_file())
        phases.run("twine check", [envs.executable("twine"), "check", "--strict", *built])
    say(phases.summary())
    return 1 if phases.failed else 0


def box(arguments: list[str]) -> int:
    """Build a box: a folder that runs verl on a machine with a device and no network."""
    env = {**_prepared(), "PYTHONPATH": str(envs.ROOT / "scripts")}
    return call([envs.executable("python"), "-m", "devlib.box", *arguments], cwd=Path.cwd(), env=env)


def _static_checks(phases: Phases) -> None:
    bin_ = envs.executable
    phases.run("uv pip check", [_uv(dict(phases.env)), "pip", "check"])
    phases.run("ruff check", [bin_("ruff"), "check", "."])
    phases.run("ruff format", [bin_("ruff"), "format", "--check", "."])
    phases.run("mypy", [bin_("mypy")])
    phases.run("lint-imports", [bin_("lint-imports"), "--no-cache"])
    phases.run("codespell", [bin_("codespell")])
    phases.run("zizmor", [bin_("zizmor"), "--offline", "--quiet", ".github/workflows"])
    phases.run("tree", [bin_("python"), "scripts/check_tree.py"])
    _build_docs(phases, "html", [])


def _build_docs(phases: Phases, builder: str, options: list[str]) -> None:
    command = [envs.executable("sphinx-build"), "-W", "--keep-going", "-q", "-b", builder, *options]
    phases.run(f"sphinx-build ({builder})", [*command, "docs", f"build/docs/{builder}"])


def _prepared() -> dict[str, str]:
    uv = envs.find_uv()
    envs.sync(uv)
    return envs.child_env(uv)


def _uv(env: dict[str, str]) -> str:
    return shutil.which("uv", path=env["PATH"]) or "uv"
