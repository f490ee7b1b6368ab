"""Problem: what is minimised, F(x) = f(x) + r(x), as a description that belongs to no engine."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from proxlearn.errors import InputError, needing_torch
from proxlearn.problems.arrays import Matrix
from proxlearn.problems.description import LinearModel, model_of_plain
from proxlearn.problems.tolerance import allowed_gap

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from proxlearn.problems.certificates import Certificate
    from proxlearn.problems.penalties import Penalty
    from proxlearn.problems.smooth import Evaluation, Smooth


class Problem:
    """``minimise F(x) = f(x) + r(x)``, a batch of B instances with x (B, n).

    It is made of two objects of PyTorch, f and r, or by `Problem.described` of arrays that stay as
    they came; f and r are then made when they are first used. Problems do not change.

    Parameters
    ----------
    f : Smooth
        The smooth convex term.
    r : Penalty
        The convex term with a cheap proximal operator.
    single : bool
        True where the user gave one problem: its solution's x is then (n,) instead of (1, n).
    numpy : bool
        True where the user gave NumPy arrays: the answers are NumPy arrays then, else tensors.

    Examples
    --------
    >>> import torch, proxlearn as pl
    >>> from proxlearn.problems.operators import Dense
    >>> f = pl.smooth.LeastSquares(Dense(torch.eye(2)), torch.tensor([[2.0, 2.0]]))
    >>> pl.solve(pl.Problem(f, pl.penalties.L1(torch.ones(1)))).x
    tensor([[1., 1.]])
    """

    plain: Any = None
    """One dense LASSO, elastic net or NNLS as the core takes it without a description; or None."""

    def __init__(self, f: "Smooth", r: "Penalty", single: bool = False, numpy: bool = False):
        self.single, self.numpy = single, numpy
        self._check(f.batch, r.batch)
        self.n, self.batch = f.n, max(f.batch, r.batch)
        self._terms = (f, r)

    @classmethod
    def described(cls, model: LinearModel, batch: int, single: bool, numpy: bool) -> "Problem":
        """The problem of a linear model with as many instances as it has."""
        problem = cls.__new__(cls)
        problem.single, problem.numpy = single, numpy
        problem.n, problem.batch = model.n, batch
        if batch > 1:
            cls._check(max(model.A.batch, len(model.b)), model.penalty.batch)
        problem.__dict__["model"] = model
        return problem

    @classmethod
    def of_plain(cls, plain: Any) -> "Problem":
        """The problem that `plain` holds; its description is made when something asks for it."""
        problem = cls.__new__(cls)
        problem.plain, problem.n, problem.batch = plain, plain.n, 1
        problem.single = problem.numpy = True
        return problem

    @staticmethod
    def _check(f: int, r: int) -> None:
        if f != r and 1 not in (f, r):
            raise InputError(
                f"f has {f} instances and r has {r}; "
                "expected the same number, or 1 for a term that all instances share"
            )

    def __repr__(self) -> str:
        return f"Problem(batch={self.batch}, n={self.n})"

    @cached_property
    def model(self) -> LinearModel | None:
        """The same as arrays, for the compiled core; None where f or r is of another form."""
        if self.plain is not None:
            return model_of_plain(self.plain)
        f, r = self._terms
        loss, penalty = f.linear_loss(), r.core_form()
        if loss is None or penalty is None or (penalty.squares_only and loss.name != "squares"):
            return None
        A, tasks = loss.A.without_tasks()
        penalty = penalty if tasks == 1 else penalty.for_tasks(tasks)
        if penalty is None:
            return None
        matrix = Matrix(A, A.shape, A.batch, True)
        return LinearModel(loss.name, matrix, loss.b, penalty, loss.options)

    @cached_property
    def _terms(self) -> "tuple[Smooth, Penalty]":
        model = self.model
        assert model is not None
        with needing_torch("this use of a problem"):
            return model.terms()

    @property
    def f(self) -> "Smooth":
        """The smooth term."""
        return self._terms[0]

    @property
    def r(self) -> "Penalty":
        """The penalty."""
        return self._terms[1]

    @property
    def dtype(self) -> "torch.dtype":
        """Precision in which the problem is stored and solved."""
        return self.f.like.dtype

    @property
    def device(self) -> "torch.device":
        """Where the problem is stored and solved."""
        return self.f.like.device

    def in_tensors(self) -> "Problem":
        """The same problem, whose answers are tensors."""
        return Problem(self.f, self.r, self.single) if self.numpy else self

    def replaced(self, f: "Smooth | None" = None, r: "Penalty | None" = None) -> "Problem":
        """The problem with another f or another r."""
        f, r = self.f if f is None else f, self.r if r is None else r
        return Problem(f, r, self.single, self.numpy)

    def select(self, index: "Tensor") -> "Problem":
        """The instances `index` (positions) as a problem of their own."""
        from proxlearn.problems.batch import select

        chosen = Problem(select(self.f, index), select(self.r, index), numpy=self.numpy)
        if "at_zero" in self.__dict__:
            chosen.__dict__["at_zero"] = self.at_zero[index]
        return chosen

    def to(self, dtype: "torch.dtype | None" = None, device: str | None = None) -> "Problem":
        """The same problem in another precision or on another device."""
        from proxlearn.problems.batch import convert

        target = self.dtype if dtype is None else dtype
        f, r = convert(self.f, target, device), convert(self.r, target, device)
        moved = Problem(f, r, self.single, self.numpy)
        if "at_zero" in self.__dict__:
            moved.__dict__["at_zero"] = self.at_zero.to(device=device)
        return moved

    def objective(self, x: "Tensor") -> "Tensor":
        """F(x), (B,)."""
        return self.f.value(x) + self.r.value(x)

    def image(self, x: Any) -> Any:
        """The pictures whose coefficients are x; None where the problem is not about pictures."""
        return None

    def lipschitz(self) -> "Tensor":
        """Lipschitz constant of grad f for every instance, (B,)."""
        return self.f.lipschitz().expand(self.batch)

    def safe_step(self) -> "Tensor":
        """1/L, (B, 1); 1 where f is constant and any step is safe."""
        L = self.lipschitz()[:, None]
        return (1 / L).where(L > 0, 1.0)

    def upper_bound(self, e: "Evaluation", x: "Tensor") -> "Tensor":
        """F(x) <= f(y) + <grad f(y), x - y> + L/2 ||x - y||^2 + r(x), (B,), from f evaluated at y.

        The descent lemma: the objective at x for the price of a dot product.
        """
        d = x - e.point
        linear, square = (e.grad * d).sum(-1), d.square().sum(-1)
        return e.value + linear + 0.5 * self.lipschitz() * square + self.r.value(x)

    def nearest_to_zero(self) -> "Tensor":
        """The penalty's point nearest 0, where a solve starts by default, (B, n)."""
        from proxlearn.problems.certificates import nearest_to_zero

        return nearest_to_zero(self)

    @cached_property
    def at_zero(self) -> "Tensor":
        """F at the penalty's point nearest 0, (B,), the scale of an optimum of 0; 0 if infinite."""
        from proxlearn.problems.certificates import at_zero

        return at_zero(self)

    def allowed_gap(self, tol: float, objective: "Tensor") -> "Tensor":
        """The gap up to which points with these objectives are SOLVED, (B,)."""
        allowed: Tensor = allowed_gap(tol, objective, self.at_zero.to(objective.dtype))
        return allowed

    def lower_bound(self, e: "Evaluation") -> "Tensor":
        """A lower bound on F*, (B,), from f evaluated at any point, see `certificates`."""
        from proxlearn.problems.certificates import lower_bound

        return lower_bound(self, e)

    def certificate(self, x: "Tensor", residual: bool = False) -> "Certificate":
        """Objective and gap at x (B, n), in float64 whatever the problem's precision.

        With `residual` also the length of the prox-gradient map, from the same evaluation of f.
        """
        from proxlearn.problems.certificates import certificate

        return certificate(self, x, residual)

    def gap(self, objective: "Tensor", lower: "Tensor") -> "Tensor":
        """F(x) - lower as a certified gap, (B,): >= 0, infinite where nothing is known."""
        from proxlearn.problems.certificates import gap

        return gap(self, objective, lower)

    def residual(self, e: "Evaluation") -> "Tensor":
        """Length of the prox-gradient map at an evaluated point, (B,)."""
        from proxlearn.problems.certificates import residual

        return residual(self, e)


def require_problem(value: Any) -> Problem:
    """The problem itself; what is none, a matrix above all, is refused."""
    if not isinstance(value, Problem):
        raise InputError(
            f"problem is of type {type(value).__name__}; expected a Problem: make one of the data, "
            "as in proxlearn.lasso(A, b, lam)"
        )
    return value
