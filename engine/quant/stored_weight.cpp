// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/stored_weight.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/quant/mxfp4.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

using kernels::WeightField;
using kernels::WeightFormat;

/// The scale byte that gives uniform nibbles the deviation 1 / sqrt(in).
float randomMxfp4Scale(std::int64_t in) {
    // Mean square of the 16 values of E2M1.
    constexpr float kMeanSquare = (0.25F + 1 + 2.25F + 4 + 9 + 16 + 36) / 8;
    const float deviation = 1 / std::sqrt(static_cast<float>(in));
    return 127 + std::round(std::log2(deviation / std::sqrt(kMeanSquare)));
}

} // namespace

std::vector<StoredTensor> storedTensors(WeightFormat format, const std::string& name,
                                        std::span<const std::int64_t> shape) {
    const kernels::PackedFormat& packed = kernels::packedFormat(format);
    if (format == WeightFormat::Nf4) {
        throw base::Unsupported(name + ": models with NF4 weights cannot be loaded yet");
    }
    std::vector<std::int64_t> groups(shape.begin(), shape.end());
    groups.back() /= packed.group;
    std::vector<std::int64_t> data = groups;
    data.push_back(static_cast<std::int64_t>(kernels::bytesOf(packed.element, packed.group)));
    return {{WeightField::Data, name + std::string(packed.dataSuffix), kernels::DType::U8, data},
            {WeightField::Scales, name + std::string(packed.scalesSuffix), kernels::DType::U8, groups}};
}

std::optional<WeightFormat> formatOfMethod(std::string_view method) {
    const std::span<const kernels::PackedFormat> all = kernels::packedFormats();
    const auto found = std::ranges::find(all, method, &kernels::PackedFormat::method);
    return method.empty() || found == all.end() ? std::nullopt : std::optional(found->format);
}

std::optional<WeightFormat> formatInFile(const std::string& name, const std::function<bool(const std::string&)>& has) {
    for (const kernels::PackedFormat& packed : kernels::packedFormats()) {
        if (has(name + std::string(packed.markSuffix))) {
            return packed.format;
        }
    }
    return has(name) ? std::optional(WeightFormat::Dense) : std::nullopt;
}

RandomBytes randomBytes(WeightFormat format, WeightField field, std::span<const std::int64_t> shape) {
    if (format != WeightFormat::Mxfp4 || field == WeightField::Data) {
        return {};
    }
    return {randomMxfp4Scale(shape.back() * kernels::packedFormat(format).group), 0};
}

void checkStoredBytes(WeightFormat format, WeightField field, std::span<const std::uint8_t> bytes,
                      const std::function<std::string()>& name, std::uint64_t first) {
    if (format == WeightFormat::Mxfp4 && field == WeightField::Scales) {
        checkMxfp4Scales(bytes, name(), first);
    }
}

bool canPack(kernels::WeightFormat format) {
    return format == WeightFormat::Mxfp4;
}

PackedValues packValues(kernels::WeightFormat format, std::span<const float> values) {
    if (!canPack(format)) {
        throw base::Unsupported("packValues: weights of this format are only read");
    }
    PackedValues out{std::vector<std::uint8_t>(values.size() / 2), std::vector<std::uint8_t>(values.size() / 32)};
    quantizeMxfp4(values, out.data, out.scales);
    return out;
}

std::string_view methodOfFormat(kernels::WeightFormat format) {
    return kernels::packedFormat(format).method;
}

} // namespace vitrine::engine
