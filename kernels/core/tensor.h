// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tensor views: a pointer, a type, a shape. A view owns nothing; on Meta the pointer is a virtual address that nobody reads.

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

/// Row-major and contiguous but for the outermost stride: `rowStride` elements lie between neighbours of dimension 0
/// (a column slice of a wider matrix, say q inside a fused qkv). 0 rowStride means contiguous.
struct TensorView {
    void* data = nullptr;
    DType dtype = DType::None;
    Shape shape;
    std::int64_t rowStride = 0;

    bool empty() const { return data == nullptr; }
    std::int64_t stride0() const; ///< rowStride, or the contiguous one
    std::uint64_t bytes() const;  ///< of a contiguous tensor of this shape
    template <class T> T* as() const { return static_cast<T*>(data); }
};

/// Rows [begin, end) of dimension 0.
TensorView sliceRows(const TensorView& tensor, std::int64_t begin, std::int64_t end);

/// The same contiguous bytes under another shape of the same count.
TensorView reshaped(const TensorView& tensor, const Shape& shape);

/// An MXFP4 matrix (or a stack of them): `blocks` U8 (..., rows, groups, 16), low nibble first, 32 elements a group along
/// the contracted axis; `scales` U8 (..., rows, groups), value 2^(s - 127). OCP Microscaling formats 1.0.
struct Mxfp4View {
    TensorView blocks;
    TensorView scales;
};

/// What a Linear multiplies by: exactly one of dense (rows out, columns in) or mxfp4 is set. Later: int4, nf4.
/// `transposed` dense weights are stored (in, out), as gpt-oss BF16 experts are.
struct WeightView {
    TensorView dense;
    Mxfp4View mxfp4;
    bool transposed = false;

    bool quantized() const { return dense.empty(); }
    std::int64_t outFeatures() const;
    std::int64_t inFeatures() const;
    std::int64_t experts() const; ///< leading dimension of a stack, 1 for a single matrix
    std::uint64_t bytes() const;
};

} // namespace vitrine::kernels
