// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A weight as one value, in whatever format it is stored. kernels/formats/weight_formats.h lists the packed formats.

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// The numbers are those of kernels/device/abi/weight_format.h.
enum class WeightFormat : std::uint8_t {
    Dense = 0, ///< floats as they are
    Mxfp4 = 1, ///< OCP Microscaling formats 1.0, see kernels/formats/mxfp4_format.h
    Nf4 = 2,   ///< 4-bit NormalFloat, see kernels/formats/nf4_format.h
    Int4 = 3,  ///< 4-bit integers, see kernels/formats/integer_format.h
    Int8 = 4,  ///< 8-bit integers, see kernels/formats/integer_format.h
    Fp8 = 5,   ///< E4M3 floats, see kernels/formats/fp8_format.h
    Q4K = 6,   ///< blocks of GGUF files, see kernels/formats/k_quant_format.h
    Q6K = 7,   ///< the same
    Q41 = 8,   ///< the same
    Q51 = 9,   ///< the same
    Q5K = 10,  ///< the same
};

/// A format as the expressions of kernel manifests name it.
struct WeightFormatName {
    std::string_view name; ///< "MXFP4"
    WeightFormat format;
};
std::span<const WeightFormatName> weightFormatNames();

/// The tensors that a weight may consist of.
enum class WeightField : std::uint8_t { Data, Scales, Zeros, ScaleScales, Order };

/// What a product multiplies by: one matrix (out, in) or a stack of them (experts, out, in). Embeddings (rows are
/// outputs) and vectors such as a norm's weight have this form too. A view owns nothing. Empty: there is no such
/// weight.
struct WeightView {
    WeightFormat format = WeightFormat::Dense;
    TensorView data;           ///< the elements as they are stored
    TensorView scales;         ///< of packed formats: one for each group
    TensorView zeros;          ///< of formats whose elements have an offset: U8, one for each group, or empty
    TensorView scaleScales;    ///< of scales that are packed themselves: one for each group of scales
    TensorView order;          ///< I32 (in), or (experts, in): the group of each input. Empty: neighbours are a group
    std::int64_t group = 0;    ///< elements of the input axis that share a scale; 0: none do
    std::int64_t rowGroup = 1; ///< neighbouring outputs that share a row of scales
    Shape shape;               ///< of the weight itself, however it is stored
    bool transposed = false;   ///< dense data are stored (in, out), as gpt-oss BF16 experts are
    /// Added to every scale that is packed. Known on the host, for it is one number of a checkpoint's text.
    float scaleOffset = 0;

    bool empty() const { return data.empty(); }
    bool quantized() const { return format != WeightFormat::Dense; }
    std::int64_t outFeatures() const { return shape[shape.rank() - 2]; }
    std::int64_t inFeatures() const { return shape[shape.rank() - 1]; }
    std::int64_t experts() const { return shape.rank() == 3 ? shape[0] : 1; }
    std::uint64_t bytes() const {
        return data.bytes() + scales.bytes() + zeros.bytes() + scaleScales.bytes() + order.bytes();
    }
    /// The tensor of that field, empty where the format has none.
    TensorView& field(WeightField which);
};

/// `transposed`: the last two dimensions are stored (in, out).
WeightView denseWeight(const TensorView& data, bool transposed = false);

} // namespace vitrine::kernels
