// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the check functions of ops share: each rule throws base::Internal "OP: FIELD: what is wrong".
// A tensor without elements (zero rows) may have a null address.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "kernels/core/tensor.h"

namespace vitrine::kernels {

struct BoundProgram;

class OpCheck {
public:
    static constexpr std::int64_t kAny = -1; ///< in `shape`: this dimension may be anything

    explicit OpCheck(std::string_view op) : op_(op) {}

    [[noreturn]] void fail(std::string_view field, const std::string& what) const;
    void require(bool holds, std::string_view field, std::string_view what) const;

    void present(const TensorView& tensor, std::string_view field) const;
    /// Present, of this rank, with these dimensions.
    void shape(const TensorView& tensor, std::string_view field, std::initializer_list<std::int64_t> dims) const;
    void dtype(const TensorView& tensor, std::string_view field, DType expected) const;
    void floating(const TensorView& tensor, std::string_view field) const;     ///< F32, BF16, F16 or F64
    void wideFloating(const TensorView& tensor, std::string_view field) const; ///< F32 or F64
    void contiguous(const TensorView& tensor, std::string_view field) const;
    void rowsContiguous(const TensorView& tensor, std::string_view field) const; ///< stride 0 not below a row's size
    /// A matrix of floats of this shape, whose rows may have a stride.
    void matrix(const TensorView& tensor, std::string_view field, std::int64_t rows, std::int64_t columns) const;
    /// Elements of the last dimension are neighbours; the others may have any strides.
    void lastContiguous(const TensorView& tensor, std::string_view field) const;
    /// The two share no byte.
    void disjoint(const TensorView& a, std::string_view fieldA, const TensorView& b, std::string_view fieldB) const;
    /// The two are the same memory with the same strides and dtype, or share no byte.
    void sameOrDisjoint(const TensorView& a, std::string_view fieldA, const TensorView& b,
                        std::string_view fieldB) const;
    void scratch(const TensorView& tensor, std::uint64_t bytes) const;
    /// The fields "score" and "mask", where given: what they give and what they capture.
    void programs(const BoundProgram& score, const BoundProgram& mask) const;

private:
    std::string_view op_;
};

/// Bytes from the first to the last element of a view, gaps between rows included.
std::uint64_t extentBytes(const TensorView& tensor);

} // namespace vitrine::kernels
