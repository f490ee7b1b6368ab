"""scikit-learn's test_coordinate_descent.py with proxlearn's classes."""

from dropin.replaced import collected, load

globals().update(collected(load("test_coordinate_descent")))
