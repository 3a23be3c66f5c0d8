// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/value_packer.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "engine/quant/mxfp4.h"
#include "kernels/formats/nf4_format.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {

using kernels::WeightFormat;

const std::vector<std::uint8_t>& PackedValues::field(kernels::WeightField which) const {
    switch (which) {
    case kernels::WeightField::Data:
        return data;
    case kernels::WeightField::Scales:
        return scales;
    case kernels::WeightField::ScaleScales:
        return scaleScales;
    case kernels::WeightField::Zeros:
        return zeros;
    case kernels::WeightField::Order:
        return order;
    }
    throw base::Internal("packed values have no such field");
}

ValuePacker::ValuePacker(WeightFormat format, std::int64_t count) : format_(format) {
    const auto groups = static_cast<std::size_t>(count / kernels::packedFormat(format).group);
    packed_.data.resize(static_cast<std::size_t>(count) / 2);
    packed_.scales.resize(groups);
    scales_.resize(format == WeightFormat::Nf4 ? groups : 0);
}

void ValuePacker::pack(std::int64_t first, std::span<const float> values) {
    const auto begin = static_cast<std::size_t>(first);
    const auto size = static_cast<std::size_t>(kernels::packedFormat(format_).group);
    const std::span data = std::span(packed_.data).subspan(begin / 2, values.size() / 2);
    if (format_ == WeightFormat::Nf4) {
        kernels::quantizeNf4(values, data, std::span(scales_).subspan(begin / size, values.size() / size));
    } else {
        quantizeMxfp4(values, data, std::span(packed_.scales).subspan(begin / size, values.size() / size));
    }
}

PackedValues ValuePacker::finish() {
    if (format_ == WeightFormat::Nf4) {
        constexpr auto kGroup = static_cast<std::size_t>(kernels::kNf4ScaleGroup);
        std::vector<float> scaleScales((scales_.size() + kGroup - 1) / kGroup);
        packed_.scaleOffset = kernels::packNf4Scales(scales_, packed_.scales, scaleScales);
        packed_.scaleScales.resize(scaleScales.size() * sizeof(float));
        std::memcpy(packed_.scaleScales.data(), scaleScales.data(), packed_.scaleScales.size());
    }
    return std::move(packed_);
}

PackedValues packValues(WeightFormat format, std::span<const float> values) {
    ValuePacker packer(format, static_cast<std::int64_t>(values.size()));
    packer.pack(0, values);
    return packer.finish();
}

} // namespace vitrine::engine
