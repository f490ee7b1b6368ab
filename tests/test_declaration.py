"""Parameters of estimators are declared and documented once, and shown whole."""

import inspect
import warnings

import pytest

import proxlearn.sklearn
from proxlearn.sklearn.declaration import estimator
from proxlearn.sklearn.fitting import warn

ESTIMATORS = [
    found
    for name in proxlearn.sklearn.__all__
    if inspect.isclass(found := getattr(proxlearn.sklearn, name))
]


@estimator
class Base:
    """What the base is.

    Parameters
    ----------
    tol : float
        How exact the answer is.
    kept : int
        Only the base speaks of it.

    Attributes
    ----------
    coef_ : array
        The answer.
    """

    tol: float = 1e-6
    kept: str = "all"

    def fit(self, X, y=None):
        """Fit.

        Parameters
        ----------
        X : array
            The data.
        y : array
            The target.
        """


@estimator
class Derived(Base):
    """What the derived class is.

    Parameters
    ----------
    tol : float
        How exact each answer is.
    scale : float
        A factor.

    Examples
    --------
    >>> 1 + 1
    2
    """

    tol: float = 1e-3
    scale: float = 2.0

    def fit(self, X, y=None, weights=None):
        """Fit with weights.

        Parameters
        ----------
        weights : array
            The weights.

        Returns
        -------
        self
        """


def test_the_docstring_has_the_entries_of_the_bases_and_the_defaults():
    assert inspect.getdoc(Derived) == inspect.cleandoc("""
        What the derived class is.

        Parameters
        ----------
        tol : float, default=0.001
            How exact each answer is.
        scale : float, default=2.0
            A factor.
        kept : int, default="all"
            Only the base speaks of it.

        Attributes
        ----------
        coef_ : array
            The answer.

        Examples
        --------
        >>> 1 + 1
        2
        """)
    assert "tol : float, default=1e-06" in Base.__doc__


def test_a_method_is_completed_in_the_order_of_its_arguments():
    sections = Derived.fit.__doc__
    places = [sections.index(f"\n{name} : array") for name in ("X", "y", "weights")]
    assert places == sorted(places)
    assert "y : array, optional" in sections
    assert sections.index("Returns") > places[-1]


def test_the_signature_is_that_of_the_attributes():
    assert str(inspect.signature(Derived)) == (
        "(*, tol: float = 0.001, kept: str = 'all', scale: float = 2.0) -> None"
    )
    assert Derived(scale=3.0).scale == 3.0


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_parameter_of_an_estimator_is_documented_with_its_default(cls):
    for name, parameter in inspect.signature(cls).parameters.items():
        (line,) = [line for line in cls.__doc__.splitlines() if line.startswith(f"{name} : ")]
        assert line.endswith(", optional" if parameter.default is None else _shown(parameter))


def _shown(parameter):
    value = parameter.default
    return f', default="{value}"' if isinstance(value, str) else f", default={value!r}"


def test_a_warning_names_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("take care")
        proxlearn.sklearn.Lasso(max_iter=1, tol=0.0).fit([[1.0, 2.0], [3.0, 5.0]], [1.0, 0.0])
    assert {warning.filename for warning in caught} == {__file__}
    assert len(caught) > 0
