"""Arguments of `fit` and `score` for the splitter and the scorer of a cross-validation."""

from typing import Any

from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

Arguments = dict[str, Any]


def router(estimator: Any, splitter: Any, scorer: Any = None) -> MetadataRouter:
    """What scikit-learn's metadata routing needs to know of a cross-validated estimator."""
    made = MetadataRouter(owner=estimator).add_self_request(estimator)
    made.add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    if scorer is not None:
        mapping = MethodMapping().add(caller="score", callee="score")
        made.add(scorer=scorer, method_mapping=mapping.add(caller="fit", callee="score"))
    return made


def routed(
    estimator: Any, method: str, sample_weight: Any, params: Arguments
) -> tuple[Arguments, Arguments]:
    """The arguments of the splitter's `split` and of the scorer, from those of `method`.

    Without metadata routing only `sample_weight` is allowed; it goes to the scorer.
    """
    _raise_for_params(params, estimator, method)
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    if not _routing_enabled():
        return {}, given
    if method == "fit":
        given = {"sample_weight": sample_weight}
    parts = process_routing(estimator, method, **given, **params)
    split = parts["splitter"]["split"] if method == "fit" else {}
    scorer = parts.get("scorer")
    score = {} if scorer is None else scorer["score"]
    return split, {name: value for name, value in score.items() if value is not None}
