"""scikit-learn's test_logistic.py with proxlearn's classes."""

from dropin.replaced import collected, load

globals().update(collected(load("test_logistic")))
