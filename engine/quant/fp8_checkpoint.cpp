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

/// Activations are not rounded here, so a scheme that makes their scales anew for each token needs nothing. Fixed
/// scales are named as not read.
void readActivationScheme(const QuantizationFields& fields) {
    const json* scheme = fields.find("activation_scheme");
    if (scheme == nullptr) {
        return;
    }
    const std::string name = fields.lowerText("activation_scheme", "dynamic");
    if (name != "dynamic" && name != "static") {
        fields.unsupported("activation_scheme", "only dynamic and static are supported");
    }
    if (name == "static") {
        fields.notUsed("activation_scheme");
    }
}

Quantization parseFp8(const QuantizationFields& fields) {
    fields.requireText("fmt", "e4m3", "e4m3");
    fields.requireText("expert_dtype", "fp8", "fp8");
    // The type of the scales in the files counts: files of both kinds have F32 ones.
    if (const std::string scales = fields.text("scale_fmt", "float"); scales != "float" && scales != "ue8m0") {
        fields.unsupported("scale_fmt", "only float and ue8m0 are supported");
    }
    readActivationScheme(fields);
    fields.harmless({"dequantize"});
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
    const char* ignored = fields.oneOf("modules_to_not_convert", "ignored_layers");
    out.ignored = fields.texts(ignored);
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
