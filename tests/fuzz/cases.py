"""All cases, and which names of `needle` need none."""

from __future__ import annotations

from . import beyond, learners, oracles, readouts, steps
from .case import Case

CASES: list[Case] = [*steps.CASES, *oracles.CASES, *readouts.CASES, *beyond.CASES, *learners.CASES]
ELSEWHERE = {  # what takes data, objects or a generator alone, and where its edges are tried
    "NeedleClassifier": "tests/bags",
    "estimate": "tests/bags",
    "report": "tests/bags",
    "SparseTokens": "every case with a model",
    "Estimate": "a record",
    "ConvergenceError": "an exception",
    "gaussian_nodes": "tests/kit",
    "get_loss": "every case with a loss",
    "sample_noise": "tests/data",
    "channel": "tests/learning",
    "error_rate": "tests/readout",
    "fit_readout": "tests/readout",
    "order_parameters": "predict_readout",
    "recipes": "rescaled and predict_transfer",
    "separability": "tests/readout",
    "simulate_capacity": "tests/readout",
    "simulate_reuse": "tests/readout",
    "sharpened": "predict_transfer, at several sharpnesses",
    "simulate_transfer": "tests/readout",
    "two_steps": "tests/steps",
    "sweep": "tests/trials",
}
