// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A weight as one value, in whatever format it is stored. kernels/formats/weight_formats.h lists the packed formats.

#include <cstdint>

#include "kernels/core/tensor.h"

namespace vitrine::kernels {

enum class WeightFormat : std::uint8_t {
    Dense, ///< floats as they are
    Mxfp4, ///< OCP Microscaling formats 1.0, see kernels/formats/mxfp4_format.h
    Nf4,   ///< 4-bit NormalFloat, see kernels/formats/nf4_format.h
};

/// The tensors that a weight may consist of.
enum class WeightField : std::uint8_t { Data, Scales, Zeros, ScaleScales };

/// What a product multiplies by: one matrix (out, in) or a stack of them (experts, out, in). Embeddings (rows are
/// outputs) and vectors such as a norm's weight have this form too. A view owns nothing. Empty: there is no such
/// weight.
struct WeightView {
    WeightFormat format = WeightFormat::Dense;
    TensorView data;         ///< the elements as they are stored
    TensorView scales;       ///< of packed formats: one for each group
    TensorView zeros;        ///< of formats whose elements have an offset: one for each group
    TensorView scaleScales;  ///< of scales that are packed themselves: one for each group of scales
    std::int64_t group = 0;  ///< neighbouring elements of the input axis that share a scale; 0: none do
    Shape shape;             ///< of the weight itself, however it is stored
    bool transposed = false; ///< dense data are stored (in, out), as gpt-oss BF16 experts are
    /// Added to every scale that is packed. Known on the host, for it is one number of a checkpoint's text.
    float scaleOffset = 0;

    bool empty() const { return data.empty(); }
    bool quantized() const { return format != WeightFormat::Dense; }
    std::int64_t outFeatures() const { return shape[shape.rank() - 2]; }
    std::int64_t inFeatures() const { return shape[shape.rank() - 1]; }
    std::int64_t experts() const { return shape.rank() == 3 ? shape[0] : 1; }
    std::uint64_t bytes() const { return data.bytes() + scales.bytes() + zeros.bytes() + scaleScales.bytes(); }
    /// The tensor of that field, empty where the format has none.
    TensorView& field(WeightField which);
};

/// `transposed`: the last two dimensions are stored (in, out).
WeightView denseWeight(const TensorView& data, bool transposed = false);

} // namespace vitrine::kernels
