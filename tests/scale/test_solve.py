"""Arrays of problems: the same bits for every kind of array, chunk, worker and thread."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.scale.chunk import KINDS, SharedMatrix, _in_new_thread, one_blas_thread
from proxlearn.scale.sizes import Size

pytestmark = pytest.mark.filterwarnings("ignore:chunks of .* problems take about")
FIELDS = ("x", "objective", "gap", "status", "iterations")
rng = np.random.default_rng(3)
M, N, B = 12, 30, 41
A = rng.standard_normal((M, N))
MANY = rng.standard_normal((B, M, N))
b = rng.standard_normal((B, M))
LAM = rng.uniform(1.0, 3.0, B)
CASES = {
    "lasso": (A, b, {"lam": 2.0}),
    "lam of their own": (A, b, {"lam": LAM}),
    "matrices of their own": (MANY, b, {"lam": 2.0}),
    "one b": (MANY, b[0], {"lam": LAM}),
    "float32": (A.astype("f4"), b, {"lam": 2.0}),
    "sparse": (scipy.sparse.csr_array(np.where(np.abs(A) > 0.8, A, 0)), b, {"lam": 1.0}),
    "weights": (A, b, {"lam": LAM, "weights": rng.uniform(0.5, 1, (B, N))}),
    "elastic net": (A, b, {"lam": 1.0, "lam2": LAM, "penalty": "elastic-net"}),
    "non-negative": (A.T, rng.standard_normal((B, N)), {"penalty": "non-negative"}),
    "logistic": (A, b > 0, {"lam": 0.05, "loss": "logistic"}),
    "huber": (A, b, {"lam": 0.5, "delta": 1.0, "loss": "huber"}),
    "poisson": (A / 4, np.floor(np.exp(b)), {"lam": 0.1, "loss": "poisson"}),
    "groups": (A, b[:7], {"lam": 2.0, "groups": np.arange(N) // 3, "penalty": "group-l1"}),
    "softmax": (A, b[:5] > 0, {"lam": 0.05, "classes": 2, "loss": "softmax"}),
    "simplex": (A, b[:5], {"penalty": "simplex"}),
    "sum at most": (A, b[:5] / 50, {"penalty": "simplex", "radius": LAM[:5], "at_most": True}),
    "sparse groups": (
        A, b[:7], {"lam": 2.0, "groups": np.arange(N) // 3, "penalty": "sparse-group-l1"}
    ),
    "targets": (A, b[:40].reshape(10, 4, M).swapaxes(1, 2), {"lam": 2.0, "penalty": "row-l1"}),
    "own matrices, one b": (MANY[:9], b[:2].T, {"lam": 2.0, "penalty": "row-l1"}),
}  # fmt: skip


def same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        assert getattr(one, name).dtype == getattr(other, name).dtype, name


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_chunks_workers_and_kinds_of_arrays_do_not_change_a_bit(case, client):
    matrix, rows, options = CASES[case]
    whole = pl.scale.solve(matrix, rows, **options, chunk=1000, workers=1)
    assert whole.solved
    for chunk in (1, 7, 20):
        same(whole, pl.scale.solve(matrix, rows, **options, chunk=chunk, workers=2))
    same(whole, pl.scale.solve(matrix, rows, **options, chunk=20, client=client))
    lazy_rows = da.from_array(rows, chunks=9)
    lazy_matrix = matrix if scipy.sparse.issparse(matrix) else da.from_array(matrix, chunks=10)
    lazy = pl.scale.solve(lazy_matrix, lazy_rows, **options)
    assert isinstance(lazy.x, da.Array)
    same(whole, dask.compute(lazy, scheduler="threads")[0])
    lazy = pl.scale.solve(matrix, lazy_rows, **options, client=client)
    same(whole, dask.compute(lazy, scheduler=client)[0])


@pytest.mark.parametrize("case", CASES)
def test_the_answers_are_those_of_solve(case):
    matrix, rows, options = CASES[case]
    options = dict(options)
    kind = KINDS[options.pop("loss", "squares"), options.pop("penalty", "l1")]
    expected = pl.solve(getattr(pl, kind.replace("-", "_"))(matrix, rows, **options))
    found = pl.scale.solve(matrix, rows, **CASES[case][2], chunk=10)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=2e-6)
    assert found.x.dtype == expected.x.dtype
    assert found.counts() == {"SOLVED": len(found.x)}


def test_a_dask_array_is_solved_when_asked_for_and_has_the_chunks_of_b():
    calls = []

    def load(block):
        calls.append(len(block))
        return block

    lazy = pl.scale.solve(A, da.from_array(b, chunks=(10, M)).map_blocks(load, dtype=float), 2.0)
    assert sum(calls) == 0
    assert lazy.x.chunks == ((10, 10, 10, 10, 1), (N,))
    with dask.config.set(scheduler="threads"):
        assert lazy.solved
    assert sum(calls) == B


def test_threads_of_blas_do_not_change_a_bit():
    from threadpoolctl import threadpool_info, threadpool_limits

    wide, rows = rng.standard_normal((150, 400)), rng.standard_normal((40, 150))

    def threads():
        return {
            lib["filepath"]: lib["num_threads"]
            for lib in threadpool_info()
            # With OpenMP each thread has a number of its own, which another one cannot read.
            if lib["user_api"] == "blas" and lib.get("threading_layer") != "openmp"
        }

    with threadpool_limits(2, user_api="blas"):  # some are built for one thread alone
        parallel = [path for path, count in threads().items() if count == 2]

    def blas():
        return {threads()[path] for path in parallel}

    def blas_in_a_solve():
        with one_blas_thread():
            return blas()

    with threadpool_limits(2, user_api="blas"):
        many = pl.scale.solve(wide, rows, 30.0, chunk=20, workers=2)
        assert blas() == {2}
    with ThreadPoolExecutor(2) as pool:
        _in_new_thread(lambda: threadpool_limits(2, user_api="blas"))
        assert blas() == {2}
        assert pool.submit(blas_in_a_solve).result() == {1}
        with one_blas_thread():
            assert pool.submit(blas_in_a_solve).result() == blas() == {1}
        assert blas() == {2}
        _in_new_thread(lambda: threadpool_limits(1, user_api="blas"))
    same(many, pl.scale.solve(wide, rows, 30.0, chunk=40, workers=1))


def test_xarray_dimensions_by_name():
    xr = pytest.importorskip("xarray", reason="xarray is installed from Python 3.11 on")
    pixels = xr.DataArray(
        b[:40].reshape(5, 8, M).transpose(2, 0, 1), dims=("band", "y", "x"), coords={"y": range(5)}
    )
    dictionary = xr.DataArray(A, dims=("band", "atom"), coords={"atom": range(N)})
    expected = pl.scale.solve(A, b[:40], 2.0)
    for image in (pixels, pixels.chunk({"y": 2, "x": 4})):
        found = pl.scale.solve(dictionary, image, 2.0)
        assert found.solution.dims == ("y", "x", "atom")
        assert set(found.coords) == {"y", "atom"}
        assert found.attrs["statuses"][0] == "SOLVED"
        assert (found.chunks != {}) == (image is not pixels)
        np.testing.assert_array_equal(found.solution.to_numpy().reshape(40, N), expected.x)
    own = xr.DataArray(MANY[:40].reshape(5, 8, M, N), dims=("y", "x", "band", "atom"))
    lam = xr.DataArray(LAM[:40].reshape(5, 8), dims=("y", "x"))
    found = pl.scale.solve(own, pixels.transpose("y", "x", "band"), lam)
    expected = pl.scale.solve(MANY[:40], b[:40], LAM[:40])
    np.testing.assert_array_equal(found.objective.to_numpy().ravel(), expected.objective)
    with pytest.raises(InputError, match="expected the last but one of A in b"):
        pl.scale.solve(dictionary.rename(band="other"), pixels, 2.0)
    with pytest.raises(InputError, match="expected both to be one"):
        pl.scale.solve(A, pixels, 2.0)


def test_a_group_in_a_group_out(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "in", mode="w", attributes={"kind": "lasso", "lam": 2.0})
    group.create_array("A", data=A)
    group.create_array("b", data=b, chunks=(10, M))
    expected = pl.scale.solve(A, b, 2.0)
    results = pl.scale.solve(group, out=tmp_path / "out", chunk=9)
    for name in FIELDS:
        np.testing.assert_array_equal(results[name][:], getattr(expected, name))
    again = pl.scale.solve(str(tmp_path / "in"), out=tmp_path / "sparse", chunk=9, sparse=True)
    np.testing.assert_array_equal(pl.scale.sparse_x(again).toarray(), expected.x)
    with pytest.raises(InputError, match="holds the kind 'lasso', not 'logistic'"):
        pl.scale.solve(group, out=tmp_path / "other", loss="logistic")
    with pytest.raises(InputError, match="out is missing"):
        pl.scale.solve(group)
    with pytest.raises(InputError, match="put them into the group"):
        pl.scale.solve(group, b, out=tmp_path / "other")
    with pytest.raises(InputError, match=r"dask.array.from_zarr"):
        pl.scale.solve(group["A"], b, 2.0)


BAD = {
    "no b": ((A,), {"lam": 1.0}, "b is missing"),
    "no lam": ((A, b), {}, "lam is missing"),
    "too much": ((A, b), {"lam": 1.0, "lam2": 1.0}, "were given lam2; leave it out"),
    "loss": ((A, b, 1.0), {"loss": "hinge"}, "loss 'hinge' with penalty 'l1'; expected one of"),
    "shape": ((A, b[:, 1:], 1.0), {}, r"A has shape \(12, 30\) and b \(41, 11\)"),
    "axes": ((A[0], b, 1.0), {}, r"A has shape \(30,\); expected \(m, n\) or \(B, m, n\)"),
    "counts": ((MANY, b[:9], 1.0), {}, "A has 41 and b has 9 problems; expected as many"),
    "none": ((A, b[:0], 1.0), {}, "hold no problems"),
    "nan": ((A, b * np.nan, 1.0), {}, "b holds .* values that are NaN"),
    "lam nan": ((A, b, np.nan), {}, "lam is nan"),
    "tol": ((A, b, 1.0), {"tol": -1}, "tol is -1"),
    "dtype": ((A, b, 1.0), {"dtype": "half"}, "unknown dtype 'half'"),
    "classes": ((A, b > 0, 1.0), {"loss": "softmax"}, "classes is missing"),
    "out": ((A, b, 1.0), {"out": "x"}, "expected a zarr group"),
    "no targets": ((A, b, 1.0), {"penalty": "row-l1"}, r"A has shape .* and b \(41, 12\)"),
    "targets": ((A, b[..., None], 1.0), {}, r"b has shape .* rows of a batch, \(B, m\)"),
    "0 targets": ((A, np.ones((3, M, 0)), 1.0), {"penalty": "row-l1"}, "at least one row and"),
    "one row": ((A, np.ones(M), 1.0), {"penalty": "row-l1"}, r"a column for each target"),
    "unknown sizes": ((A, da.from_array(b)[da.from_array(b[:, 0] > 0)], 1.0), {}, "unknown size"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case):
    arrays, options, words = BAD[case]
    with pytest.raises(InputError, match=words) as caught:
        pl.scale.solve(*arrays, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("error")
def test_chunks_of_a_bad_size_are_said_so_with_the_size_to_choose(client):
    with pytest.warns(UserWarning, match=r"chunks of 2 problems take about .* choose 41 problems"):
        pl.scale.solve(A, b, 2.0, chunk=2)
    size = Size(entries=10**9, m=1000, width=10**6, own_matrix=True)
    with pytest.raises(InputError, match=r"take 75 GiB each.* has 16 GiB .* at most 1 problems"):
        size.check(10, 100, memory=16 * 2**30)
    huge = da.zeros((10**6, 1000, 1000), chunks=(10**5, -1, -1))
    with pytest.raises(InputError, match=r"chunks of 100000 problems take .* choose at most"):
        pl.scale.solve(huge, da.zeros((10**6, 1000), chunks=(10**5, -1)), 1.0)
    small = Size(entries=1000, m=10, width=100, own_matrix=False)
    assert 1 <= small.choose(10**9, 1) <= 10**6
    assert small.check(small.choose(10**9, 1), 10**9, 2**30) is None


def test_a_copy_of_a_matrix_carries_the_matrix_alone():
    import pickle

    shared = SharedMatrix.of(A, None)
    pl.scale.solve(A, b, 2.0)
    shared.kept["gram"] = A.T @ A
    copy = pickle.loads(pickle.dumps(shared))
    assert copy.kept == {}
    np.testing.assert_array_equal(copy.matrix.values, A)
    assert sys.getsizeof(shared) >= A.nbytes


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    for name in ("zarr", "xarray"):
        pytest.importorskip(name)
    page = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
    code = "".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(code, {})
