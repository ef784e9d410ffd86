"""Every argument of every public function is refused by its name when it cannot be meant.

Here stands what predicts, simulates or fits, and what it is made of. Bags of real data, the cache,
results and executors, plans and portraits (which take many forms), explorers and figures are tested
beside their modules (`BESIDE`); steps of an algorithm, whose callers have checked, in no way
(`INNER`). No other public function is left out.
"""

import importlib
import inspect
import pkgutil
import re
from functools import partial

import numpy as np
import pytest

import needle
from experiments.depth import objective, scores, train
from needle.data.classifiers import attention, gaussian_mixture, learned_attention, pooled
from needle.data.dense import dense_features
from needle.data.noise import sample_noise
from needle.data.sidebyside import vectorized
from needle.data.tall import excess, pooled_tokens
from needle.data.teachers import teacher
from needle.data.tokens import SparseTokens
from needle.kit.nodes import gaussian_nodes
from needle.learning.amp import simulate_learning
from needle.learning.limit import (
    all_solutions,
    learning_thresholds,
    predict_learning,
    samples_for,
    state_evolution,
)
from needle.learning.norms import simulate_guessing
from needle.learning.verdicts import bayes_error
from needle.oracle.detection import (
    haystack_error,
    haystack_theta,
    one_needle_bayes_error,
    predict_haystack_error,
    sample_haystack,
)
from needle.oracle.exponents import detection_boundary, detection_exponent
from needle.oracle.heads import sample_signed, second_moment_cos, second_moment_query, signed_error
from needle.oracle.hops import (
    one_layer_bound,
    sample_hops,
    simulate_two_hops,
    two_hop_error,
)
from needle.oracle.keys import queries_error, sample_values, span_cosine2, value_cosine
from needle.oracle.limit import critical_theta, predict_error
from needle.oracle.longest import longest_token_error
from needle.oracle.recurrence import gated_weights, recurrence_error, softmax_gates
from needle.oracle.required import required_theta
from needle.oracle.separation import needle_weight, oracle_error
from needle.readout.capacity import (
    predict_capacity,
    predict_capacity_width,
    separability,
    simulate_capacity,
    simulate_repair,
)
from needle.readout.contest import predict_contest, simulate_contest
from needle.readout.crossing import crossing_law, predict_crossing, sharpness_law
from needle.readout.fit import error_rate, fit_readout, simulate_readout
from needle.readout.heights import capture_height, two_height_sharpness, two_heights
from needle.readout.lengths import recipes, rescaled, sharpened
from needle.readout.limit import learning_curve, order_parameters, predict_readout
from needle.readout.literal import simulate_reuse
from needle.readout.longbags import long_bag_error, long_bag_law, predict_long_bags
from needle.readout.margin import fit_margin, predict_margin, simulate_margin
from needle.readout.reuse import predict_reuse, reuse_scores
from needle.readout.scores import judge
from needle.readout.seen import training_law
from needle.readout.subsampling import subsampled
from needle.readout.support import collapse_alpha
from needle.readout.taught import predict_reused_capacity_width, simulate_reused_repair
from needle.readout.transfer import predict_transfer, simulate_transfer
from needle.readout.twice import predict_reused_capacity, simulate_reused_separable
from needle.steps.alignment import predict_alignment, simulate_alignment
from needle.steps.chance import chance_cosines, imbalance, predict_chance
from needle.steps.colored import (
    heavy_error,
    predict_noisy_alignment,
    sample_bags,
    signal_directions,
    whiten,
)
from needle.steps.rates import calibrated_cosine, calibrated_rate, rate_window
from needle.steps.rule import StepOptions, two_steps
from needle.steps.scatter import predict_gap, predict_spread
from needle.steps.sign import sign_condition, sign_intercepts
from needle.training.batch import predict_descent, simulate_descent
from needle.training.heads import predict_two_heads, simulate_two_heads
from needle.training.onepass import predict_training
from needle.training.relay import predict_relay, simulate_relay
from needle.training.rounds import (
    predict_reused_rounds,
    predict_rounds,
    predict_rounds_readout,
    simulate_rounds,
)
from needle.training.walk import simulate_training
from needle.trials.grid import sweep
from utils.agreement import agree, extrapolate

MODEL, RNG = SparseTokens(10, 1, 5.0, 0.5), np.random.default_rng(0)
LAW, NOISE = pooled(MODEL), sample_noise(10, 1, 20, RNG)
SHARP = attention(MODEL, temperature=1.0, cos=0.5)
LEARNED = predict_alignment(MODEL, 1.0)
F, Y = LAW.sample(30, 5, RNG)
STEPS = {"loss": "square", "lr_w": 0.5, "lr_b": 0.5}
FIT = {"loss": "square", "intercept": True}
RATES = {"lr_q": 0.5, "lr_w": 0.5, "lr_b": 0.5, "start": (0.1, 0.1), "loss": "square"}
TINY, BAGS = SparseTokens(4, 1, 2.0, 0.5), sample_haystack(100, 10, 20, RNG)
X4, SCORES = RNG.normal(size=(6, 4, 3)), LAW.scores(np.ones(2), 0.0)
HEAD = {"temperature": 1.0, "cos": 0.9, "alpha": 2.0, "lam": 0.1}
CONTEST = {
    "temperature": 1.0, "lam": 0.1, "cos": 0.5, "balanced": False, "loss": "square",
    "lr_w": 0.5, "lr_b": 0.5,
}  # fmt: skip
HOPS = {"L": 5, "theta": (3.0, 3.0, 2.0), "kappa": 3.0}
READOUTS = {"law": LAW, "test": LAW, "alpha": 2.0, "lam": 0.1, "loss": "square"}
GOOD = {  # function: arguments that work
    SparseTokens: {"L": 10, "R": 1, "theta": 5.0, "pi": 0.5},
    MODEL.sample: {"n": 2, "d": 3, "rng": RNG},
    predict_alignment: {"model": MODEL, "alpha0": 1.0, "balanced": True, **STEPS},
    simulate_alignment: {
        "model": MODEL, "d": 5, "alpha0": 1.0, "rng": RNG, "method": "exact",
        "balanced": False, **STEPS
    },
    two_steps: {"X": np.ones((2, 3, 4)), "y": [1, -1], "balanced": True, **STEPS},
    pooled: {"model": MODEL},
    vectorized: {"model": MODEL},
    attention: {"model": MODEL, "temperature": 1.0, "cos": 0.5, "resolution": 96},
    learned_attention: {"model": MODEL, "alignment": LEARNED, "scale": 1.0, "resolution": 96},
    gaussian_mixture: {"mean": 1.0, "var_pos": 1.0, "var_neg": 1.0, "pi": 0.5},
    excess: {"model": MODEL, "level": 1.0, "cos": 0.5, "resolution": 96},
    pooled_tokens: {
        "model": MODEL, "n": 2, "q": np.ones(3), "rng": RNG, "temperature": 1.0, "level": 1.0,
    },
    dense_features: {"model": MODEL, "n": 2, "d": 3, "rng": RNG, "temperature": 1.0, "cos": 0.5},
    LAW.sample: {"n": 2, "d": 3, "rng": RNG},
    LAW.scores: {"w": [1.0, 2.0], "b": 0.0},
    SHARP.scores: {"w": [1.0, 2.0], "b": 0.0, "rng": RNG},
    vectorized(MODEL).scores: {"w": np.ones(20), "b": 0.0},
    error_rate: {"law": SHARP, "w": [1.0, 2.0], "b": 0.0, "rng": RNG},
    fit_readout: {"F": F, "y": Y, "lam": 0.1, **FIT},
    simulate_readout: {"law": LAW, "d": 5, "alpha": 2.0, "lam": 0.1, "rng": RNG, **FIT},
    predict_readout: {"law": LAW, "alpha": 2.0, "lam": 0.1, **FIT},
    order_parameters: {"law": LAW, "alpha": 2.0, "lam": 0.1, **FIT},
    learning_curve: {"law": LAW, "alpha": [2.0], "lam": 0.1, **FIT},
    predict_capacity: {"law": LAW, "intercept": True},
    predict_capacity_width: {"law": LAW, "intercept": True},
    predict_margin: {"law": LAW, "alpha": 1.0, "intercept": True},
    fit_margin: {"F": np.eye(4), "y": [1, -1, 1, -1], "intercept": True},
    simulate_margin: {"law": LAW, "d": 40, "alpha": 0.5, "rng": RNG, "intercept": True},
    simulate_capacity: {"law": LAW, "d": 5, "rng": RNG, "intercept": True},
    simulate_repair: {"law": LAW, "n": 20, "rng": RNG},
    teacher: {"gamma": 1.0, "offset": 0.5, "link": "probit"},
    collapse_alpha: {"law": LAW},
    long_bag_error: {"model": MODEL, "temperature": 1.0, "cos": 0.5},
    long_bag_law: {"model": MODEL, "temperature": 1.0, "cos": 0.5},
    predict_long_bags: {"model": MODEL, "temperature": 1.0, "cos": 0.5},
    predict_contest: {"model": MODEL, "alpha0": 1.0, "alpha": 2.0, **CONTEST, "bits": 9},
    simulate_contest: {
        "model": TINY, "d": 20, "alpha0": 1.0, "alpha": 2.0, "rng": RNG, **CONTEST
    },
    crossing_law: {"model": MODEL, "temperature": 1.0},
    predict_crossing: {
        "model": MODEL, "temperature": 1.0, "alpha": 4.0, "lam": 0.1, "loss": "square"
    },
    sharpness_law: {"model": MODEL},
    separability: {"F": F, "y": Y, "intercept": True},
    oracle_error: {"kind": "elementwise", "model": MODEL, "phi": np.tanh, "noise": NOISE},
    predict_error: {"kind": "elementwise", "model": MODEL, "phi": np.tanh},
    critical_theta: {"L": 10, "criterion": "weight"},
    predict_learning: {"model": MODEL, "alpha": 1.0, "informed": True},
    all_solutions: {"model": MODEL, "alpha": 1.0},
    state_evolution: {"model": MODEL, "alpha": 1.0, "rounds": 2, "informed": False},
    samples_for: {"model": MODEL, "cos": 0.5},
    learning_thresholds: {"model": MODEL},
    bayes_error: {"model": MODEL, "strength": 2.0},
    simulate_learning: {
        "model": MODEL, "d": 5, "alpha": 1.0, "rng": RNG, "rounds": 2, "informed": False,
        "method": "exact", "fresh": 1000,
    },
    sample_noise: {"L": 10, "R": 1, "trials": 5, "rng": RNG, "method": "direct"},
    needle_weight: {"model": MODEL, "tau": 1.0, "noise": NOISE},
    required_theta: {"kind": "pooled", "L": 100, "error": 0.1, "R": 1, "pi": 0.5},
    sweep: {
        "function": lambda n, rng: 1.0, "grid": {"n": [1]}, "trials": 1, "seed": 0, "n_jobs": 1
    },
    imbalance: {"pi": 0.5, "loss": "square", "lr_b": 0.5},
    chance_cosines: {"model": TINY, "d": 20, "alpha0": 1.0, **STEPS},
    predict_chance: {"model": TINY, "d": 20, "alpha0": 1.0, **STEPS},
    predict_spread: {"model": TINY, "alpha0": 1.0, "balanced": True, **STEPS},
    predict_gap: {"model": TINY, "alpha0": 1.0, "balanced": True, **STEPS},
    sign_intercepts: {
        "model": MODEL, "alpha0": 1.0, "shares": [0.3], "loss": "square", "lr_w": 0.5,
        "balanced": False,
    },
    sign_condition: {
        "model": MODEL, "alpha0": 1.0, "loss": "hinge", "lr_w": 0.5, "balanced": False
    },
    calibrated_rate: {"pi": 0.5, "loss": "square"},
    calibrated_cosine: {"model": MODEL, "alpha0": 1.0},
    rate_window: {"model": MODEL, "alpha0": 1.0, "loss": "square", "lr_w": 0.5, "keep": 0.9},
    sample_signed: {"model": TINY, "n": 4, "d": 3, "rng": RNG},
    second_moment_cos: {"model": TINY, "alpha0": 1.0, "positives": True},
    second_moment_query: {"X": X4, "y": [1, -1] * 3, "positives": False},
    signed_error: {"L": 10, "theta": 3.0, "pi": 0.5, "heads": 2},
    scores: {"kind": "one layer", "parameters": np.ones(7), "X": X4},
    objective: {
        "kind": "one layer", "parameters": np.ones(7), "X": X4, "y": [1, -1] * 3, "lam": 0.1,
        "loss": "square",
    },
    train: {
        "kind": "one layer", "X": X4, "y": [1, -1] * 3, "lam": 0.1, "rng": RNG, "loss": "square",
        "start": 0.3, "starts": 1,
    },
    gated_weights: {"gates": [[0.5, 0.5]]},
    softmax_gates: {"u": [[0.5, 0.5]]},
    recurrence_error: {"model": TINY, "gate": "linear", "rng": RNG, "slope": 1.0, "trials": 8},
    detection_boundary: {"rule": "softmax", "beta": 0.7, "gamma": 0.1, "tau": 0.5},
    detection_exponent: {"rule": "bayes", "theta": 2.0, "R": 2, "gamma": 0.1},
    one_needle_bayes_error: {"L": 10, "theta": 2.0, "pi": 0.5, "points": 10},
    sample_haystack: {"L": 10, "R": 2, "trials": 5, "rng": RNG},
    haystack_error: {"kind": "attention", "theta": 1.0, "bags": BAGS, "pi": 0.5},
    haystack_theta: {"kind": "attention", "bags": BAGS, "error": 0.2},
    predict_haystack_error: {"L": 1000, "R": 10, "theta": 1.0, "pi": 0.5},
    judge: {"scores": SCORES, "false_alarms": 0.1},
    rescaled: {"temperature": 1.0, "L": 10, "new": 20, "rule": "log"},
    capture_height: {"temperature": 1.0, "L": 10},
    two_heights: {"model": MODEL, "new": 20, **HEAD, "sharpness": 1.0},
    two_height_sharpness: {"model": MODEL, "new": 20, **HEAD},
    value_cosine: {"L": 4, "theta_k": 2.0, "theta_v": 2.0, "alpha0": 1.0},
    sample_values: {"L": 4, "theta_k": 2.0, "theta_v": 2.0, "n": 3, "d": 5, "rng": RNG},
    span_cosine2: {"model": TINY, "directions": 2, "alpha": 1.0},
    queries_error: {"L": 4, "theta": 2.0, "directions": 3, "queries": 2, "pi": 0.3},
    sharpened: {
        "model": MODEL, "new": 20, **HEAD, "intercept": "keep", "resolution": 24, "bits": 8
    },
    subsampled: {"model": MODEL, "kept": 5, "temperature": 1.0, "cos": 0.9, "resolution": 24},
    longest_token_error: {"model": MODEL, "d": 5},
    sample_hops: {"m": 4, "n": 3, "rng": RNG, **HOPS},
    simulate_two_hops: {"m": 4, "n": 3, "rng": RNG, **HOPS},
    two_hop_error: {"m": 4, "query_cos": 0.9, "match_cos": 0.9, **HOPS},
    one_layer_bound: {"m": 4, "theta2": 2.0, "heads": 1},
    predict_relay: {"m": 4, "n": 30, **HOPS},
    simulate_relay: {"m": 4, "n": 30, "rng": RNG, "fresh": 3, **HOPS},
    simulate_guessing: {
        "model": TINY, "d": 5, "alpha": 1.0, "rng": RNG, "guesses": 1, "bags": 1, "rounds": 1,
        "fresh": 10,
    },
    predict_transfer: READOUTS,
    simulate_transfer: READOUTS | {"d": 5, "rng": RNG, "intercept": "keep"},
    recipes: {
        "model": TINY, "new": 8, "temperature": 1.0, "cos": 0.5, "alpha": 2.0, "lam": 0.1,
    },
    predict_noisy_alignment: {"model": TINY, "d": 10, "alpha0": 1.0, "directions": 1, **STEPS},
    sample_bags: {"model": TINY, "n": 4, "d": 3, "rng": RNG, "directions": 1},
    signal_directions: {"d": 4, "K": 2},
    whiten: {"X": X4, "y": [-1.0] * 6},
    heavy_error: {"L": 10, "theta": 3.0, "freedom": 4.0, "pi": 0.5},
    predict_training: {"model": TINY, "samples": [0.0], "tolerance": 0.1, **RATES},
    simulate_training: {
        "model": TINY, "d": 5, "samples": [0.2], "rng": RNG, "method": "exact", **RATES
    },
    simulate_descent: {
        "model": TINY, "d": 5, "alpha": 1.0, "steps": [1], "rng": RNG, "decay": 0.1,
        "lean": (0.1, 0.1), **RATES,
    },
    predict_descent: {
        "model": TINY, "alpha": 1.0, "steps": [1], "decay": 0.1, "lean": (0.1, 0.1), "bags": 60,
        "populations": 2, "seed": 0, "response": True, "d": 10**6, **RATES,
    },
    predict_two_heads: {
        "model": TINY, "alpha": 1.0, "steps": [1], "decay": 0.1, "lean": 0.1, "bags": 60,
        "populations": 2, "seed": 0, "start": 0.1, "loss": "square",
    },
    simulate_two_heads: {
        "model": TINY, "d": 5, "alpha": 1.0, "steps": [1], "rng": RNG, "decay": 0.1, "lean": 0.1,
        "start": 0.1, "loss": "square",
    },
    predict_reused_rounds: {
        "model": TINY, "alpha": 1.0, "rounds": 1, "kind": "repeat", "sharpness": 1.0, "bags": 60,
        "populations": 2, "seed": 0,
    },
    predict_rounds_readout: {
        "model": TINY, "alpha": 1.0, "lam": 0.1, "rounds": 1, "kind": "repeat", "sharpness": 1.0,
        "temperature": 1.0, "loss": "square", "bags": 100, "populations": 2, "seed": 0,
    },
    predict_reused_capacity: {"model": TINY, "temperature": 1.0, **STEPS},
    predict_reused_capacity_width: {
        "model": TINY, "temperature": 1.0, "d": 40, "draws": 40, "seed": 0, **STEPS
    },
    simulate_reused_repair: {
        "model": TINY, "d": 8, "alpha": 1.0, "rng": RNG, "temperature": 1.0, **STEPS
    },
    simulate_reused_separable: {
        "model": TINY, "d": 5, "alpha": 1.0, "rng": RNG, "temperature": 1.0, "fresh": True, **STEPS
    },
    predict_rounds: {
        "model": TINY, "alpha": 1.0, "rounds": 1, "kind": "repeat", "sharpness": 1.0
    },
    simulate_rounds: {
        "model": TINY, "d": 40, "alpha": 1.0, "rounds": 1, "rng": RNG, "kind": "repeat",
        "sharpness": 1.0, "fresh": True,
    },
    simulate_reuse: {
        "model": TINY, "d": 8, "alpha": 2.0, "lam": 0.1, "rng": RNG, "temperature": 1.0,
        "fresh": True, **STEPS,
    },
    predict_reuse: {
        "model": TINY, "alpha": 2.0, "lam": 0.1, "temperature": 1.0, "withheld": True, **STEPS
    },
    reuse_scores: {"model": TINY, "alpha": 2.0, "lam": 0.1, "temperature": 1.0, **STEPS},
    training_law: {"model": TINY, "alpha": 2.0, "temperature": 1.0, "seen": True, **STEPS},
    gaussian_nodes: {"mean": 0.0, "sd": 1.0},
    extrapolate: {"sizes": [10, 20], "simulations": [[1.0, 2.0], [1.0, 3.0]]},
    partial(agree, 0.0, RNG.normal(size=20)): {"claim": "a-b", "exact": 10.0, "false_alarm": 0.1},
}  # fmt: skip
NEVER = [object(), np.nan, 1j, {"no": 1}, "NO", np.array(["NO"])]
OPTIONAL = [
    (predict_readout, "start"), (critical_theta, "tau"), (oracle_error, "tau"),
    (predict_error, "tau"), (attention, "resolution"), (learned_attention, "resolution"),
    (detection_boundary, "tau"), (detection_exponent, "R"),
    *((f, "d") for f in (predict_learning, learning_thresholds, all_solutions, state_evolution)),
    (samples_for, "d"), (sharpened, "resolution"), (subsampled, "resolution"),
    (two_heights, "sharpness"),
    (simulate_learning, "height"), (simulate_descent, "lean"),
    (predict_rounds_readout, "temperature"), (predict_descent, "bags"), (predict_descent, "d"),
    (predict_contest, "cos"), (predict_contest, "resolution"), (simulate_contest, "cos"),
]  # fmt: skip
ROWS = list(dict.fromkeys([(f, name) for f, good in GOOD.items() for name in good] + OPTIONAL))


@pytest.mark.parametrize(
    ("call", "name"),
    ROWS,
    ids=[f"{getattr(call, '__qualname__', 'agree')}-{name}" for call, name in ROWS],
)
def test_what_cannot_be_meant_is_refused_by_name(call, name):
    told = inspect.signature(call).parameters
    assert name in told or ("steps" in told and name in StepOptions.__annotations__)
    call(**GOOD[call])
    may_be_none = (call, name) in OPTIONAL or name in ("noise", "exact")
    for bad in NEVER + [None] * (not may_be_none):
        with pytest.raises(ValueError, match=rf"^{re.escape(name)}\b(?s:.)*(is|are) not allowed"):
            call(**{**GOOD[call], name: bad})


BESIDE = {  # rooms and modules whose own tests show what they refuse
    *("needle.bags", "needle.trials", "needle.kit.checks", "needle.kit.records"),
    *("needle.planning.planner", "needle.planning.answer", "needle.planning.printed"),
    "needle.planning.curve",
    "needle.readout.pipeline",
}
INNER = {
    *("in_one_thread", "in_one_thread_below", "normal_grid", "sobol", "transferred"),
    *(
        "alignment_of",
        "indicator_length",
        "step_rule",
        "mean_pulls",
        "block_length",
        "take_steps",
        "check_model",
    ),
    *("subset_weights", "fresh_error", "solve_readout", "margin_rows", "least_repair", "prepared"),
    *("squared_repair", "signed_rows", "one", "two_gaussians", "largest_token"),
    *("minimum", "best_threshold", "cross_fit", "standard_error", "averaged", "pool", "race"),
    *("log_subsets", "bayes_rates", "softmax_sums", "merge", "reuse_path", "retune"),
    *("cells", "corners", "settle", "sloped", "downhill", "lowest"),
    *("hinge_envelope", "support_vectors", "full_pulls", "misread_parts", "rare_mean"),
    *("group_widths", "falling_from"),
    *("predicted_scores", "proximal_curve", "solve", "gradient", "falling_points"),
    *("sample_cloud", "frame_of", "bags", "products", "normal_rule", "drift", "flow_error"),
    *(
        "bayes_risk",
        "soft_risk",
        "log_integral",
        "in_blocks",
        "log1p",
        "mean_exp",
        "log_ratio",
        "soft_average",
        "check_noise",
        "sampled_error",
        "drawn_error",
        "excess_risk",
        "log_symmetric",
        "log_mean_verdict",
        "excess_weight",
        "sample_straws",
    ),
    *("log_between", "log_mean", "record", "check_rule"),
    *("look_again", "learn_with_norms", "error_with_norms", "two_layers"),
    *(
        "descend",
        "slope",
        "cosine",
        "draw_tokens",
        "in_populations",
        "means_of",
        "check_steps",
        "check_rule",
        "readout_on",
        "solve_seen",
        "equations",
        "newton",
        "two_step_features",
        "get_loss",
    ),  # get_loss speaks of the `loss` of its callers
    *("log_excess", "moved_by_accident", "with_accidents"),
    *("dials", "head_at", "trained_head", "checked", "gains"),
}


def test_no_public_function_is_left_out():
    listed = {getattr(call, "__name__", "agree") for call in GOOD}
    found = {}
    for info in pkgutil.walk_packages(needle.__path__, "needle."):
        beside = any(info.name == b or info.name.startswith(f"{b}.") for b in BESIDE)
        if info.ispkg or beside or info.name.rpartition(".")[2].startswith("_"):
            continue
        for name, value in vars(importlib.import_module(info.name)).items():
            home = getattr(value, "__module__", "") == info.name
            if inspect.isfunction(value) and home and not name.startswith("_"):
                found.setdefault(name, info.name)
    assert {name: found[name] for name in set(found) - listed - INNER} == {}
    assert set(found) >= INNER
