// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/common/op_check.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/program/attention_program.h"

namespace vitrine::kernels {

namespace {

std::uint64_t begin(const TensorView& tensor) {
    return reinterpret_cast<std::uint64_t>(tensor.data);
}

bool overlap(const TensorView& a, const TensorView& b) {
    const std::uint64_t bytesA = extentBytes(a);
    const std::uint64_t bytesB = extentBytes(b);
    if (a.empty() || b.empty() || bytesA == 0 || bytesB == 0) {
        return false;
    }
    return begin(a) < begin(b) + bytesB && begin(b) < begin(a) + bytesA;
}

std::string shapeText(std::initializer_list<std::int64_t> dims) {
    std::string text = "(";
    for (const std::int64_t dim : dims) {
        text += text.size() > 1 ? ", " : "";
        text += dim == OpCheck::kAny ? "any" : std::to_string(dim);
    }
    return text + ")";
}

} // namespace

std::uint64_t extentBytes(const TensorView& tensor) {
    if (tensor.shape.count() == 0) {
        return 0;
    }
    if (tensor.contiguous()) {
        return tensor.bytes();
    }
    std::int64_t last = 0; // element
    for (int dim = 0; dim < tensor.shape.rank(); ++dim) {
        last += (tensor.shape[dim] - 1) * tensor.stride(dim);
    }
    return bytesOf(tensor.dtype, last + 1);
}

void OpCheck::fail(std::string_view field, const std::string& what) const {
    throw base::Internal(fmt::format("{}: {}: {}", op_, field, what));
}

void OpCheck::require(bool holds, std::string_view field, std::string_view what) const {
    if (!holds) {
        fail(field, std::string(what));
    }
}

void OpCheck::present(const TensorView& tensor, std::string_view field) const {
    if (tensor.empty() && tensor.shape.count() != 0) {
        fail(field, "missing");
    }
}

void OpCheck::shape(const TensorView& tensor, std::string_view field, std::initializer_list<std::int64_t> dims) const {
    bool same = tensor.shape.rank() == static_cast<int>(dims.size());
    int index = 0;
    for (const std::int64_t dim : dims) {
        same = same && (dim == kAny || tensor.shape[index] == dim);
        ++index;
    }
    if (!same) {
        fail(field, fmt::format("shape {} where {} is needed", tensor.shape.text(), shapeText(dims)));
    }
    present(tensor, field);
}

void OpCheck::dtype(const TensorView& tensor, std::string_view field, DType expected) const {
    if (tensor.dtype != expected) {
        fail(field, fmt::format("dtype {} where {} is needed", dtypeName(tensor.dtype), dtypeName(expected)));
    }
}

void OpCheck::programs(const BoundProgram& score, const BoundProgram& mask) const {
    if (!score.empty()) {
        require(score.program->type() == ProgramType::Float, "score", "the program gives no float");
        checkCaptures(*score.program, score.captures);
    }
    if (!mask.empty()) {
        require(mask.program->isMask(), "mask", "the program gives no boolean");
        checkCaptures(*mask.program, mask.captures);
    }
}

void OpCheck::floating(const TensorView& tensor, std::string_view field) const {
    switch (tensor.dtype) {
    case DType::F32:
    case DType::BF16:
    case DType::F16:
    case DType::F64:
        return;
    default:
        fail(field, fmt::format("dtype {} where a float type is needed", dtypeName(tensor.dtype)));
    }
}

void OpCheck::wideFloating(const TensorView& tensor, std::string_view field) const {
    if (tensor.dtype != DType::F32 && tensor.dtype != DType::F64) {
        fail(field, fmt::format("dtype {} where F32 or F64 is needed", dtypeName(tensor.dtype)));
    }
}

void OpCheck::contiguous(const TensorView& tensor, std::string_view field) const {
    if (tensor.shape.count() != 0 && !tensor.contiguous()) {
        fail(field, fmt::format("row stride {} where contiguous rows are needed", tensor.stride0()));
    }
}

void OpCheck::rowsContiguous(const TensorView& tensor, std::string_view field) const {
    if (tensor.shape.count() == 0 || tensor.contiguous()) {
        return;
    }
    TensorView row = tensor;
    row.strides[0] = 0;
    if (!row.contiguous()) {
        fail(field, "elements of a row lie apart where contiguous rows are needed");
    }
    if (tensor.shape[0] > 1 && tensor.stride0() < row.stride0()) {
        fail(field, fmt::format("row stride {} is shorter than a row", tensor.stride0()));
    }
}

void OpCheck::matrix(const TensorView& tensor, std::string_view field, std::int64_t rows, std::int64_t columns) const {
    shape(tensor, field, {rows, columns});
    floating(tensor, field);
    rowsContiguous(tensor, field);
}

void OpCheck::lastContiguous(const TensorView& tensor, std::string_view field) const {
    const int last = tensor.shape.rank() - 1;
    if (last >= 0 && tensor.shape[last] > 1 && tensor.stride(last) != 1) {
        fail(field, fmt::format("elements of the last dimension lie {} apart where neighbours are needed",
                                tensor.stride(last)));
    }
}

void OpCheck::disjoint(const TensorView& a, std::string_view fieldA, const TensorView& b,
                       std::string_view fieldB) const {
    if (overlap(a, b)) {
        fail(fieldA, fmt::format("shares memory with {}", fieldB));
    }
}

void OpCheck::sameOrDisjoint(const TensorView& a, std::string_view fieldA, const TensorView& b,
                             std::string_view fieldB) const {
    const bool same = a.data == b.data && a.dtype == b.dtype && a.stride0() == b.stride0();
    if (!same && overlap(a, b)) {
        fail(fieldA, fmt::format("overlaps {} without being the same tensor", fieldB));
    }
}

void OpCheck::scratch(const TensorView& tensor, std::uint64_t bytes) const {
    if (bytes != 0 && (tensor.empty() || tensor.bytes() < bytes)) {
        fail("scratch", fmt::format("{} bytes where {} are needed", tensor.empty() ? 0 : tensor.bytes(), bytes));
    }
}

} // namespace vitrine::kernels
