"""The command line: what it prints, writes and returns, and one line for whatever is wrong."""

import itertools
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import proxlearn as pl
from proxlearn.cli import main
from proxlearn.cli import solve_job as jobs
from proxlearn.evaluation import audit
from proxlearn.names import ENGINES
from proxlearn.solving import solver

rng = np.random.default_rng(0)
A = rng.standard_normal((12, 8))
B = A @ np.array([1.0, 0, 0, -2, 0, 0, 0, 0.5])
LABELS = (B > 0).astype(float)
CLASSES = np.arange(12) % 3
GROUPS = np.arange(8) // 2
COMMANDS = ("solve", "demo", "compare", "train", "report", "audit", "reproduce", "solve-batch",
            "tune", "models")  # fmt: skip
WEIGHTS = np.linspace(0.5, 2, 8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the arrays above as .npy files."""
    monkeypatch.chdir(tmp_path)
    for name, array in [("A", A), ("b", B), ("labels", LABELS), ("classes", CLASSES)]:
        np.save(f"{name}.npy", array)
    np.save("groups.npy", GROUPS)
    np.save("weights.npy", WEIGHTS)
    return tmp_path


def run(command, capsys):
    """Exit code, stdout and stderr of a command given as one string."""
    code = main(command.split())
    captured = capsys.readouterr()
    return code, captured.out, captured.err


KINDS = {
    "lasso A.npy b.npy --lam 0.3": lambda: pl.lasso(A, B, 0.3),
    "lasso A.npy b.npy --lam 0.3 --weights weights.npy": lambda: pl.lasso(A, B, 0.3, WEIGHTS),
    "elastic-net A.npy b.npy --lam 0.3 --lam2 0.1": lambda: pl.elastic_net(A, B, 0.3, 0.1),
    "nnls A.npy b.npy": lambda: pl.nnls(A, B),
    "simplex-ls A.npy b.npy": lambda: pl.simplex_ls(A, B),
    "simplex-ls A.npy b.npy --radius 2": lambda: pl.simplex_ls(A, B, 2),
    "group-lasso A.npy b.npy --lam 0.3 --groups groups.npy": lambda: pl.group_lasso(
        A, B, 0.3, GROUPS
    ),
    "logistic A.npy labels.npy --lam 0.01": lambda: pl.logistic(A, LABELS, 0.01),
    "softmax A.npy classes.npy --lam 0.01": lambda: pl.softmax(A, CLASSES, 0.01),
    "softmax A.npy classes.npy --lam 0.01 --classes 4": lambda: pl.softmax(A, CLASSES, 0.01, 4),
}


@pytest.mark.parametrize("command", KINDS)
def test_every_kind_agrees_with_the_library(folder, capsys, command):
    code, out, err = run(f"solve {command} --out x.npy --json", capsys)
    assert (code, err) == (0, "")
    solution = pl.solve(KINDS[command]())
    np.testing.assert_array_equal(np.load("x.npy"), solution.x)
    record = json.loads(out)
    assert record["solved"]
    assert record["status"] == ["SOLVED"]
    assert record["objective"] == solution.objective.tolist()
    assert record["iterations"] == solution.iterations.tolist()
    assert record["grad_evals"] == solution.grad_evals.tolist()
    assert record["nonzeros"] == [int((solution.x != 0).sum())]
    assert record["gap_known"] == [True]
    assert record["gap"] == solution.gap.tolist()
    assert record["engine"] == solution.engine
    assert "x" not in record


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "mtx"])
def test_every_format_gives_the_same_answer(folder, capsys, suffix):
    np.savez("A.npz", A)
    np.savez("b.npz", B)
    np.savetxt("A.csv", A, delimiter=",", fmt="%.17g")
    np.savetxt("b.csv", B, delimiter=",", fmt="%.17g")
    scipy.io.mmwrite("A.mtx", A, precision=17)
    scipy.io.mmwrite("b.mtx", B[:, None], precision=17)
    code, _, err = run(f"solve lasso A.{suffix} b.{suffix} --lam 0.3 --out x.csv", capsys)
    assert (code, err) == (0, "")
    np.testing.assert_array_equal(np.loadtxt("x.csv"), pl.solve(pl.lasso(A, B, 0.3)).x)


def test_sparse_and_named_arrays(folder, capsys):
    sparse = scipy.sparse.random(30, 20, density=0.2, rng=np.random.default_rng(1))
    scipy.io.mmwrite("S.mtx", sparse, precision=17)
    target = sparse @ np.ones(20)
    np.savez("data.npz", b=target, other=B)
    code, _, err = run("solve lasso S.mtx data.npz:b --lam 0.1 --out x.npy", capsys)
    assert (code, err) == (0, "")
    np.testing.assert_array_equal(np.load("x.npy"), pl.solve(pl.lasso(sparse, target, 0.1)).x)


def test_a_batch(folder, capsys):
    np.save("b.npy", np.stack([B, 2 * B, -B]))
    code, out, _ = run("solve lasso A.npy b.npy --lam 0.3 --json", capsys)
    record = json.loads(out)
    assert code == 0
    assert len(record["gap"]) == len(record["x"]) == 3
    np.testing.assert_allclose(record["x"][0], -np.array(record["x"][2]), atol=1e-12)
    code, out, _ = run("solve lasso A.npy b.npy --lam 0.3 --out x.csv", capsys)
    assert np.loadtxt("x.csv", delimiter=",").shape == (3, 8)
    assert "3 SOLVED" in out
    assert "objective (mean)" in out


def test_table_and_quiet(folder, capsys):
    code, out, err = run("solve lasso A.npy b.npy --lam 0.3", capsys)
    assert (code, err) == (0, "")
    words = ["status", "objective", "gap", "iterations", "gradients", "seconds", "non-zeros"]
    assert [line.split()[0] for line in out.splitlines()] == words
    assert run("solve lasso A.npy b.npy --lam 0.3 --quiet", capsys) == (0, "", "")
    assert run("solve lasso A.npy b.npy --lam 0.3 --quiet --out x.npy", capsys) == (0, "", "")
    _, out, _ = run("solve lasso A.npy b.npy --lam 0.3 --out x.npy", capsys)
    assert out.splitlines()[-1] == "wrote x.npy"


def test_options_reach_the_solver(folder, capsys):
    best = pl.solve(pl.lasso(A, B, 0.3), tol=1e-12, max_iter=10_000)
    np.save("x0.npy", best.x)
    _, out, _ = run("solve lasso A.npy b.npy --lam 0.3 --x0 x0.npy --json", capsys)
    assert json.loads(out)["iterations"] == [0]
    _, out, _ = run("solve lasso A.npy b.npy --lam 0.3 --engine torch --json", capsys)
    assert json.loads(out)["engine"] == "torch"
    _, out, _ = run("solve lasso A.npy b.npy --lam 0.3 --optimizer ista --json", capsys)
    slow = pl.solve(pl.lasso(A, B, 0.3), "ista")
    assert json.loads(out)["iterations"] == slow.iterations.tolist()
    run("solve lasso A.npy b.npy --lam 0.3 --dtype float32 --tol 1e-4 --out x.npy", capsys)
    assert np.load("x.npy").dtype == np.float32


def test_exit_1_still_writes_x_and_gives_advice(folder, capsys):
    lasso = "solve lasso A.npy b.npy --lam 0.3"
    code, out, err = run(f"{lasso} --max-iter 2 --engine torch --out x.npy", capsys)
    assert code == 1
    assert "MAX_ITER" in out
    assert err.startswith("warning: MAX_ITER. The tolerance was not reached: raise max_iter")
    assert err.count("\n") == 1
    expected = pl.solve(pl.lasso(A, B, 0.3), max_iter=2, engine="torch")
    np.testing.assert_array_equal(np.load("x.npy"), expected.x)
    code, out, _ = run(f"{lasso} --time-limit 0 --json", capsys)
    assert code == 1
    assert json.loads(out)["status"] == ["TIME_LIMIT"]


def nan(array):
    array = array.astype(float)
    array.flat[3] = np.nan
    return array


def inf(array):
    return np.where(np.isnan(nan(array)), np.inf, array)


ARRAYS = {
    "nan.npy": nan(A),
    "inf.npy": inf(B),
    "short.npy": B[:-1],
    "three.npy": np.zeros((2, 2, 2, 2)),
    "flat.npy": A.ravel(),
    "rowless.npy": A[:0],
    "columnless.npy": A[:, :0],
    "complex.npy": A + 1j,
    "strings.npy": np.array(["a", "b"]),
    "object.npy": np.array([{}, None], dtype=object),
    "transposed.npy": np.stack([B, B]).T,
    "signs.npy": 2 * LABELS - 1,
    "x0.npy": np.zeros(5),
    "negative.npy": -WEIGHTS,
    "gappy.npy": 2 * GROUPS,
}
TEXTS = {"empty.npy": "", "empty.csv": "", "words.csv": "1,2\n3,four\n", "ragged.csv": "1,2\n3\n"}
LASSO = "solve lasso A.npy b.npy --lam 0.1"
BAD_INPUT = {
    "solve lasso no.npy b.npy --lam 0.1": "no.npy does not exist",
    "solve lasso empty.npy b.npy --lam 0.1": "empty.npy is empty",
    "solve lasso A.npy empty.csv --lam 0.1": "empty.csv is empty",
    "solve lasso . b.npy --lam 0.1": "extension",
    "solve lasso A.npy short.npy --lam 0.1": "expected (12,) to match A",
    "solve lasso A.npy transposed.npy --lam 0.1": "is it transposed?",
    "solve lasso three.npy b.npy --lam 0.1": "expected (m, n)",
    "solve lasso flat.npy b.npy --lam 0.1": "expected (m, n)",
    "solve lasso rowless.npy b.npy --lam 0.1": "at least one row",
    "solve lasso columnless.npy b.npy --lam 0.1": "one column",
    "solve lasso nan.npy b.npy --lam 0.1": "NaN or infinite",
    "solve lasso A.npy inf.npy --lam 0.1": "NaN or infinite",
    "solve lasso complex.npy b.npy --lam 0.1": "expected real numbers",
    "solve lasso strings.npy b.npy --lam 0.1": "expected real numbers",
    "solve lasso object.npy b.npy --lam 0.1": "never unpickled",
    "solve lasso words.csv b.npy --lam 0.1": "'four' in row 2, column 2",
    "solve lasso ragged.csv b.npy --lam 0.1": "1 columns in row 2",
    "solve logistic A.npy signs.npy --lam 0.1": "expected only 0 and 1",
    "solve poisson A.npy signs.npy --lam 0.1": "expected counts",
    "solve huber A.npy b.npy --lam 0.1": "delta",
    "solve softmax A.npy b.npy --lam 0.1": "class numbers",
    "solve softmax A.npy classes.npy --lam 0.1 --classes 2": "labels up to 2",
    "solve lasso A.npy b.npy --lam -1": "expected a number > 0",
    "solve lasso A.npy b.npy --lam 0": "expected a number > 0",
    "solve lasso A.npy b.npy --lam nan": "expected a number > 0",
    "solve lasso A.npy b.npy --lam inf": "expected a number > 0",
    "solve lasso A.npy b.npy --lam x": "--lam",
    "solve elastic-net A.npy b.npy --lam 0.1 --lam2 -1": "lam2 is -1.0",
    "solve simplex-ls A.npy b.npy --radius 0": "radius is 0.0",
    "solve lasso A.npy b.npy": "needs --lam",
    "solve elastic-net A.npy b.npy --lam 0.1": "needs --lam2",
    "solve group-lasso A.npy b.npy --lam 0.1": "needs --groups",
    "solve group-lasso A.npy b.npy --lam 0.1 --groups gappy.npy": "numbered 0, 1",
    "solve nnls A.npy b.npy --lam 0.1": "leave it out",
    "solve lasso A.npy b.npy --lam 0.1 --radius 1": "it takes --lam, --weights",
    "solve ridge A.npy b.npy": "unknown kind of problem 'ridge'",
    f"{LASSO} --weights negative.npy": "expected weights >= 0",
    f"{LASSO} --optimizer nothing": "unknown optimizer 'nothing'",
    f"{LASSO} --optimizer nesterov": "smooth f alone",
    f"{LASSO} --engine steam": "unknown engine 'steam'; known are: auto, ",
    f"{LASSO} --x0 x0.npy": "x0 has shape (5,)",
    f"{LASSO} --tol -1": "tol is -1.0",
    f"{LASSO} --tol nan": "tol is nan",
    f"{LASSO} --max-iter -1": "max_iter is -1",
    f"{LASSO} --max-iter 1.5": "--max-iter",
    f"{LASSO} --time-limit nan": "time_limit is nan",
    f"{LASSO} --dtype float16": "unknown dtype 'float16'",
    f"{LASSO} --device nowhere": "device 'nowhere'",
    f"{LASSO} --out x.txt": "expected .npy or .csv",
    f"{LASSO} --out A.npy/x.npy": "cannot be written to",
    f"{LASSO} --out folder.npy": "is a folder",
    "solve lasso A.npy": "Missing argument 'b'. See proxlearn solve --help",
    "solv": "No such command 'solv'. Did you mean 'solve'? See proxlearn --help",
    f"{LASSO} --nothing": "--nothing. See proxlearn solve --help",
    "report nowhere": "nowhere is not a folder",
    "nothing": "nothing",
    "demo --count 0": "--count",
    "demo --count 1 --out A.npy": "cannot be written to",
    "compare nothing --report out": "unknown family 'nothing'",
    "compare gaussian-lasso --optimizers fista,x --count 1 --report out": "unknown optimizer 'x'",
    "compare gaussian-lasso --optimizers , --count 1": "at least one",
    "compare gaussian-lasso --set rows=3 --report out": "no parameter 'rows'",
    "audit ista --set rows=3": "no parameter 'rows'",
    "audit ista --set m": "NAME=VALUE",
}


@pytest.mark.parametrize("command", BAD_INPUT)
def test_bad_input_is_one_line_and_exit_2(folder, capsys, command):
    for name, array in ARRAYS.items():
        np.save(name, array)
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    (folder / "folder.npy").mkdir()
    before = sorted(os.listdir(folder))
    code, out, err = run(command, capsys)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert BAD_INPUT[command] in err
    assert sorted(os.listdir(folder)) == before


def test_help_and_version(capsys):
    assert run("--version", capsys) == (0, f"proxlearn {pl.__version__}\n", "")
    for command in ["", *(name for name in COMMANDS)]:
        for option in ("", "--help")[bool(command) :]:
            code, out, err = run(f"{command} {option}", capsys)
            assert (code, err) == (0, "")
            assert "Usage" in out


def test_help_is_filled_to_the_width_of_the_window(capsys, monkeypatch):
    """The ends of the lines in a docstring are not ends of lines in the help."""
    monkeypatch.setenv("COLUMNS", "80")
    for command in COMMANDS:
        _, out, _ = run(f"{command} --help", capsys)
        lines = [line.strip() for line in out.splitlines() if line.startswith(" ")]
        for line, after in itertools.pairwise(lines):
            first = after.partition(" ")[0]
            assert not line or not after or len(line) + 1 + len(first) > 78, (command, line)


@pytest.mark.slow
def test_compare_writes_plot_and_rows(folder, capsys):
    command = "compare gaussian-logistic --optimizers fista,ista --count 2 --max-iter 5"
    code, out, err = run(f"{command} --seed 3 --report new/report", capsys)
    assert (code, err) == (0, "")
    assert "fista" in out
    assert "not within 5" in out
    assert sorted(os.listdir("new/report")) == [
        "convergence.png",
        "convergence.svg",
        "index.html",
        "rows.csv",
    ]
    page = (folder / "new" / "report" / "index.html").read_text()
    made = "proxlearn compare gaussian-logistic --optimizers fista,ista --count 2 --max-iter 5"
    assert f"<code>{made} --seed 3</code>" in page
    lines = (folder / "new" / "report" / "rows.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 * 6
    assert run(command, capsys)[0] == 0


SIZED = "--set m=20 --set n=30 --set nonzeros=3 --count 2 --max-iter 5"


@pytest.mark.slow
def test_compare_takes_the_parameters_of_the_family(folder, capsys):
    code, _, err = run(f"compare gaussian-lasso --optimizers ista {SIZED} --report r", capsys)
    assert (code, err) == (0, "")
    problem = pl.families.GaussianLasso(m=20, n=30, nonzeros=3).sample(2, 0)
    expected = pl.compare(problem, ["ista"], 5).runs["ista"].objective
    lines = (folder / "r" / "rows.csv").read_text().splitlines()[1:]
    shown = np.array([float(line.split(",")[3]) for line in lines]).reshape(2, 6)
    np.testing.assert_allclose(shown.T, expected, rtol=1e-12)
    page = (folder / "r" / "index.html").read_text()
    assert "--set m=20 --set n=30 --set nonzeros=3 --count 2" in page
    assert "2 problems of gaussian-lasso with m=20, n=30, nonzeros=3" in page


def test_audit_takes_the_parameters_of_the_family(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = run(f"audit ista {SIZED}", capsys)
    assert (code, err) == (0, "")
    assert "2 problems of gaussian-lasso with m=20, n=30, nonzeros=3" in out
    found = audit.sample("gaussian-lasso", 2, 0, ["m=20", "n=30", "nonzeros=3"])
    assert found.problem.n == 30


def test_solve_takes_the_name_of_an_engine(folder, capsys, monkeypatch):
    seen = []
    real = jobs.solve
    monkeypatch.setattr(jobs, "solve", lambda p, **s: seen.append(s["engine"]) or real(p, **s))
    assert run(f"{LASSO} --engine torch --quiet", capsys)[0] == 0
    assert run(f"{LASSO} --quiet", capsys)[0] == 0
    assert seen == ["torch", None]  # None: PROXLEARN_ENGINE, or else auto
    _, out, _ = run("solve --help", capsys)
    assert "|".join(ENGINES) in out
    assert ENGINES is solver.ENGINES


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, **options
    )


def test_help_is_quick_because_it_imports_nothing_heavy():
    code = (
        "import sys; from proxlearn.cli import main; main(['--help']); "
        "heavy = {'torch', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_as_a_module_in_a_process_of_its_own(folder):
    done = python("-m", "proxlearn", "solve", "lasso", "A.npy", "b.npy", "--lam", "0.3", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["solved"]
    done = python("-m", "proxlearn", "solve", "lasso", "A.npy", "b.npy", "--lam", "-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: lam is -1.0; expected a number > 0, or one an instance (B,)\n"


ENDLESS = """
import signal
import sys
from proxlearn import cli
from proxlearn.cli import solve_job

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in jobs of the background

def announced(*arguments, **options):
    print("solving", flush=True)
    return solve(*arguments, **options)

solve, solve_job.solve = solve_job.solve, announced
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_exits_130_and_leaves_nothing(folder):
    before = sorted(os.listdir(folder))
    command = f"{LASSO} --tol 0 --max-iter 100000000 --out x.npy"
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "solving\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert sorted(os.listdir(folder)) == before


TRAIN = ["train", "gaussian-lasso", "--set", "m=10", "--set", "n=20", "--set", "nonzeros=2"]
SHORT = ["--rule", "compact", "--steps", "2", "--batch", "4", "--horizon", "20"]


@pytest.mark.slow
def test_train_writes_an_optimizer_that_solve_takes_by_its_file(tmp_path, capsys):
    out = tmp_path / "mine.safetensors"
    assert main([*TRAIN, *SHORT, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "fista-restart" in text
    assert f"wrote {out}" in text
    assert pl.load(out).card["family"]["m"] == 10
    problem = pl.families.GaussianLasso(m=10, n=20, nonzeros=2).sample(2, 0)
    assert pl.solve(problem, str(out), tol=0, max_iter=3).x.isfinite().all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.jsonl", "mine.safetensors"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*TRAIN, *SHORT, "--out", "mine.bin"], "ending in .safetensors"),
        ([*TRAIN, "--set", "rows=3", "--out", "m.safetensors"], "no parameter 'rows'"),
        ([*TRAIN, "--set", "m=ten", "--out", "m.safetensors"], "expected a number"),
        ([*TRAIN, "--set", "m", "--out", "m.safetensors"], "NAME=VALUE"),
        ([*TRAIN, "--rule", "magic", "--out", "m.safetensors"], "unknown rule 'magic'"),
        (["train", "no-such-family", "--out", "m.safetensors"], "unknown family"),
    ],
)
def test_bad_training_options_are_one_line(arguments, words, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_models_lists_what_is_shipped(capsys, monkeypatch):
    """A line for each, in a window of 80 columns; more of the same with --verbose."""
    monkeypatch.setenv("COLUMNS", "80")
    code, text, err = run("models", capsys)
    assert (code, err) == (0, "")
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[1 : 1 + len(pl.zoo.names())]] == pl.zoo.names()
    assert len(lines) < len(pl.zoo.names()) + 8
    assert "logistic-pa       pa            5582  gaussian-logistic" in text
    code, more, err = run("models --verbose", capsys)
    assert (code, err) == (0, "")
    for name in pl.zoo.names():
        card = pl.load(name).card
        (about,) = (part for part in more.split("\n\n") if part.splitlines()[0] == name)
        for test, counts in card["results"].items():
            said = [line for line in about.splitlines() if test.removeprefix("few ") in line]
            reached = ["-" if k is None else str(k) for k in counts[name]]
            assert any(" / ".join(reached) in line for line in said)
    assert max(map(len, (text + more).splitlines())) <= 80


@pytest.mark.parametrize("columns", ["0", "1", "12", "40"])
def test_numbers_are_not_cut_off_in_a_narrow_window(folder, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = run("solve lasso A.npy b.npy --lam 0.3", capsys)
    assert code == 0
    found = pl.solve(pl.lasso(A, B, 0.3))
    assert out.split()[:2] == ["status", "SOLVED"]
    assert f"{found.objective[0]:.10g}" in out
    assert "…" not in out
