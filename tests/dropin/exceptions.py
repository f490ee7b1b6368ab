"""The tests of scikit-learn that do not apply to proxlearn, and those that show a difference.

Names are regular expressions for the whole name of a test with its parameters. docs/coming-from.md
explains the differences.
"""

NOT_APPLICABLE = {
    "test_set_order_.*": "tests scikit-learn's function _set_order",
    "test_cython_solver_equivalence.*": "tests scikit-learn's compiled functions",
    "test_lassoCV_does_not_set_precompute.*": "replaces scikit-learn's own Lasso",
    "test_check_input_false": "expects that X in C order is refused; it is used in place",
    "test_enet_copy_X_False_check_input_False": "expects that X is overwritten; it never is",
    "test_path_function_deprecated_n_alphas.*": "tests a deprecation of scikit-learn",
    "test_penalty_deprecated.*": "tests a deprecation of scikit-learn",
    "test_l1_ratio_None_deprecated": "tests a deprecation of scikit-learn",
    "test_logisticregression_warns_with_n_jobs": "tests a deprecation of scikit-learn",
    "test_check_solver_option.*": "tests what scikit-learn's solvers do not support",
    "test_liblinear_multiclass_raises.*": "tests what liblinear does not support",
    "test_liblinear_dual_random_state": "tests the random numbers of liblinear",
    "test_liblinear_with_large_values": "tests what liblinear does not support",
    r"test_large_sparse_matrix.*(liblinear|sag|saga)\]": "tests what these solvers do not support",
    r"test_dtype_match.*liblinear\]": "tests that liblinear computes in float64",
    "test_newton_cholesky_fallback_to_lbfgs": "tests how scikit-learn changes its solver",
    "test_warm_start_newton_solver.*": "tests that two Newton steps are two fits of one step",
    "test_max_iter.*": "tests the messages and the slow convergence of scikit-learn's solvers",
    "test_consistency_path": "tests scikit-learn's function _logistic_regression_path",
    "test_logistic_regression_path_.*": "tests scikit-learn's function _logistic_regression_path",
    "test_logistic_cv_multinomial_score.*": "tests scikit-learn's function _log_reg_scoring_path",
    "test_logreg_predict_proba_multinomial": "calls a private method of scikit-learn's classes",
    "test_logistic_regression_callback_.*": "tests callbacks for the iterations of lbfgs",
}
"""What tests scikit-learn's inner functions, its solvers or its deprecations."""

DIFFERENCES = {
    "test_enet_nonfinite_params": "gives a ConvergenceWarning for numbers of 1e308, not an error",
    "test_lasso_dual_gap": "dual_gap_ is that of the best dual point, smaller than expected here",
    r"test_enet_coordinate_descent_raises_convergence\[Lasso-.*": "two working sets solve what two "
    "iterations of scikit-learn do not",
    "test_sparse_enet_coordinate_descent.*": "two working sets solve what two iterations do not",
    "test_lasso_alpha_warning": "alpha=0 converges, so that nothing warns of it",
    "test_multioutput_enetcv_error": "the CV estimators accept several targets",
    "test_warm_start_convergence_with_regularizer_decrement": "n_iter_ counts working sets, of "
    "which ten columns need two for every alpha",
    r"test_warm_start\[(True|False)-False-.*": "one working set nearly solves what one iteration "
    "does not",
    r"test_lr_penalty_l1ratio_incompatible\[l1-0.0\]": "penalty='l1' beside the default l1_ratio "
    "gives no warning",
}
"""What is known to be different, and why."""
