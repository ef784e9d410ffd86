"""The scorer of one bag outside this library: in a few lines of NumPy or PyTorch, or as ONNX.

With the vectors of `needle.bags.scorer`: score = Σ_ℓ softmax(⟨q′, x⟩)_ℓ ⟨c, x_ℓ⟩ + b′.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
OPSET, IR = 13, 8  # of 2021: read by every runtime since
CODE = {
    "numpy": """import numpy as np
def score(X):  # X: the tokens of one bag (L, {d})
    a = np.exp(X @ query - np.max(X @ query))
    return a @ (X @ coef) / a.sum() + offset""",
    "torch": """import torch
def score(X):  # X: the tokens of one bag (L, {d}), a tensor of doubles
    a = torch.softmax(X @ torch.as_tensor(query), dim=0)
    return a @ (X @ torch.as_tensor(coef)) + offset""",
}


def write_onnx(query: Array, coef: Array, offset: Array, path: str | Path) -> None:
    """Six nodes: two products, a softmax over the tokens, a product, a sum, an offset."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ModuleNotFoundError as error:
        raise ValueError(
            f"path = {str(path)!r}: ONNX needs the package onnx (pip install onnx); "
            'or take the lines of code("numpy")'
        ) from error
    constants: dict[str, Any] = {
        "query": query.T, "coef": coef.T, "offset": offset, "tokens_axis": np.array([0])
    }  # fmt: skip
    nodes = [
        helper.make_node("MatMul", ["tokens", "query"], ["heights"]),
        helper.make_node("Softmax", ["heights"], ["attention"], axis=0),
        helper.make_node("MatMul", ["tokens", "coef"], ["values"]),
        helper.make_node("Mul", ["attention", "values"], ["parts"]),
        helper.make_node("ReduceSum", ["parts", "tokens_axis"], ["sum"], keepdims=0),
        helper.make_node("Add", ["sum", "offset"], ["score"]),
    ]
    k, d = query.shape
    graph = helper.make_graph(
        nodes, "needle",
        [helper.make_tensor_value_info("tokens", TensorProto.DOUBLE, ["L", d])],
        [helper.make_tensor_value_info("score", TensorProto.DOUBLE, [k])],
        [numpy_helper.from_array(np.ascontiguousarray(x), name) for name, x in constants.items()],
    )  # fmt: skip
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="needle"
    )
    onnx.checker.check_model(model)
    Path(path).write_bytes(model.SerializeToString())
