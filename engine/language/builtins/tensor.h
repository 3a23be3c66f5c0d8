// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Constant tensors, as far as attention programs need PyTorch's: shapes, views, type promotion, element-wise operations,
// reductions and the constructors of index tables. Errors are BadInput without a place (the caller knows it).
// Results are new tensors of the heap; views share storage.

#include <optional>
#include <span>

#include "engine/language/evaluate/values.h"
#include "kernels/program/program_fold.h"

namespace vitrine::engine {

using ModDims = std::vector<std::int64_t>;

kernels::ProgramType programTypeOf(kernels::DType dtype);
bool isRealDtype(kernels::DType dtype);
/// PyTorch's promotion of two tensors with dimensions.
kernels::DType promoted(kernels::DType a, kernels::DType b);

/// Zeros. Throws for negative or too many elements.
ModTensor* newTensor(ModHeap& heap, kernels::DType dtype, ModDims dims);
ModTensor* scalarTensor(ModHeap& heap, kernels::DType dtype, const kernels::ProgramConstant& value);
kernels::ProgramConstant elementAt(const ModTensor& tensor, std::int64_t storageIndex);
void setElement(ModTensor& tensor, std::int64_t storageIndex, const kernels::ProgramConstant& value);
/// Throws when the contents are not known.
void needContents(const ModTensor& tensor);
/// All elements, row-major. Throws when the contents are not known.
std::vector<kernels::ProgramConstant> elementsOf(const ModTensor& tensor);
std::vector<std::int64_t> integersOf(const ModTensor& tensor);
/// Storage indices of all elements, row-major.
std::vector<std::int64_t> offsetsOf(const ModTensor& tensor);
ModTensor* fromElements(ModHeap& heap, kernels::DType dtype, ModDims dims,
                        std::span<const kernels::ProgramConstant> elements);
ModTensor* fromIntegers(ModHeap& heap, kernels::DType dtype, std::span<const std::int64_t> values);

/// A tensor, or a Python number, which takes the other's type.
struct ModOperand {
    const ModTensor* tensor = nullptr;
    kernels::ProgramConstant number;
};
ModDims broadcastDims(const ModDims& a, const ModDims& b);
kernels::DType promotedOperands(std::span<const ModOperand> operands);
ModTensor* elementwise(ModHeap& heap, kernels::ProgramOp op, const ModOperand& a, const ModOperand& b);
ModTensor* elementwise(ModHeap& heap, kernels::ProgramOp op, const ModTensor& a);
ModTensor* whereTensor(ModHeap& heap, const ModTensor& condition, const ModOperand& a, const ModOperand& b);
ModTensor* castTensor(ModHeap& heap, const ModTensor& tensor, kernels::DType dtype);
/// Writes `value`, broadcast, through the view.
void assignTensor(ModTensor& target, const ModOperand& value);

// Views.
ModTensor* viewOf(ModHeap& heap, const ModTensor& tensor);
ModTensor* reshapeTensor(ModHeap& heap, const ModTensor& tensor, ModDims dims);
ModTensor* permuteTensor(ModHeap& heap, const ModTensor& tensor, const ModDims& order);
ModTensor* expandTensor(ModHeap& heap, const ModTensor& tensor, const ModDims& dims);
ModTensor* diagonalTensor(ModHeap& heap, const ModTensor& tensor, std::int64_t offset, int dim1, int dim2);
ModTensor* selectTensor(ModHeap& heap, const ModTensor& tensor, int dim, std::int64_t index);
ModTensor* sliceTensor(ModHeap& heap, const ModTensor& tensor, int dim, std::int64_t start, std::int64_t step,
                       std::int64_t count);
ModTensor* unsqueezeTensor(ModHeap& heap, const ModTensor& tensor, int dim);
ModTensor* squeezeTensor(ModHeap& heap, const ModTensor& tensor, std::optional<int> dim);
/// -rank .. rank - 1 to 0 .. rank - 1.
int wrappedDim(std::int64_t dim, int rank);

enum class ModReduction : std::uint8_t { Sum, Prod, Min, Max, Any, All, Mean, ArgMin, ArgMax };
ModTensor* reduceTensor(ModHeap& heap, ModReduction how, const ModTensor& tensor, std::optional<int> dim, bool keep);
enum class ModScan : std::uint8_t { Sum, Prod, Max, Min };
ModTensor* scanTensor(ModHeap& heap, ModScan how, const ModTensor& tensor, int dim);

// Tables.
ModTensor* catTensors(ModHeap& heap, std::span<const ModTensor* const> tensors, int dim);
ModTensor* repeatInterleave(ModHeap& heap, const ModTensor& tensor, const ModTensor& repeats, std::optional<int> dim);
struct ModUnique {
    ModTensor *values, *inverse, *counts;
};
ModUnique uniqueTensor(ModHeap& heap, const ModTensor& tensor, bool sorted);
ModTensor* searchSorted(ModHeap& heap, const ModTensor& sorted, const ModTensor& values, bool right);
ModTensor* binCount(ModHeap& heap, const ModTensor& tensor, std::int64_t minLength);
/// Values and positions along `dim`; stable.
std::pair<ModTensor*, ModTensor*> sortTensor(ModHeap& heap, const ModTensor& tensor, int dim, bool descending);
ModTensor* nonzeroTensor(ModHeap& heap, const ModTensor& tensor);
/// Elements of dimension 0.. picked by index tensors of one broadcast shape, which stand for the first dimensions.
ModTensor* gatherTensor(ModHeap& heap, const ModTensor& tensor, std::span<const ModTensor* const> indices);
ModTensor* repeatTensor(ModHeap& heap, const ModTensor& tensor, const ModDims& times);
ModTensor* triangle(ModHeap& heap, const ModTensor& tensor, std::int64_t diagonal, bool upper);

/// Contents as bytes of `dtype`, row-major; null when they are not known.
std::shared_ptr<const std::vector<std::byte>> bytesOfTensor(const ModTensor& tensor);
ModTensor* tensorOfCapture(ModHeap& heap, const CapturedTensor& captured);

} // namespace vitrine::engine
