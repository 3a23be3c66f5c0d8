// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The formats that pack the elements of a weight, as a table. Whoever shows, names or stores a format reads it here.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/core/weight_view.h"

namespace vitrine::kernels {

/// What is the same for all weights of a packed format: an entry of the table.
struct PackedFormat {
    WeightFormat format = WeightFormat::Dense;
    std::string_view name;         ///< "mxfp4"
    std::string_view method;       ///< "quant_method" of a config.json that says it; empty: none does
    std::string_view title;        ///< for people: "MXFP4"
    DType element = DType::None;   ///< of one packed element
    std::int64_t group = 0;        ///< elements of the input axis that share a scale (quantization group)
    std::string_view dataSuffix;   ///< what the name of a stored tensor ends with: NAME_blocks holds the elements
    std::string_view scalesSuffix; ///< NAME_scales holds the scales
    std::string_view markSuffix;   ///< a checkpoint that has such a tensor stores NAME in this format
};

std::span<const PackedFormat> packedFormats();

/// The entry of a format. Throws Internal for Dense.
const PackedFormat& packedFormat(WeightFormat format);

/// The format of a tensor in memory by its type and its name ("...gate_up_proj_blocks"); null when it is dense.
const PackedFormat* packedFormatOf(DType dtype, std::string_view tensor);

/// Titles of all packed formats for a sentence: "MXFP4, NF4".
std::string packedTitles();
/// The methods that config.json may name: "mxfp4".
std::string packedMethods();

/// Finds out the shape and the quantization group of a packed weight whose format and stored tensors are set. MXFP4:
/// `data` is U8 (..., out, groups, 16), `scales` U8 (..., out, groups). NF4: `data` is U8 (out, in / 2), `scales` F32
/// (out, groups), or U8 of that shape with `scaleScales`, F32.
WeightView withShape(WeightView packed);

/// A packed weight without zeros.
WeightView packedWeight(WeightFormat format, const TensorView& data, const TensorView& scales,
                        const TensorView& scaleScales = {}, float scaleOffset = 0);

} // namespace vitrine::kernels
