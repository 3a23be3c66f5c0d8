// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// FP8 checkpoints: NAME.weight holds E4M3, and NAME.weight_scale_inv (DeepSeek-V3, blocks of 128 by 128) or
// NAME.weight_scale (compressed-tensors, "float-quantized": a tensor, a row or a block) what its elements are
// multiplied by.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/quant/scheme_row.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;

constexpr std::string_view kInverse = "weight_scale_inv";
constexpr std::string_view kPlain = "weight_scale";
constexpr std::int64_t kBlock = 128;

std::string scalesOf(const WeightPacking& packing, const std::string& weight) {
    return fmt::format("{}.{}", moduleOf(weight), packing.scalesName);
}

Quantization parseFp8(const json& object, const std::string& file) {
    const QuantizationFields fields(object, file);
    fields.requireText("fmt", "e4m3", "e4m3");
    Quantization out;
    out.packing.scheme = StorageScheme::Fp8;
    out.packing.format = WeightFormat::Fp8;
    const json* block = fields.find("weight_block_size");
    if (block == nullptr) {
        out.packing.group = out.packing.rowGroup = kWholeRow;
        out.packing.scalesName = kPlain;
    } else {
        if (*block != json::array({kBlock, kBlock})) {
            fields.unsupported("weight_block_size", "only [128, 128] is supported");
        }
        out.packing.group = out.packing.rowGroup = kBlock;
        out.packing.scalesName = kInverse;
    }
    out.ignored = fields.texts("modules_to_not_convert");
    out.ignored.emplace_back("lm_head");
    return out;
}

json fp8Config(const Quantization& quantization) {
    json out = {{"quant_method", "fp8"},
                {"fmt", "e4m3"},
                {"activation_scheme", "dynamic"},
                {"modules_to_not_convert", quantization.ignored}};
    if (quantization.packing.group == kBlock) {
        out["weight_block_size"] = {kBlock, kBlock};
    }
    return out;
}

std::string fp8Mark(const std::string& weight) {
    return weight;
}

/// NAME.weight is there for dense weights too: the scales say that it is packed, and their shape what they cover.
std::optional<WeightPacking> inspectFp8(const WeightPacking& declared, const std::string& weight,
                                        std::span<const std::int64_t> shape, const TensorLookup& files) {
    WeightPacking packing = declared;
    packing.scalesName = kInverse;
    if (!files.has(scalesOf(packing, weight))) {
        packing.scalesName = kPlain;
        if (!files.has(scalesOf(packing, weight))) {
            return std::nullopt;
        }
    }
    const std::vector<std::int64_t> scales = files.shape(scalesOf(packing, weight));
    std::int64_t count = 1;
    for (const std::int64_t dim : scales) {
        count *= dim;
    }
    const bool rows = scales.size() == 2 && scales[1] == 1 && scales[0] == shape[0];
    if (count == 1 || rows) {
        packing.group = kWholeRow;
        packing.rowGroup = rows ? 1 : kWholeRow;
    } else {
        packing.group = packing.rowGroup = kBlock;
    }
    return packing;
}

std::vector<StoredTensor> fp8Tensors(const WeightPacking& packing, const std::string& weight,
                                     std::span<const std::int64_t> shape) {
    const std::int64_t out = shape[0];
    const std::int64_t in = shape[1];
    const std::int64_t group = groupOf(packing, in);
    const std::int64_t rowGroup = rowGroupOf(packing, out);
    const std::int64_t rows = (out + rowGroup - 1) / rowGroup;
    const std::int64_t groups = (in + group - 1) / group;
    return {{WeightField::Data, weight, DType::F8E4M3, {out, in}, DType::U8, kernels::Shape{out, in}},
            {WeightField::Scales,
             scalesOf(packing, weight),
             DType::BF16,
             {rows, groups},
             DType::None,
             kernels::Shape{rows, groups}}};
}

} // namespace

const SchemeRow& fp8Scheme() {
    static constexpr SchemeRow kRow{StorageScheme::Fp8, "fp8", parseFp8, fp8Config, fp8Mark, inspectFp8, fp8Tensors};
    return kRow;
}

} // namespace vitrine::engine
