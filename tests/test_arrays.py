"""Third-party arrays become tensors: what is copied, what is converted, where a solve starts."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.problems.arrays import require_finite, to_matrix
from proxlearn.problems.operators import Dense, MatrixFree, Sparse
from proxlearn.problems.tensors import start_point, to_tensor
from proxlearn.problems.vectors import to_positive, to_rows, to_weights

LIKE = Dense(torch.ones(3, 4, dtype=torch.float32))


@given(
    array=hnp.arrays(
        dtype=st.one_of(
            hnp.boolean_dtypes(),
            hnp.integer_dtypes(endianness="?"),
            hnp.unsigned_integer_dtypes(endianness="?"),
            hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
        ),
        shape=hnp.array_shapes(min_dims=0, max_dims=3, max_side=4),
        elements={"allow_nan": False, "allow_infinity": False},
    ),
    layout=st.sampled_from(["C", "F", "reversed", "read-only"]),
)
def test_every_number_arrives(array, layout):
    if layout == "F":
        array = np.asfortranarray(array) if array.ndim else array
    elif layout == "reversed":
        array = array[::-1] if array.ndim else array
    elif layout == "read-only":
        array.setflags(write=False)
    before = array.copy()
    tensor = to_tensor("x", array)
    assert tensor.dtype == (
        torch.float32 if array.dtype.itemsize <= 4 and array.dtype.kind == "f" else torch.float64
    )
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array.astype(tensor.numpy().dtype))
    np.testing.assert_array_equal(array, before)


def test_arrays_that_torch_can_read_are_not_copied():
    array = np.ones((3, 4))
    assert to_tensor("x", array).data_ptr() == array.ctypes.data
    tensor = torch.ones(3, 4)
    assert to_tensor("x", tensor) is tensor


def test_a_read_only_array_is_never_written_through():
    array = np.ones(3)
    array.setflags(write=False)
    to_tensor("x", array).zero_()
    assert array.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.bool, torch.float64),
        (torch.int32, torch.float64),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_precision_of_tensors(dtype, expected):
    tensor = to_tensor("x", torch.ones(2, 2).to(dtype))
    assert tensor.dtype == expected
    assert tensor.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_gradients_flow_through_a_tensor():
    b = torch.ones(3, requires_grad=True)
    pl.lasso(torch.ones(3, 2), b, 0.1).objective(torch.zeros(1, 2)).sum().backward()
    assert b.grad.tolist() == [1.0] * 3


def test_finite_check_counts():
    fine = torch.ones(3)
    assert require_finite("x", fine) is fine
    with pytest.raises(InputError, match="x holds 2 values that are NaN or infinite"):
        require_finite("x", torch.tensor([1.0, torch.nan, torch.inf]))


def test_operators_keep_their_kind():
    dense = np.eye(3)
    assert isinstance(to_matrix("A", dense).operator, Dense)
    assert isinstance(to_matrix("A", sp.eye_array(3)).operator, Sparse)
    assert isinstance(to_matrix("A", sp.linalg.aslinearoperator(dense)).operator, MatrixFree)
    assert to_matrix("A", LIKE).operator is LIKE
    assert to_matrix("A", np.ones((5, 2, 3))).operator.batch == 5
    assert to_matrix("A", np.ones((1, 2, 3))).operator.batch == 1


@pytest.mark.parametrize(("given", "expected"), [("f4", "float32"), ("f8", "float64")])
def test_precision_of_operators(given, expected):
    dense = np.eye(3, dtype=given)
    for A in (dense, sp.csr_array(dense), sp.linalg.aslinearoperator(dense)):
        assert to_matrix("A", A).operator.dtype == getattr(torch, expected)


def test_rows_numbers_and_weights_take_the_precision_of_A():
    assert to_rows("b", [1, 2, 3], 3, LIKE).tolist() == [[1.0, 2.0, 3.0]]
    assert to_rows("b", np.ones((5, 3)), 3, LIKE).shape == (5, 3)
    assert to_positive("lam", 2, LIKE).tolist() == [2.0]
    assert to_positive("lam", np.array([1, 2]), LIKE).tolist() == [1.0, 2.0]
    assert to_positive("lam", 0, LIKE, at_least=0).tolist() == [0.0]
    assert to_weights("w", [0, 1, 2, 3], 4, LIKE).tolist() == [[0.0, 1.0, 2.0, 3.0]]
    assert to_weights("w", None, 4, LIKE) is None
    for tensor in (
        to_rows("b", [1, 2, 3], 3, LIKE),
        to_positive("lam", 2, LIKE),
        to_weights("w", np.ones(4), 4, LIKE),
    ):
        assert tensor.dtype == torch.float32


def test_start_is_the_point_of_the_penalty_nearest_zero():
    A, b = torch.ones(3, 4), torch.ones(2, 3)
    assert start_point(pl.lasso(A, b, 0.1), None).tolist() == [[0.0] * 4] * 2
    assert start_point(pl.simplex_ls(A, b, 2.0), None).tolist() == [[0.5] * 4] * 2


@pytest.mark.parametrize("x0", [[1, 2, 3, 4], [[1, 2, 3, 4]], [[1, 2, 3, 4]] * 2, np.arange(1, 5)])
def test_start_for_all_or_for_each(x0):
    start = start_point(pl.lasso(torch.ones(3, 4), torch.ones(2, 3), 0.1), x0)
    assert start.dtype == torch.float32
    assert start.tolist() == [[1.0, 2.0, 3.0, 4.0]] * 2


def test_start_is_a_copy():
    x0 = torch.ones(2, 4)
    start_point(pl.lasso(torch.ones(3, 4), torch.ones(2, 3), 0.1), x0).zero_()
    assert x0.sum() == 8


@pytest.mark.parametrize(
    ("x0", "match"),
    [
        ([1, 2, 3], r"x0 has shape \(3,\); expected \(4,\) or \(2, 4\)"),
        (np.ones((3, 4)), r"x0 has shape \(3, 4\)"),
        (np.ones((4, 2)), r"x0 has shape \(4, 2\)"),
        (1.0, r"x0 has shape \(\)"),
        ([1, 2, 3, np.nan], "x0 holds 1 values"),
        ("zero", "x0 has dtype <U4"),
    ],
)
def test_bad_start(x0, match):
    with pytest.raises(InputError, match=match):
        start_point(pl.lasso(torch.ones(3, 4), torch.ones(2, 3), 0.1), x0)


def test_a_masked_array_does_not_lose_its_mask():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(InputError, match="masked"):
        to_tensor("b", masked)
    assert to_tensor("b", np.ma.array([1.0, 2.0])).tolist() == [1.0, 2.0]
