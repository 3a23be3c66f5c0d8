// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The formats that pack the elements of a weight, as a table. Whoever shows, names or stores a format reads it here.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/formats/packed_format.h"

namespace vitrine::kernels {

/// The rows of the table. Those of formats that were added for a test come last.
std::span<const PackedFormat> packedFormats();

/// The entry of a format. Throws Internal for Dense.
const PackedFormat& packedFormat(WeightFormat format);

/// The format of a tensor in memory by its type and its name ("...gate_up_proj_blocks"); null when it is dense.
const PackedFormat* packedFormatOf(DType dtype, std::string_view tensor);

/// Titles of all packed formats for a sentence: "MXFP4, NF4".
std::string packedTitles();

/// How a packed weight is stored, for people: "MXFP4", "INT4, groups of 128", "INT8, whole rows", "FP8, blocks of
/// 128 x 128", "FP8, one scale". The tensors of the view need not be set. `rows` are the outputs that a scale for all
/// of them covers. Empty for a dense weight.
std::string weightFormatWords(const WeightView& weight, std::int64_t rows);

/// Adds a row while it lives: a format that no product file knows, for tests. Nobody may look at formats on another
/// thread while one is made or destroyed.
class AddedFormat {
public:
    explicit AddedFormat(const PackedFormat& row);
    ~AddedFormat();
    AddedFormat(const AddedFormat&) = delete;
    AddedFormat& operator=(const AddedFormat&) = delete;
};

/// Finds out the shape and the quantization group of a packed weight whose format and stored tensors are set. A weight
/// of a format with one size of groups for all needs neither; of another one the group must be set.
WeightView withShape(WeightView packed);

/// A packed weight of a format with one size of groups, without zeros and order.
WeightView packedWeight(WeightFormat format, const TensorView& data, const TensorView& scales,
                        const TensorView& scaleScales = {}, float scaleOffset = 0);

} // namespace vitrine::kernels
