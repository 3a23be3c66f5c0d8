// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Constant tensors, as far as attention programs need PyTorch's: shapes, views, type promotion, element-wise
// operations, reductions and the constructors of index tables. Errors are BadInput without a place (the caller knows
// it). Results are new tensors of the heap; views share storage.

#include <optional>
#include <span>

#include "engine/language/values/captured_tensor.h"
#include "engine/language/values/values.h"
#include "kernels/program/program_fold.h"

namespace vitrine::engine {

using TensorDims = std::vector<std::int64_t>;

kernels::ProgramType programTypeOf(kernels::DType dtype);
bool isRealDtype(kernels::DType dtype);
/// PyTorch's promotion of two tensors with dimensions.
kernels::DType promoted(kernels::DType a, kernels::DType b);

/// Zeros. Throws for negative or too many elements.
PyTensor* newTensor(PyHeap& heap, kernels::DType dtype, TensorDims dims);
PyTensor* scalarTensor(PyHeap& heap, kernels::DType dtype, const kernels::ProgramConstant& value);
kernels::ProgramConstant elementAt(const PyTensor& tensor, std::int64_t storageIndex);
void setElement(PyTensor& tensor, std::int64_t storageIndex, const kernels::ProgramConstant& value);
/// Throws when the contents are not known.
void needContents(const PyTensor& tensor);
/// All elements, row-major. Throws when the contents are not known.
std::vector<kernels::ProgramConstant> elementsOf(const PyTensor& tensor);
std::vector<std::int64_t> integersOf(const PyTensor& tensor);
/// Storage indices of all elements, row-major.
std::vector<std::int64_t> offsetsOf(const PyTensor& tensor);
PyTensor* fromElements(PyHeap& heap, kernels::DType dtype, TensorDims dims,
                       std::span<const kernels::ProgramConstant> elements);
PyTensor* fromIntegers(PyHeap& heap, kernels::DType dtype, std::span<const std::int64_t> values);

/// A tensor, or a Python number, which takes the other's type.
struct TensorOperand {
    const PyTensor* tensor = nullptr;
    kernels::ProgramConstant number;
};
TensorDims broadcastDims(const TensorDims& a, const TensorDims& b);
kernels::DType promotedOperands(std::span<const TensorOperand> operands);
PyTensor* elementwise(PyHeap& heap, kernels::ProgramOp op, const TensorOperand& a, const TensorOperand& b);
PyTensor* elementwise(PyHeap& heap, kernels::ProgramOp op, const PyTensor& a);
PyTensor* whereTensor(PyHeap& heap, const PyTensor& condition, const TensorOperand& a, const TensorOperand& b);
PyTensor* castTensor(PyHeap& heap, const PyTensor& tensor, kernels::DType dtype);
/// Writes `value`, broadcast, through the view.
void assignTensor(PyTensor& target, const TensorOperand& value);

// Views.
PyTensor* viewOf(PyHeap& heap, const PyTensor& tensor);
PyTensor* reshapeTensor(PyHeap& heap, const PyTensor& tensor, TensorDims dims);
PyTensor* permuteTensor(PyHeap& heap, const PyTensor& tensor, const TensorDims& order);
PyTensor* expandTensor(PyHeap& heap, const PyTensor& tensor, const TensorDims& dims);
PyTensor* diagonalTensor(PyHeap& heap, const PyTensor& tensor, std::int64_t offset, int dim1, int dim2);
PyTensor* selectTensor(PyHeap& heap, const PyTensor& tensor, int dim, std::int64_t index);
PyTensor* sliceTensor(PyHeap& heap, const PyTensor& tensor, int dim, std::int64_t start, std::int64_t step,
                      std::int64_t count);
PyTensor* unsqueezeTensor(PyHeap& heap, const PyTensor& tensor, int dim);
PyTensor* squeezeTensor(PyHeap& heap, const PyTensor& tensor, std::optional<int> dim);
/// -rank .. rank - 1 to 0 .. rank - 1.
int wrappedDim(std::int64_t dim, int rank);

enum class TensorReduction : std::uint8_t { Sum, Prod, Min, Max, Any, All, Mean, ArgMin, ArgMax };
PyTensor* reduceTensor(PyHeap& heap, TensorReduction how, const PyTensor& tensor, std::optional<int> dim, bool keep);
enum class TensorScan : std::uint8_t { Sum, Prod, Max, Min };
PyTensor* scanTensor(PyHeap& heap, TensorScan how, const PyTensor& tensor, int dim);

// Tables.
PyTensor* catTensors(PyHeap& heap, std::span<const PyTensor* const> tensors, int dim);
PyTensor* repeatInterleave(PyHeap& heap, const PyTensor& tensor, const PyTensor& repeats, std::optional<int> dim);
struct UniqueTensor {
    PyTensor *values, *inverse, *counts;
};
UniqueTensor uniqueTensor(PyHeap& heap, const PyTensor& tensor, bool sorted);
PyTensor* searchSorted(PyHeap& heap, const PyTensor& sorted, const PyTensor& values, bool right);
PyTensor* binCount(PyHeap& heap, const PyTensor& tensor, std::int64_t minLength);
/// Values and positions along `dim`; stable.
std::pair<PyTensor*, PyTensor*> sortTensor(PyHeap& heap, const PyTensor& tensor, int dim, bool descending);
PyTensor* nonzeroTensor(PyHeap& heap, const PyTensor& tensor);
/// Elements of dimension 0.. picked by index tensors of one broadcast shape, which stand for the first dimensions.
PyTensor* gatherTensor(PyHeap& heap, const PyTensor& tensor, std::span<const PyTensor* const> indices);
PyTensor* repeatTensor(PyHeap& heap, const PyTensor& tensor, const TensorDims& times);
PyTensor* triangle(PyHeap& heap, const PyTensor& tensor, std::int64_t diagonal, bool upper);

/// Contents as bytes of `dtype`, row-major; null when they are not known.
std::shared_ptr<const std::vector<std::byte>> bytesOfTensor(const PyTensor& tensor);
PyTensor* tensorOfCapture(PyHeap& heap, const CapturedTensor& captured);

} // namespace vitrine::engine
