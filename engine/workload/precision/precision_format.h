// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The formats that the Precision lab compares, as its option names them: NAME or NAME:GROUP. Stateless; safe from any
// thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/quant/packing.h"

namespace vitrine::engine {

struct PrecisionFormat {
    std::string name;  ///< as it was written: "int4:32"
    std::string title; ///< for people: "INT4, g32"
    /// How a matrix is rounded; nothing: it stays BF16, which is the reference. The lab rounds every linear of a model
    /// so, even where files of the model's family have no layout for the format.
    std::optional<Quantization> quantization;
};

/// A name that conversionTarget() knows, and after a colon the number of inputs that share a scale (-1: a whole row).
/// Throws BadInput "formats: what".
PrecisionFormat precisionFormat(const std::string& text);

/// The formats of a list with commas. The first one is BF16, which is added where the list lacks it. Throws BadInput
/// "formats: what" for an unknown format, one that is there twice, and a list without any format but BF16.
std::vector<PrecisionFormat> precisionFormats(std::string_view list);

} // namespace vitrine::engine
