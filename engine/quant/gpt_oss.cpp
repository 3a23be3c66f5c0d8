// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Stacks of experts as gpt_oss files store them: NAME_blocks (experts, out, groups, 16) and NAME_scales (experts, out,
// groups), MXFP4.

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/quant/scheme_row.h"
#include "kernels/formats/mxfp4_format.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using nlohmann::json;

Quantization parseGptOss(const QuantizationFields& fields) {
    fields.harmless({"dequantize"});
    Quantization out;
    out.packing = stackPacking();
    out.allLinears = false;
    out.ignored = fields.texts("modules_to_not_convert");
    for (const std::string& module : out.ignored) {
        if (module.find("experts") != std::string::npos) {
            fields.unsupported("modules_to_not_convert", "experts that are not converted are not supported");
        }
    }
    return out;
}

json gptOssConfig(const Quantization& quantization) {
    return {{"quant_method", "mxfp4"}, {"modules_to_not_convert", quantization.ignored}};
}

std::string gptOssMark(const std::string& weight) {
    return weight + "_blocks";
}

std::vector<StoredTensor> gptOssTensors(const WeightPacking&, const std::string& weight,
                                        std::span<const std::int64_t> shape) {
    if (shape.back() % kernels::kMxfp4Group != 0) {
        failPacking(weight, fmt::format("MXFP4 needs an input axis that is a multiple of {}, and it is {}",
                                        kernels::kMxfp4Group, shape.back()));
    }
    std::vector<std::int64_t> groups(shape.begin(), shape.end());
    groups.back() /= kernels::kMxfp4Group;
    std::vector<std::int64_t> data = groups;
    data.push_back(kernels::kMxfp4Group / 2);
    return {{WeightField::Data, gptOssMark(weight), DType::U8, data, DType::U8, kernels::Shape(data)},
            {WeightField::Scales, weight + "_scales", DType::U8, groups, DType::U8, kernels::Shape(groups)}};
}

} // namespace

const SchemeRow& gptOssScheme() {
    static constexpr SchemeRow kRow{StorageScheme::GptOss, "mxfp4", parseGptOss, gptOssConfig, gptOssMark, nullptr,
                                    gptOssTensors};
    return kRow;
}

} // namespace vitrine::engine
