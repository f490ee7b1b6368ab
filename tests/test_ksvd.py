"""K-SVD: an error that never rises, planted dictionaries that are found, and clear refusals."""

from itertools import pairwise

import pytest
import torch

from proxlearn.errors import InputError
from proxlearn.problems.ksvd import ksvd


def planted(d=20, atoms=24, count=500, sparsity=2, noise=0.0, seed=0):
    """Signals of `sparsity` atoms each, and the atoms."""
    g = torch.Generator().manual_seed(seed)
    D = torch.randn(d, atoms, generator=g, dtype=torch.float64)
    D = D / D.norm(dim=0)
    X = torch.zeros(count, atoms, dtype=torch.float64)
    for row in X:
        row[torch.randperm(atoms, generator=g)[:sparsity]] = torch.randn(
            sparsity, generator=g, dtype=torch.float64
        )
    Y = X @ D.T
    return Y + noise * torch.randn(Y.shape, generator=g, dtype=torch.float64), D


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_error_never_rises(seed, noise):
    Y, _ = planted(count=200, noise=noise, seed=seed)
    errors = ksvd(Y, atoms=24, sparsity=2, rounds=12, seed=seed).errors
    assert len(errors) == 12
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(errors))
    assert errors[-1] < 0.9 * errors[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_dictionary_is_recovered(seed):
    Y, D = planted(seed=seed)
    found = ksvd(Y, atoms=24, sparsity=2, rounds=25, seed=seed)
    closest = (found.atoms.T @ D).abs().amax(0)
    # As in the paper of K-SVD, an atom counts as found within 0.01; not all always are.
    assert (closest > 0.99).double().mean() >= 0.9
    random = torch.randn(20, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    chance = ((random / random.norm(dim=0)).T @ D).abs().amax(0)
    assert (chance > 0.99).double().mean() == 0


def test_what_it_returns_is_what_it_says():
    Y, _ = planted(count=150, noise=0.1)
    found = ksvd(Y, atoms=20, sparsity=2, rounds=4)
    assert found.atoms.shape == (20, 20)
    assert torch.allclose(found.atoms.norm(dim=0), torch.ones(20, dtype=torch.float64))
    assert (found.codes != 0).sum(1).max() <= 2
    left = (Y - found.codes @ found.atoms.T).square().mean().sqrt().item()
    assert left == pytest.approx(found.errors[-1], rel=1e-10)


def test_the_seed_decides():
    Y, _ = planted(count=100)
    first, again, other = (ksvd(Y, 20, 2, rounds=2, seed=s) for s in (0, 0, 1))
    assert torch.equal(first.atoms, again.atoms)
    assert not torch.equal(first.atoms, other.atoms)


def test_the_signals_stay_as_they_are():
    Y, _ = planted(count=60)
    before = Y.clone()
    ksvd(Y, 20, 2, rounds=2)
    assert torch.equal(Y, before)


def test_zero_signals_get_zero_codes_and_no_warning():
    Y, _ = planted(count=60)
    Y[:5] = 0
    found = ksvd(Y, 20, 2, rounds=3)
    assert (found.codes[:5] == 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sparsity": 0}, "sparsity is 0; expected 1 to 20"),
        ({"sparsity": 21}, "sparsity is 21"),
        ({"rounds": 0}, "rounds is 0"),
        ({"atoms": 61}, "60 signals are not zero; expected at least 61"),
        ({"signals": torch.zeros(3)}, r"shape \(3,\)"),
        ({"signals": torch.full((60, 20), float("nan"))}, "expected finite"),
    ],
)
def test_refusals(change, message):
    Y, _ = planted(count=60)
    with pytest.raises(InputError, match=message):
        ksvd(**{"signals": Y, "atoms": 20, "sparsity": 2, "rounds": 1, **change})
