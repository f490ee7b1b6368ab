"""The compiled network against PyTorch in float64, forward and backward."""

import itertools

import numpy as np
import pytest
import torch

import proxlearn as pl
from proxlearn.core import load
from proxlearn.methods.rules import coefficient_network as network
from proxlearn.methods.rules.coefficient_network import Hidden, Layer, run
from proxlearn.problems.operators import dense_operator

ROUNDING = 2e-6
"""Largest error of a derivative, relative to the largest entry of its array."""


def layers(kind, H, dtype):
    """The networks of the learned rules: 'pa' as the paper's rule has it, 'rnnprop', 'l2o-dm'."""
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return (0.4 * torch.randn(*shape, generator=generator)).to(dtype).requires_grad_()

    first = [Layer("elu", (draw(H, 2), draw(H, 1)))] if kind == "rnnprop" else []
    cells = [
        Layer("lstm", (draw(4 * H, inputs), draw(4 * H, H), draw(4 * H, 1)))
        for inputs in (H if first else 2, H)
    ]
    last = [Layer("relu", (draw(H, H), draw(H, 1)))] if kind == "pa" else []
    return [*first, *cells, *last, Layer("linear", (draw(2, H), draw(2, 1)))]


def derivatives(kind, B, n, H, dtype, detached=False):
    """The output of three steps, and the derivatives of a loss by all weights and states."""
    generator = torch.Generator().manual_seed(2)
    net = layers(kind, H, dtype)
    x = torch.randn(B, 2, n, generator=generator).to(dtype)
    draws = [torch.randn(B, H, n, generator=generator).to(dtype) for _ in range(4)]
    leaves = [t.requires_grad_() for t in (x, *draws)]
    state, loss = Hidden(tuple(draws[:2]), tuple(draws[2:])), 0.0
    for _ in range(3):
        out, state = run(net, x.detach() if detached else x, state)
        loss = loss + out.square().mean() + 0.1 * out[:, 0].mean()
        x = x + 0.1 * out
    (loss + state.c[0].mean()).backward()
    weights = [w for layer in net for w in layer.weights]
    return out, [t.grad for t in (*weights, *leaves) if not (detached and t is leaves[0])]


def assert_equal(found, expected):
    for a, b in itertools.chain(
        [(found[0], expected[0])], zip(*(found[1], expected[1]), strict=True)
    ):
        assert (a - b).abs().max() <= ROUNDING * b.abs().max()


@pytest.mark.parametrize("kind", ["pa", "rnnprop", "l2o-dm"])
@pytest.mark.parametrize("detached", [False, True])
def test_derivatives_equal_those_of_pytorch(kind, detached):
    for B, n, H in [(5, 7, 20), (1, 1, 3), (3, 333, 5)]:
        found = derivatives(kind, B, n, H, torch.float32, detached)
        assert_equal(found, derivatives(kind, B, n, H, torch.float64, detached))


def test_threads_and_batches_do_not_change_the_output():
    one = derivatives("pa", 3, 333, 20, torch.float32)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        several = derivatives("pa", 3, 333, 20, torch.float32)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one[0], several[0])
    assert_equal(several, one)
    net = layers("pa", 20, torch.float32)
    x, state = torch.randn(3, 2, 50), [torch.randn(3, 20, 50) for _ in range(4)]
    whole = run(net, x, Hidden(tuple(state[:2]), tuple(state[2:])))[0]
    last = [t[2:] for t in state]
    assert torch.equal(whole[2:], run(net, x[2:], Hidden(tuple(last[:2]), tuple(last[2:])))[0])


def test_the_compiled_path_is_taken(monkeypatch):
    def refuse(*_):
        raise AssertionError("PyTorch's cell was used for float32 on the CPU")

    monkeypatch.setattr(network, "lstm_cell", refuse)
    derivatives("pa", 1, 4, 3, torch.float32)


def test_numbers_that_are_not_finite_stay_visible():
    net, state = layers("pa", 4, torch.float32), torch.zeros(1, 4, 3)
    x = torch.tensor([[[1.0, torch.nan, torch.inf], [1.0, 1.0, -torch.inf]]])
    out = run(net, x, Hidden((state, state), (state, state)))[0]
    assert out[0, :, 0].isfinite().all()
    assert out[0, :, 1].isnan().all()


def test_the_kernel_refuses_shapes_that_do_not_fit():
    x, W = np.zeros((1, 2, 3), np.float32), np.zeros((4, 5), np.float32)
    with pytest.raises(ValueError, match="layer 0 has 5 columns for 2 inputs"):
        load("network").Stack(("linear",), [W], x, [])


def products(dtype, m, n, graph):
    """An evaluation of f and its derivative by x, of least squares or logistic regression."""
    generator = torch.Generator().manual_seed(3)
    A, x = torch.randn(5, m, n, generator=generator), torch.randn(5, n, generator=generator)
    A = A / n**0.5
    b, weights = torch.randn(5, m, generator=generator), torch.randn(5, n, generator=generator)
    found = []
    for problem in (pl.lasso(A.to(dtype), b.to(dtype), 0.1), pl.logistic(A, b > 0, 0.1)):
        f = problem.to(dtype).f
        at = f.evaluate(x.to(dtype).requires_grad_(graph))
        found += [at.value, at.grad, at.dual]
        if graph:
            loss = at.value.sum() + (at.grad * weights).sum() + (at.dual * b).sum()
            found += torch.autograd.grad(loss, at.point)
            found += torch.autograd.grad((f.evaluate(at.point).grad * weights).sum(), at.point)
    return [t.detach() for t in found]


@pytest.mark.parametrize(("m", "n"), [(250, 500), (7, 3), (5, 64), (11, 33), (1, 1)])
def test_both_products_in_one_pass_equal_those_in_float64(m, n):
    for found, expected in zip(
        products(torch.float32, m, n, True), products(torch.float64, m, n, True), strict=True
    ):
        assert (found - expected).abs().max() <= ROUNDING * expected.abs().max()


def test_both_products_are_the_same_with_several_threads():
    one = products(torch.float32, 20, 30, True)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        several = products(torch.float32, 20, 30, True)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(one[:5], several[:5], strict=True))


def test_one_pass_is_taken_in_training_alone(monkeypatch):
    def refuse(*_):
        raise AssertionError("the kernel was called")

    monkeypatch.setattr(dense_operator, "_kernel", lambda: type("Kernel", (), {"through": refuse}))
    products(torch.float32, 4, 3, False)
    with pytest.raises(AssertionError, match="was called"):
        products(torch.float32, 4, 3, True)
