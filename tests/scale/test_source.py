"""Problems in files: every layout is read, and what is wrong is said."""

import json
import pickle
import re
import shutil
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse

import proxlearn as pl
from many_problems import lasso_arrays
from proxlearn.cli import main
from proxlearn.errors import InputError
from proxlearn.scale import zarr_store
from proxlearn.scale.chunked_files import Batches
from proxlearn.scale.source import read_source

zarr = pytest.importorskip("zarr")

shared = {"A": np.arange(12.0).reshape(3, 4) % 5, "b": np.arange(15.0).reshape(5, 3) % 4}
targets = np.stack([shared["b"], shared["b"][::-1]], axis=2)
LAYOUTS = {
    "shared A": {"kind": "lasso", **shared, "lam": np.linspace(0.1, 1, 5)},
    "one instance": {"kind": "lasso", "A": shared["A"], "b": shared["b"][1], "lam": 0.1},
    "own A": {"kind": "lasso", **lasso_arrays(5, 0), "lam": 0.1},
    "A of type F": {"kind": "lasso", **lasso_arrays(5, 0), "lam": np.array([0.1])},
    "integers": {"kind": "nnls", "A": shared["A"].astype(np.int64), "b": shared["b"].astype("i2")},
    "logistic": {"kind": "logistic", "A": shared["A"], "b": shared["b"] > 1, "lam": 0.05},
    "weights": {"kind": "elastic-net", **shared, "lam": 0.1, "lam2": 1.0, "weights": np.ones(4)},
    "groups": {"kind": "group-lasso", **shared, "lam": 0.1, "groups": np.array([0, 0, 1, 1])},
    "softmax": {"kind": "softmax", **shared, "lam": 0.1, "classes": 4},
    "sum at most": {"kind": "simplex-ls", "A": shared["A"], "b": shared["b"] / 99, "at_most": 1},
    "targets": {"kind": "multitask-lasso", "A": shared["A"], "b": targets, "lam": 0.1},
    "sparse A": {"kind": "lasso", **shared, "A": csr_matrix(shared["A"]), "lam": 0.1},
}
LAYOUTS["A of type F"]["A"] = np.asfortranarray(LAYOUTS["A of type F"]["A"])


def in_parts(arrays):
    A = arrays["A"]
    if not issparse(A):
        return arrays
    parts = {"A_data": A.data, "A_indices": A.indices, "A_indptr": A.indptr, "A_shape": A.shape}
    return {**{name: value for name, value in arrays.items() if name != "A"}, **parts}


def save_zarr(path, chunk=2, zarr_format=3, shard=None, **arrays):
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    for name, value in arrays.items():
        if isinstance(value, str):
            group.attrs[name] = value
            continue
        array = np.asarray(value)
        chunks = (min(chunk, len(array)), *array.shape[1:]) if array.ndim else ()
        shards = {"shards": (shard, *array.shape[1:])} if shard and len(array.shape) > 1 else {}
        whole = group.create_array(
            name,
            shape=array.shape,
            dtype=array.dtype,
            chunks=chunks,
            config={"write_empty_chunks": True},
            **shards,
        )
        whole[...] = array
    return path


def save_npy(folder, arrays):
    (folder / "p").mkdir()
    for name, value in arrays.items():
        if name != "kind":
            np.save(folder / "p" / f"{name}.npy", value)


SAVES = {
    "npy": save_npy,
    "npz": lambda folder, arrays: np.savez(folder / "p.npz", **arrays),
    "npz, compressed": lambda folder, arrays: np.savez_compressed(folder / "p.npz", **arrays),
    "zarr 2": lambda folder, arrays: save_zarr(folder / "p.zarr", zarr_format=2, **arrays),
    "zarr 3": lambda folder, arrays: save_zarr(folder / "p.zarr", chunk=3, **arrays),
    "zarr 3, shards": lambda folder, arrays: save_zarr(folder / "p.zarr", 1, shard=4, **arrays),
}


CASES = [
    (layout, save)
    for layout in LAYOUTS
    for save in SAVES
    if save in ("npz", "zarr 3", "npy")
    or layout in ("own A", "A of type F", "shared A", "sparse A")
]


def run(client, problems, out, **options):
    return Batches.of(str(problems), str(out), **options).run(client)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "save"), CASES)
def test_every_layout_gives_the_answers_of_solve(layout, save, tmp_path, client):
    arrays = dict(LAYOUTS[layout])
    SAVES[save](tmp_path, in_parts(arrays))
    kind = arrays.pop("kind")
    (path,) = tmp_path.iterdir()
    options = {"kind": kind, "chunk": 2, "tol": 1e-8, "dtype": "float64", "max_iter": 20000}
    outcome = run(client, path, tmp_path / "out", **options)
    assert outcome.code == 0, outcome.failed
    problem = getattr(pl, kind.replace("-", "_"))(**arrays)
    expected = pl.solve(problem, tol=1e-8, max_iter=20000)
    found = zarr.open_group(tmp_path / "out", mode="r")
    assert found["x"].shape == (problem.batch, problem.n)
    np.testing.assert_allclose(found["objective"][:], expected.objective, rtol=1e-6, atol=1e-10)
    assert not found["status"][:].any()


def test_kind_and_lam_may_come_from_the_command(tmp_path, in_threads):
    np.savez(tmp_path / "p.npz", **lasso_arrays(5, 0))
    command = ["solve-batch", str(tmp_path / "p.npz"), str(tmp_path / "out"), "--tol", "1e-4"]
    assert main(command) == 2
    assert main([*command, "--kind", "lasso", "--lam", "0.1"]) == 0
    assert main([*command, "--kind", "lasso", "--lam", "0.2"]) == 2  # those are not the results


BAD = {
    "unknown kind": ({"kind": "ridge"}, "unknown kind of problem 'ridge'; known are: elastic-net"),
    "no kind": ({"kind": None}, "holds no 'kind'"),
    "kind is a number": ({"kind": 3}, "'kind' is array.* expected one word"),
    "no lam": ({"lam": None}, "holds A, b; 'lasso' needs lam too"),
    "too much": ({"c": np.ones(3)}, "holds c; 'lasso' takes A, b, lam, weights"),
    "b too long": ({"b": np.ones((5, 9))}, r"A has shape \(5, 8, 16\) and b \(5, 9\)"),
    "b too many": ({"b": np.ones((4, 8))}, "A has 5 and b has 4 problems"),
    "lam too many": ({"lam": np.ones(3)}, "lam has 3 problems; expected as many, or one"),
    "lam a matrix": ({"lam": np.ones((5, 2))}, r"lam has shape \(5, 2\)"),
    "none": ({"A": np.ones((0, 8, 16)), "b": np.ones((0, 8))}, "hold no problems"),
    "text": ({"b": np.full((5, 8), "1")}, "b has dtype <U1; expected real numbers"),
    "objects": ({"b": np.full((5, 8), None)}, "b has dtype object"),
    "softmax": ({"kind": "softmax"}, "'softmax' needs classes too"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_file_is_said_before_it_is_solved(case, tmp_path):
    change, message = BAD[case]
    arrays = {"kind": "lasso", **lasso_arrays(5, 0), "lam": 0.1, **change}
    kept = {name: value for name, value in arrays.items() if value is not None}
    np.savez(tmp_path / "p.npz", **kept)
    with pytest.raises(InputError, match=message):
        read_source(tmp_path / "p.npz", None, {})
    if case not in ("kind is a number", "objects"):  # which zarr does not write so
        group = save_zarr(tmp_path / "p.zarr", zarr_format=2, **kept)
        with pytest.raises(InputError, match=message):
            read_source(group, None, {})


rows = in_parts(LAYOUTS["sparse A"])
BAD_ROWS = {
    "no shape": ({"A_shape": None}, "holds A_data and no A_shape"),
    "dense too": ({"A": shared["A"]}, "holds A_data and A too"),
    "real indices": ({"A_indices": rows["A_indices"] * 1.0}, "must be whole numbers"),
    "lengths": ({"A_data": rows["A_data"][1:]}, r"shapes \(8,\), \(9,\) and \(4,\)"),
    "rows": ({"A_shape": (4, 4)}, r"expected two of the same length and \(5,\)"),
    "columns": ({"A_shape": (3, 3)}, "A is no sparse matrix in rows"),
    "order": ({"A_indptr": rows["A_indptr"][::-1].copy()}, "A is no sparse matrix in rows"),
    "b": ({"b": np.ones((5, 4))}, r"A has shape \(3, 4\) and b \(5, 4\)"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_what_is_wrong_with_a_sparse_matrix(case, tmp_path):
    change, message = BAD_ROWS[case]
    kept = {name: value for name, value in {**rows, **change}.items() if value is not None}
    np.savez(tmp_path / "p.npz", **kept)
    with pytest.raises(InputError, match=message):
        read_source(tmp_path / "p.npz", None, {}).arrays(0, 5, None)


@pytest.fixture
def group(tmp_path):
    return save_zarr(tmp_path / "p.zarr", kind="lasso", **lasso_arrays(5, 0), lam=0.1)


def test_numbers_may_be_attributes_of_a_group(group, tmp_path):
    shutil.rmtree(group / "lam")
    zarr.open_group(group).attrs.update(lam=0.1, comment="mine", lam2=True, A=3)
    for given in ({}, {"lam": 0.1}):
        assert read_source(group, None, given).numbers == {"lam": 0.1}
    with pytest.raises(InputError, match="holds lam; leave out --lam"):
        read_source(group, None, {"lam": 3.0})
    shutil.rmtree(group / "A")
    with pytest.raises(InputError, match="holds b; 'lasso' needs A too"):
        read_source(group, None, {})


def test_a_group_that_lacks_a_chunk_is_refused(group):
    next((group / "A" / "c").iterdir()).rename(group / "elsewhere")
    with pytest.raises(InputError, match=r"A lacks 1 of 3 chunks; copy or write it again"):
        read_source(group, None, {})


def test_a_damaged_chunk_costs_itself_alone(group, tmp_path, client):
    chunk = group / "A" / "c" / "1" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:40])
    outcome = run(client, group, tmp_path / "out", chunk=2, tol=1e-4)
    assert (outcome.code, outcome.status["SOLVED"]) == (2, 3)
    (line,) = outcome.failed
    assert re.search(r"p.zarr, problems 2 to 3: .*p.zarr: A cannot be read \(.+\)", line)


def test_a_changed_group_is_refused(group, tmp_path, client):
    assert run(client, group, tmp_path / "out", tol=1e-4).code == 0
    assert run(client, group, tmp_path / "out", tol=1e-4).computed == 0
    zarr.open_group(group)["b"][3, 2] = 7
    with pytest.raises(InputError, match="holds no results of this input"):
        run(client, group, tmp_path / "out", tol=1e-4)


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return exec, (f"open({self.path!r}, 'w').close()",)


@pytest.mark.parametrize("place", ["compressor", "filters"])
@pytest.mark.parametrize("codec", ["pickle", "quantize"])
def test_nothing_in_a_group_is_unpickled(codec, place, tmp_path):
    """In format 2 Python's pickle is a codec like others, and would run what a chunk says."""
    group = save_zarr(tmp_path / "p.zarr", zarr_format=2, kind="lasso", **lasso_arrays(5, 0), lam=1)
    metadata = json.loads((group / "b" / ".zarray").read_text())
    options = {"protocol": 5} if codec == "pickle" else {"digits": 2, "dtype": "f8"}
    given = {"id": codec, **options}
    metadata |= {"compressor": None, place: [given] if place == "filters" else given}
    (group / "b" / ".zarray").write_text(json.dumps(metadata))
    for chunk in ("0.0", "1.0", "2.0"):
        (group / "b" / chunk).write_bytes(pickle.dumps(Trap(str(tmp_path / "sprung"))))
    refused = "b is packed with 'quantize'" if codec == "quantize" else "p.zarr is no zarr group"
    with pytest.raises(InputError, match=refused):
        read_source(group, None, {}).arrays(0, 5, None)
    assert not (tmp_path / "sprung").exists()


def test_what_else_is_wrong_with_a_group(group, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="A is no zarr group"):
        read_source(group / "A", None, {})
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(InputError, match=r"empty.zarr is no zarr group"):
        read_source(tmp_path / "empty.zarr", None, {})
    monkeypatch.setattr(zarr_store, "LIMIT", 100)
    with pytest.raises(InputError, match=r"A has chunks of .* GiB, more than the limit"):
        read_source(group, None, {})
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(InputError, match="install the extra 'scale'"):
        read_source(group, None, {})


def test_what_is_wrong_with_a_folder(tmp_path):
    with pytest.raises(InputError, match="is a folder with nothing in it"):
        read_source(tmp_path, "lasso", {})
    np.save(tmp_path / "A.npy", np.ones((3, 4)))
    np.save(tmp_path / "b.npy", np.array([None, {}]), allow_pickle=True)
    with pytest.raises(InputError, match="b has dtype object"):
        read_source(tmp_path, "lasso", {"lam": 1.0})
    whole = (tmp_path / "A.npy").read_bytes()
    (tmp_path / "A.npy").write_bytes(whole[:-8])
    with pytest.raises(InputError, match="A is truncated"):
        read_source(tmp_path, "lasso", {"lam": 1.0})


def test_a_large_matrix_is_mapped_and_not_copied(tmp_path):
    np.save(tmp_path / "A.npy", np.ones((3, 4)))
    np.save(tmp_path / "b.npy", np.ones((5, 3)))
    source = read_source(tmp_path, "lasso", {"lam": 1.0})
    first, second = (source.arrays(0, 2, None)["A"] for _ in range(2))
    assert first is second
    base = first.matrix.values
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
