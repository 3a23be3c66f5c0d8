// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of few rows with one BF16 matrix on a GPU: the weight streams once, near the rate of memory. What the fused
// kernels of few tokens (kernels/ops/fused/decode_cuda.h) share with them stands here too.

#include <algorithm>
#include <array>

#include "kernels/device/abi/gemv.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/linear_view.h"

namespace vitrine::kernels {

/// A few rows of x times a matrix, with what may be fused around it.
struct FewRowsProduct {
    TensorView x;
    TensorView gather; ///< I32: which rows of x, or empty: all
    NormWeights norm;
    LinearView linear;
    TensorView residual; ///< or empty
    TensorView out;
    float softCap = 0;
};
/// Launches and says true, or does nothing and says false when shapes, types, alignment or the kernel packs do not
/// allow it.
bool multiplyFewRows(CudaContext& context, const FewRowsProduct& product);

/// A plain matrix whose rows follow each other.
inline bool packedMatrix(const WeightView& weight) {
    return !weight.empty() && !weight.quantized() && !weight.transposed && weight.shape.rank() == 2 &&
           startsAligned(weight.data) && weight.data.stride0() == weight.shape[1];
}

/// Where kernels of several formats find a weight: its format follows from the pointers that are set.
struct WeightPointers {
    explicit WeightPointers(const WeightView& weight)
        : dense(weight.quantized() ? nullptr : weight.data.data),
          packed(weight.quantized() ? weight.data.data : nullptr), scales(weight.scales.data) {}

    const void* dense;  ///< null for packed weights
    const void* packed; ///< null for dense weights
    const void* scales; ///< of packed weights
};

/// VT_FORM: RmsNormOrder, or 3 for no norm.
inline std::int64_t formOf(const NormWeights& norm) {
    constexpr std::int64_t kNoNorm = 3;
    return norm.weight.empty() ? kNoNorm : static_cast<std::int64_t>(norm.form);
}

abi::GemvParams gemvParameters(const FewRowsProduct& product);

/// What every kernel of such a product is chosen and specialised by, followed by a kernel's own variables.
template <std::size_t Own>
std::array<KernelVariable, 10 + Own> gemvVariables(const FewRowsProduct& product, const KernelVariable (&own)[Own]) {
    const TensorView& weight = product.linear.weight.data;
    std::array<KernelVariable, 10 + Own> variables{
        {{"x_dtype", dtypeNumber(product.x)},
         {"w_dtype", dtypeNumber(weight)},
         {"norm_dtype", dtypeOrBf16(product.norm.weight)},
         {"bias_dtype", dtypeOrBf16(product.linear.bias)},
         {"residual_dtype", dtypeOrBf16(product.residual)},
         {"out_dtype", dtypeNumber(product.out)},
         {"form", formOf(product.norm)},
         {"dim", weight.shape[1]},
         {"out", weight.shape[0]},
         {"aligned", rowsAligned(product.x) && startsAligned(product.norm.weight) ? 1 : 0}}};
    std::copy(std::begin(own), std::end(own), variables.begin() + 10);
    return variables;
}

inline constexpr std::int64_t kMaxStreamRows = 16; ///< rows that weight_stream.cuh takes

/// How weight_stream.cuh lays out shared memory: as many slots as fit beside the sums and the rows of x.
struct StreamLayout {
    std::int64_t tokens = 1; ///< a kernel for one row and one for each tile of rows serve all batches
    std::int64_t slots = 0, slotRows = 4, sharedBytes = 0;

    StreamLayout(std::int64_t dim, std::int64_t rows, std::int64_t limit);
};

} // namespace vitrine::kernels
