"""Hostile command lines: each is one line on stderr and exit code 2, and leaves no file behind."""

import shlex
import zipfile
from pathlib import Path

import numpy as np
import pytest

import proxlearn as pl
from proxlearn.cli import main

A = np.random.default_rng(0).standard_normal((12, 8))
B = A @ np.ones(8)
MATRIX_MARKET = "%%MatrixMarket matrix coordinate real general\n"
ARRAYS = {
    "A.npy": A,
    "b.npy": B,
    "huge.npy": 1e300 * A,
    "hugeb.npy": 1e300 * B,
    "classes.npy": np.arange(12) % 3,
    "label.npy": np.r_[1e12, np.arange(11) % 3],
    "x0.npy": np.zeros(8),
    "nan.npy": np.full(8, np.nan),
    "far.npy": np.full(8, 1e300),
    "groups.npy": np.r_[np.zeros(7), 1e18],
    "batches.npy": np.zeros((3, 12, 8)),
    "none.npy": np.zeros((0, 12, 8)),
    "scalar.npy": np.array(3.0),
    "fields.npy": np.zeros(3, dtype="i4,f8"),
}
TEXTS = {
    "empty.npz": "",
    "empty.mtx": "",
    "empty.safetensors": "",
    "noise.safetensors": "hello",
    "empty-rows.mtx": f"{MATRIX_MARKET}200000000 200000000 1\n1 1 1\n",
    "outside.mtx": f"{MATRIX_MARKET}12 8 1\n99 99 1\n",
    "negative.mtx": f"{MATRIX_MARKET}-12 8 1\n1 1 1\n",
    "nothing.mtx": f"{MATRIX_MARKET}0 0 0\n",
    "nan.mtx": f"{MATRIX_MARKET}12 8 1\n1 1 nan\n",
    "cut.mtx": MATRIX_MARKET,
    "digits.mtx": f"{MATRIX_MARKET}{'9' * 30} 2 1\n1 1 1\n",
    "nan.csv": "nan,1\n2,3\n",
    "nul.csv": "1,2\0\n3,4\n",
    "quoted.csv": '"1","2"\n',
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, array in ARRAYS.items():
        np.save(name, array)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    whole = Path("A.npy").read_bytes()
    Path("unclosed.npy").write_bytes(whole.replace(b"8)", b"8 "))
    Path("utf16.csv").write_text("1,2\n3,4\n", encoding="utf-16")
    np.savez("two.npz", A=A, b=B)
    with zipfile.ZipFile("none.npz", "w"):
        pass
    for name in ("folder", "folder.npy", "folder.safetensors"):
        Path(name).mkdir()
    np.savez("folder/p.npz", kind="lasso", A=A, b=B[None], lam=0.1)
    Path("loop.npy").symlink_to("loop.npy")
    Path("broken.npy").symlink_to("nowhere.npy")
    Path("device.npy").symlink_to("/dev/zero")
    Path("pipes").mkdir()
    Path("pipes/A.npy").symlink_to("/dev/zero")
    return tmp_path


LASSO = "solve lasso A.npy b.npy --lam 1"
TRAIN = "train gaussian-lasso --out w.safetensors --steps 1 --rule pa"
LONG = "x" * 300
HOSTILE = {
    # what version 0.1 answered with a traceback, or after a long time
    "solve lasso unclosed.npy b.npy --lam 1": "unclosed.npy is truncated or no .npy file",
    f"{LASSO} --out {LONG}.npy": "File name too long",
    "solve lasso empty-rows.mtx b.npy --lam 1": "nearly all rows or columns are empty",
    "solve lasso A.npy empty-rows.mtx --lam 1": "nearly all rows or columns are empty",
    "solve softmax A.npy label.npy --lam 1": "labels up to 1000000000000 in 12 rows",
    "solve softmax A.npy classes.npy --lam 1 --classes 1000000000": "classes is 1000000000",
    f"{TRAIN} --set m=-1": "m of GaussianLasso is -1; expected a whole number from 1",
    f"{TRAIN} --set nonzeros=501": "nonzeros of GaussianLasso is 501; expected",
    f"{LASSO} --device cuda:99": "device 'cuda:99' is not available",
    f"{LASSO} --device meta": "unknown device 'meta'",
    f"{TRAIN} --device meta": "unknown device 'meta'",
    f"{TRAIN} --device cuda:99": "device 'cuda:99' is not available",
    "solve lasso A.npy b.npy --lam 1e308 --dtype float32": "lam holds 1e+308, which is infinite",
    # precision
    "solve lasso A.npy b.npy --lam 1e-320 --dtype float32": "which is 0 in A's precision",
    "solve lasso huge.npy b.npy --lam 1 --dtype float32": "A holds numbers that are infinite",
    "solve lasso A.npy hugeb.npy --lam 1 --dtype float32": "b holds",
    f"{LASSO} --dtype float32 --x0 far.npy": "x0 holds numbers that are infinite",
    f"{LASSO} --x0 nan.npy": "x0 holds 8 values that are NaN",
    # files
    "solve lasso folder.npy b.npy --lam 1": "error: folder.npy is a folder",
    "solve lasso folder b.npy --lam 1": "has the extension ''",
    "solve lasso '' b.npy --lam 1": "has the extension ''",
    f"solve lasso {LONG}.npy b.npy --lam 1": "File name too long",
    "solve lasso empty.npz b.npy --lam 1": "error: empty.npz is empty",
    "solve lasso empty.mtx b.npy --lam 1": "empty.mtx is empty",
    "solve lasso none.npz b.npy --lam 1": "none.npz holds 0 arrays: nothing",
    "solve lasso two.npz b.npy --lam 1": "two.npz holds 2 arrays: A, b; name one",
    f"solve lasso A.npy b.npy --lam 1 --max-iter {10**20}": "at most 9223372036854775807",
    "solve-batch two.npz out --workers 100000": "--workers is 100000; expected at most",
    "solve-batch '' out": "the name of the input is empty; give a name",
    "solve-batch two.npz ''": "the name of the output is empty; give a name",
    "solve lasso two.npz:C b.npy --lam 1": "no array 'C' but: A, b",
    "solve lasso loop.npy b.npy --lam 1": "cannot be read",
    "solve lasso broken.npy b.npy --lam 1": "does not exist",
    "solve lasso device.npy b.npy --lam 1": "a device or a pipe",
    "solve lasso scalar.npy b.npy --lam 1": "A has shape ()",
    "solve lasso fields.npy b.npy --lam 1": "expected real numbers",
    "solve lasso none.npy b.npy --lam 1": "an empty batch",
    "solve lasso A.npy batches.npy --lam 1": "b has shape (3, 12, 8)",
    "solve lasso outside.mtx b.npy --lam 1": "not a MatrixMarket file",
    "solve lasso negative.mtx b.npy --lam 1": "negative.mtx",
    "solve lasso nothing.mtx b.npy --lam 1": "at least one row",
    "solve lasso nan.mtx b.npy --lam 1": "A holds 1 values that are NaN",
    "solve lasso cut.mtx b.npy --lam 1": "not a MatrixMarket file",
    "solve lasso digits.mtx b.npy --lam 1": "digits.mtx",
    "solve lasso nan.csv b.npy --lam 1": "A holds 1 values that are NaN",
    "solve lasso nul.csv b.npy --lam 1": "nul.csv",
    "solve lasso utf16.csv b.npy --lam 1": "not a text file",
    "solve lasso quoted.csv b.npy --lam 1": "header and no numbers",
    # numbers and options
    "solve lasso A.npy b.npy --lam 1e400": "lam is inf",
    f"{LASSO} --lam -1": "lam is -1.0",
    f"{LASSO} --tol inf": "tol is inf",
    f"{LASSO} --time-limit -1": "time_limit is -1.0",
    f"{LASSO} extra": "extra",
    "solve softmax A.npy classes.npy --lam 1 --classes -3": "classes is -3",
    "solve group-lasso A.npy b.npy --lam 1 --groups groups.npy": "numbered 0, 1",
    "solve simplex-ls A.npy b.npy --radius nan": "radius is nan",
    f"{LASSO} --optimizer folder.safetensors": "no checkpoint",
    f"{LASSO} --optimizer empty.safetensors": "not a readable safetensors file",
    f"{LASSO} --optimizer noise.safetensors": "not a readable safetensors file",
    f"{LASSO} --optimizer ''": "unknown optimizer ''",
    f"{LASSO} --optimizer {LONG}": "unknown optimizer",
    "solve nnls A.npy b.npy --optimizer adam": "adam",
    # outputs
    f"{LASSO} --out folder.npy": "is a folder",
    f"{LASSO} --out ''": "has the extension ''",
    f"{LASSO} --out A.npy": "output A.npy is also the input A.npy",
    f"{LASSO} --out ../{{here}}/b.npy": "is also the input b.npy",
    f"{LASSO} --x0 x0.npy --out x0.npy": "is also the input x0.npy",
    f"{LASSO} --out /dev/null/x.npy": "cannot be written to",
    f"{LASSO} --out {LONG}/x.npy": "File name too long",
    "demo --out A.npy": "cannot be written to",
    f"demo --out {LONG}": "File name too long",
    "compare gaussian-lasso --report A.npy": "cannot be written to",
    "reproduce lasso --out A.npy": "cannot be written to",
    "train gaussian-lasso --out folder.safetensors": "is a folder",
    "train gaussian-lasso --out A.npy/w.safetensors": "cannot be written to",
    f"train gaussian-lasso --out {LONG}.safetensors": "File name too long",
    "tune adam gaussian-lasso --out A.npy": "expected .json",
    # families, rules, seeds
    f"{TRAIN} --set m=1.5": "m of GaussianLasso is 1.5; expected a whole number",
    f"{TRAIN} --set m=nan": "m of GaussianLasso is nan; expected a whole number",
    f"{TRAIN} --set m=": "expected a number",
    f"{TRAIN} --set lam=-1": "lam of GaussianLasso is -1",
    f"{TRAIN} --set m=2000000000 --set n=2000000000": "not enough memory",
    "train general --set m=1 --out w.safetensors": "General has no parameter 'm'",
    "train gaussian-group-lasso --set size=7 --out w.safetensors": "multiple of size",
    f"{TRAIN} --rule-set hidden=-1": "setting hidden is -1",
    f"{TRAIN} --rule-set nothing=1": "do not fit",
    f"{TRAIN} --rule-set start_seed=-1": "seed is -1",
    f"{TRAIN} --rule compact --rule-set largest_log_p=nan": "largest_log_p is nan",
    f"{TRAIN} --batch -1": "batch is -1",
    f"{TRAIN} --horizon 7 --unroll 3": "not a multiple",
    f"{TRAIN} --lr nan": "lr is nan",
    f"{TRAIN} --seed {10**30}": "seed is 1000",
    "train gaussian-logistic --rule step-lista --out w.safetensors": "made for LASSO",
    "train gaussian-nnls --rule l2o-dm --out w.safetensors": "l2o-dm",
    f"demo --seed {10**30}": "seed is 1000",
    f"compare gaussian-lasso --seed {10**30}": "seed is 1000",
    f"audit ista --seed {10**30}": "seed is 1000",
    f"reproduce lasso --seed {10**30}": "seed is 1000",
    "tune adam gaussian-lasso --set alpha=nan": "alpha of Adam is nan",
    "tune adam gaussian-lasso --set beta1=1": "beta1 of Adam is 1",
    "tune adam gaussian-lasso --set what=1": "unknown parameter 'what'",
    f"tune adam gaussian-lasso --max-iter {10**20}": "iterations is 1000",
    "audit ''": "at least one",
    "reproduce lasso --optimizers ''": "at least one",
    # solve-batch and report
    "solve-batch folder folder": "output folder is also the input folder",
    "solve-batch folder A.npy": "output A.npy is a file",
    "solve-batch device.npy out": "device.npy is a device or a pipe",
    "solve-batch pipes out --kind lasso --lam 1": "pipes/A.npy is a device or a pipe",
    "solve-batch folder out --workers 0": "workers",
    "solve-batch folder out --chunk 0": "chunk",
    "solve-batch folder out --workers 2 --scheduler tcp://127.0.0.1:1": "expected one of them",
    "solve-batch folder out --lam 1 --kind lasso": "expected A.npy and b.npy in it",
    "solve-batch A.npy out --kind lasso --lam 1": "no .npz file",
    "solve-batch folder/p.npz out --lam 3": "holds lam; leave out --lam",
    "solve-batch folder/p.npz out --kind nnls": "holds the kind 'lasso', not 'nnls'",
    "solve-batch folder/p.npz out --delta 1": "--delta was given; 'lasso' takes A, b, lam",
    "solve-batch folder out --tol -1": "tol is -1",
    "report A.npy": "is not a folder",
    "report folder": "no .parquet files",
    "models extra": "extra",
}


def listing(folder):
    """All files and folders, and what the files hold."""
    paths = sorted(p for p in folder.rglob("*") if not p.is_symlink())
    return [(str(p), p.read_bytes() if p.is_file() else None) for p in paths]


@pytest.mark.parametrize("command", HOSTILE, ids=lambda command: command[:80])
def test_a_hostile_command_is_one_line_and_exit_2(folder, capsys, command):
    before = listing(folder)
    code = main(shlex.split(command.format(here=folder.name)))
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert len(err) < 600
    assert HOSTILE[command] in err
    assert listing(folder) == before


def test_force_replaces_an_input(folder, capsys):
    arguments = shlex.split(f"{LASSO} --x0 x0.npy --out x0.npy --quiet")
    assert main(arguments) == 2
    np.testing.assert_array_equal(np.load("x0.npy"), ARRAYS["x0.npy"])
    assert main([*arguments, "--force"]) == 0
    np.testing.assert_array_equal(np.load("x0.npy"), pl.solve(pl.lasso(A, B, 1)).x)


GROWN = {"A_data": np.ones(1), "A_indices": [0], "A_indptr": np.r_[0, np.ones(12, int)]}
BATCHES = {
    "kinds": ({"kind": ["lasso", "nnls"]}, "expected one word"),
    "laso": ({"kind": "laso"}, "unknown kind of problem 'laso'"),
    "nan": ({"A": np.nan * A}, "NaN"),
    "lam": ({"lam": np.nan}, "lam is nan"),
    "fraction": ({"kind": "softmax", "b": np.zeros((1, 12)), "classes": 2.5}, "classes is 2.5"),
    "no number": ({"kind": "softmax", "b": np.zeros((1, 12)), "classes": np.nan}, "classes is nan"),
    "many": ({"kind": "softmax", "b": np.zeros((1, 12)), "classes": 10**9}, "take"),
    "wide": ({"A": None, **GROWN, "A_shape": [12, 2**62]}, "rows or columns are empty"),
    "below zero": ({"A": None, **GROWN, "A_shape": [12, -8]}, "error: "),
    "index": ({"A": None, **GROWN, "A_indices": [99], "A_shape": [12, 8]}, "error: "),
}


@pytest.mark.parametrize("case", BATCHES)
def test_a_hostile_file_for_solve_batch(tmp_path, capsys, in_threads, case):
    change, words = BATCHES[case]
    arrays = {"kind": "lasso", "A": A, "b": B[None], "lam": 0.1, **change}
    np.savez(tmp_path / "p.npz", **{k: v for k, v in arrays.items() if v is not None})
    assert main(["solve-batch", str(tmp_path / "p.npz"), str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", ["[]", "3", "{", "[" * 10**5, '{"attributes": 3}', "{}"])
def test_a_tampered_record_of_a_batch(tmp_path, capsys, content):
    np.savez(tmp_path / "p.npz", kind="lasso", A=A, b=B[None], lam=0.1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "zarr.json").write_text(content)
    assert main(["solve-batch", str(tmp_path / "p.npz"), str(tmp_path / "out")]) == 2
    assert "is not a result of solve-batch; choose another name" in capsys.readouterr().err
