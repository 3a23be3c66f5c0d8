// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tensor views: a pointer, a type, a shape. A view owns nothing; on Meta the pointer is a virtual address that nobody
// reads.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "kernels/core/dtype.h"

namespace vitrine::kernels {

inline constexpr int kMaxRank = 5;

/// Dimensions, outermost first. Rank 0 is a scalar.
class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<std::int64_t> dims);
    explicit Shape(std::span<const std::int64_t> dims);

    int rank() const { return rank_; }
    std::int64_t operator[](int dim) const { return dims_[static_cast<std::size_t>(dim)]; }
    std::int64_t count() const; ///< product of all dimensions; 1 for a scalar
    std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
    std::string text() const; ///< "(2, 24, 512)"
    friend bool operator==(const Shape&, const Shape&) = default;

private:
    std::array<std::int64_t, kMaxRank> dims_{};
    int rank_ = 0;
};

/// Elements between neighbours of each dimension, outermost first. 0: as many as a contiguous tensor has there.
using Strides = std::array<std::int64_t, kMaxRank>;

/// A tensor that is contiguous where no stride says otherwise. Most ops take contiguous tensors, or such whose rows lie
/// further apart (a column slice of a wider matrix, say q inside a fused qkv): only strides[0] is set then. Attention
/// takes any strides but that of the last dimension (headDim). Each op says what it takes.
struct TensorView {
    void* data = nullptr;
    DType dtype = DType::None;
    Shape shape;
    Strides strides{};

    bool empty() const { return data == nullptr; }
    std::int64_t stride(int dim) const; ///< elements between neighbours of that dimension
    std::int64_t stride0() const;       ///< of dimension 0; 0 for a scalar
    std::uint64_t bytes() const;        ///< of a contiguous tensor of this shape
    bool contiguous() const;            ///< dimensions of one element have no neighbours: their strides do not count
    template <class T> T* as() const { return static_cast<T*>(data); }
};

/// Elements [begin, end) of one dimension. Throws Internal when they are not all there.
TensorView slice(const TensorView& tensor, int dim, std::int64_t begin, std::int64_t end);

/// Rows [begin, end) of dimension 0.
TensorView sliceRows(const TensorView& tensor, std::int64_t begin, std::int64_t end);

/// The same bytes under another shape of the same count. Throws Internal unless the tensor is contiguous, or only its
/// rows lie apart and the new shape has as many of them.
TensorView reshaped(const TensorView& tensor, const Shape& shape);

/// (tokens, heads, headDim) as (1, heads, tokens, headDim): the layout of FlexAttention, without a copy.
TensorView headsFirst(const TensorView& tensor);

} // namespace vitrine::kernels
