// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/weight_formats.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernels/formats/mxfp4_format.h"
#include "kernels/formats/nf4_format.h"

namespace vitrine::kernels {

namespace {

constexpr std::array kFormats = {
    PackedFormat{WeightFormat::Mxfp4, "mxfp4", "mxfp4", "MXFP4", DType::F4, kMxfp4Group, "_blocks", "_scales",
                 "_blocks"},
    PackedFormat{WeightFormat::Nf4, "nf4", "", "NF4", DType::Nf4, kNf4Group, "", ".absmax",
                 ".quant_state.bitsandbytes__nf4"},
};

std::string listOf(std::string_view PackedFormat::* word) {
    std::string out;
    for (const PackedFormat& entry : kFormats) {
        const bool both = !out.empty() && !(entry.*word).empty();
        out += both ? ", " : "";
        out += entry.*word;
    }
    return out;
}

} // namespace

std::span<const PackedFormat> packedFormats() {
    return kFormats;
}

const PackedFormat& packedFormat(WeightFormat format) {
    const auto* const entry = std::ranges::find(kFormats, format, &PackedFormat::format);
    if (entry == kFormats.end()) {
        throw base::Internal("a dense weight was taken for a packed one");
    }
    return *entry;
}

const PackedFormat* packedFormatOf(DType dtype, std::string_view tensor) {
    const auto has = [&](std::string_view part) {
        return !part.empty() && tensor.find(part) != std::string_view::npos;
    };
    const auto* const entry = std::ranges::find_if(kFormats, [&](const PackedFormat& format) {
        return dtype == format.element ||
               (dtype == DType::U8 && (has(format.dataSuffix) || has(format.scalesSuffix) || has(format.name)));
    });
    return entry == kFormats.end() ? nullptr : entry;
}

std::string packedTitles() {
    return listOf(&PackedFormat::title);
}

std::string packedMethods() {
    return listOf(&PackedFormat::method);
}

WeightView withShape(WeightView packed) {
    packed.group = packedFormat(packed.format).group;
    std::array<std::int64_t, kMaxRank> dims{};
    const std::span<const std::int64_t> groups = packed.scales.shape.dims();
    std::ranges::copy(groups, dims.begin());
    if (!groups.empty()) {
        dims[groups.size() - 1] *= packed.group;
    }
    packed.shape = Shape(std::span<const std::int64_t>(dims.data(), groups.size()));
    return packed;
}

WeightView packedWeight(WeightFormat format, const TensorView& data, const TensorView& scales,
                        const TensorView& scaleScales, float scaleOffset) {
    WeightView out;
    out.format = format;
    out.data = data;
    out.scales = scales;
    out.scaleScales = scaleScales;
    out.scaleOffset = scaleOffset;
    return withShape(out);
}

} // namespace vitrine::kernels
