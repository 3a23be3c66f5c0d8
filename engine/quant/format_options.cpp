// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/format_options.h"

#include <algorithm>

#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {

kernels::WeightFormat formatNamed(std::string_view name) {
    const std::span<const kernels::PackedFormat> all = kernels::packedFormats();
    const auto found = std::ranges::find(all, name, &kernels::PackedFormat::name);
    return found == all.end() ? kernels::WeightFormat::Dense : found->format;
}

bool hasGroups(std::string_view name) {
    return formatNamed(name) == kernels::WeightFormat::Int4;
}

bool needsCopies(std::string_view merge) {
    const kernels::WeightFormat format = formatNamed(merge);
    return format == kernels::WeightFormat::Int4 || format == kernels::WeightFormat::Fp8;
}

bool canPackAgain(kernels::WeightFormat format) {
    return format == kernels::WeightFormat::Int4 || format == kernels::WeightFormat::Fp8 ||
           format == kernels::WeightFormat::Mxfp4;
}

kernels::DType typeOfPacked(const kernels::WeightView& weight, kernels::DType compute) {
    return weight.format == kernels::WeightFormat::Int4    ? weight.scales.dtype
           : weight.format == kernels::WeightFormat::Mxfp4 ? kernels::DType::F32
                                                           : compute;
}

bool canMergePacked(kernels::WeightFormat format) {
    return format == kernels::WeightFormat::Mxfp4;
}

} // namespace vitrine::engine
