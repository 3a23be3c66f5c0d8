// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Values as nodes of the program: constants, loads of captured tensors, small arrays of nodes. Programs compute in 32
// bits what tensors of 8 and 16 bits hold; results wrap as PyTorch's.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/language/evaluate/evaluation.h"
#include "engine/language/values/tensor.h"

namespace vitrine::engine {

/// A tensor, symbol, row or array.
bool isTensorLike(PyValue value);
/// Of a tensor, row or array; a symbol and whatever else has none.
TensorDims dimsOf(PyValue value);
/// The dtype itself if it has 8 or 16 bits; None for others.
kernels::DType narrowed(kernels::DType dtype);

class SymbolicTensors {
public:
    explicit SymbolicTensors(Evaluation& evaluation) : evaluation_(evaluation) {}

    kernels::DType dtypeOf(PyValue value);
    /// The integer dtype of 8 or 16 bits that values have together; None when it is another.
    kernels::DType narrowOf(std::span<const PyValue> values);

    NodeIndex node(PyValue value); ///< a number, symbol or tensor of rank 0 as a node
    NodeIndex tensorNode(PyTensor& tensor);
    NodeIndex load(PyTensor& tensor, std::vector<NodeIndex> indices);
    /// The part of a tensor at leading indices: a symbol when it is one element.
    PyValue row(PyTensor& tensor, std::vector<NodeIndex> indices);
    /// Symbols of a value as an array (row-major); BadInput when there are more than 1024.
    PyArray* array(PyValue value);
    PyValue fromArray(PyArray* array); ///< a symbol when it has no dimensions
    /// `make` of the nodes of each element of the arrays' common shape.
    PyValue broadcast(std::span<const PyValue> values,
                      const std::function<NodeIndex(std::span<const NodeIndex>)>& make);

    bool needsArray(std::span<const PyValue> values);  ///< an operation on them makes an array
    bool needsSymbol(std::span<const PyValue> values); ///< an operation on them makes a node

    NodeIndex wrapped(kernels::DType narrow, NodeIndex value);
    NodeIndex fitted(kernels::ProgramOp op, kernels::DType narrow,
                     NodeIndex value);                    ///< wrapped where `op` may overflow
    PyValue marked(kernels::DType narrow, PyValue value); ///< remembers that it has 8 or 16 bits

    /// What the program captures, in its order.
    std::vector<CapturedTensor> captures(const kernels::Program& program) const;

private:
    NodeIndex constantNode(PyValue value);
    std::int32_t capture(PyTensor& tensor, const TensorDims& dims);

    Evaluation& evaluation_;
    std::map<std::string, PyTensor*, std::less<>> captured_; ///< by the name that the program uses
};

} // namespace vitrine::engine
