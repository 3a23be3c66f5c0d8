// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// compressed-tensors, format "pack-quantized" (and "float-quantized", which is FP8): beside NAME.weight_packed lie
// NAME.weight_scale, with zeros NAME.weight_zero_point, with an order NAME.weight_g_idx, and NAME.weight_shape.

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quoted_text.h"
#include "engine/quant/integer_codes.h"
#include "engine/quant/scheme_row.h"
#include "kernels/formats/integer_format.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;

constexpr std::string_view kMethod = "compressed-tensors";

int bitsOf(const WeightPacking& packing) {
    return packing.format == WeightFormat::Int8 ? 8 : 4;
}

std::string partName(const std::string& weight, std::string_view ending) {
    return std::string(moduleOf(weight)) + std::string(ending);
}

void readStrategy(const QuantizationFields& weights, WeightPacking& packing) {
    const std::string strategy = weights.text("strategy", "group");
    if (strategy == "channel") {
        packing.group = kWholeRow;
    } else if (strategy == "tensor") {
        packing.group = packing.rowGroup = kWholeRow;
    } else if (strategy == "group") {
        packing.group = weights.groupSize("group_size", 128);
    } else if (strategy == "block" && packing.format == WeightFormat::Fp8) {
        const json* block = weights.find("block_structure");
        if (block == nullptr || *block != json::array({128, 128})) {
            weights.unsupported("block_structure", "only [128, 128] is supported");
        }
        packing.group = packing.rowGroup = 128;
    } else {
        weights.unsupported(
            "strategy", fmt::format("{} is not supported; group, channel and tensor are", base::quotedText(strategy)));
    }
}

WeightPacking readWeights(const QuantizationFields& weights) {
    WeightPacking packing;
    packing.scheme = StorageScheme::PackQuantized;
    const std::int64_t bits = weights.integer("num_bits", 4);
    const std::string type = weights.text("type", "int");
    if (type == "float" && bits == 8) {
        packing.scheme = StorageScheme::Fp8;
        packing.format = WeightFormat::Fp8;
        packing.scalesName = "weight_scale";
    } else if (type == "int" && (bits == 4 || bits == 8)) {
        packing.format = bits == 4 ? WeightFormat::Int4 : WeightFormat::Int8;
        packing.zeros = !weights.flag("symmetric", true);
    } else {
        weights.unsupported("num_bits", fmt::format("{} bits of type {} are not supported; int with 4 or 8 bits and "
                                                    "float with 8 are",
                                                    bits, base::quotedText(type)));
    }
    readStrategy(weights, packing);
    if (weights.flag("dynamic", false)) {
        weights.unsupported("dynamic", "weights whose scales are made at each step are not supported");
    }
    weights.harmless({"observer", "observer_kwargs", "zp_dtype", "scale_dtype"}); // the types in the files count
    const json* kwargs = weights.find("observer_kwargs");
    const bool seven = kwargs != nullptr && kwargs->is_object() && kwargs->value("rule", json()) == json("seven");
    packing.rule = seven && packing.format == WeightFormat::Int4 && !packing.zeros
                       ? kernels::IntegerRule::Seven
                       : kernels::IntegerRule::CompressedTensors;
    const json* order = weights.find("actorder"); // "group", "weight", or false and true for none and "group"
    packing.ordered = order != nullptr && (*order == "group" || *order == true);
    return packing;
}

/// The name of a group as a message has it: as it is, unless it is long or has characters that no name needs.
std::string pathPart(const std::string& name) {
    constexpr std::size_t kLongest = 40;
    const bool plain =
        name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        });
    return plain ? name : base::quotedText(name);
}

void checkFormat(const QuantizationFields& fields) {
    const std::string format = fields.text("format", "pack-quantized");
    if (format != "pack-quantized" && format != "float-quantized") {
        fields.unsupported("format", fmt::format("{} is not supported; pack-quantized and float-quantized are",
                                                 base::quotedText(format)));
    }
}

/// Activations are not rounded here, so scales that are made anew for each token need nothing. Fixed ones are named as
/// not read.
void readActivations(const QuantizationFields& group) {
    const json* input = group.find("input_activations");
    if (input != nullptr && !(input->is_object() && input->value("dynamic", json()) == json(true))) {
        group.notUsed("input_activations");
    }
}

/// What would have to be done to the weights or beside them, and is not.
void refuseTransforms(const QuantizationFields& fields) {
    fields.requireNothing("transform_config", "weights that are rotated are not supported");
    const json* sparsity = fields.find("sparsity_config");
    if (sparsity != nullptr && !sparsity->empty()) {
        const QuantizationFields inner = fields.inside("sparsity_config");
        inner.requireText("format", "dense", "dense");
        inner.harmless({"sparsity_structure", "global_sparsity", "registry_requires_subclass", "ignore", "targets"});
    }
}

Quantization parse(const QuantizationFields& fields) {
    // A "mixed-precision" model says the format of each group.
    const bool mixed = fields.text("format", "pack-quantized") == "mixed-precision";
    if (!mixed) {
        checkFormat(fields);
    }
    refuseTransforms(fields);
    fields.harmless({"quantization_status", "global_compression_ratio", "version", "run_compressed", "dequantize",
                     "use_optimized_inference"});
    const json* groups = fields.find("config_groups");
    if (groups == nullptr || !groups->is_object() || groups->empty()) {
        fields.bad("config_groups", "must name a group");
    }
    Quantization out;
    bool first = true;
    for (const auto& item : groups->items()) {
        const std::string& name = item.key();
        const QuantizationFields groupFields = fields.inside(item.value(), "config_groups." + pathPart(name));
        groupFields.harmless({"targets"}); // the tensors say which weights are packed
        if (mixed || groupFields.find("format") != nullptr) {
            checkFormat(groupFields);
        }
        readActivations(groupFields);
        const WeightPacking packing = readWeights(groupFields.inside("weights"));
        if (!first && packing != out.packing) {
            fields.unsupported("config_groups", "groups of different formats are not supported");
        }
        out.packing = packing;
        first = false;
    }
    out.ignored = fields.texts("ignore");
    return out;
}

json config(const Quantization& quantization) {
    const WeightPacking& packing = quantization.packing;
    const bool channel = packing.group == kWholeRow;
    const json weights = {
        {"num_bits", bitsOf(packing)},
        {"type", "int"},
        {"symmetric", !packing.zeros},
        {"strategy", channel ? "channel" : "group"},
        {"group_size", channel ? json() : json(packing.group)},
        {"dynamic", false},
        {"actorder", packing.ordered ? json("group") : json()},
        {"block_structure", nullptr},
        {"observer", "minmax"},
        {"observer_kwargs", packing.rule == kernels::IntegerRule::Seven ? json{{"rule", "seven"}} : json::object()}};
    return {{"quant_method", kMethod},
            {"format", "pack-quantized"},
            {"quantization_status", "compressed"},
            {"kv_cache_scheme", nullptr},
            {"ignore", quantization.ignored},
            {"config_groups",
             {{"group_0",
               {{"targets", {"Linear"}},
                {"input_activations", nullptr},
                {"output_activations", nullptr},
                {"weights", weights}}}}}};
}

std::string mark(const std::string& weight) {
    return partName(weight, ".weight_packed");
}

std::optional<WeightPacking> inspect(const WeightPacking& declared, const std::string& weight,
                                     std::span<const std::int64_t>, const TensorLookup& files) {
    WeightPacking packing = declared;
    packing.ordered = files.has(partName(weight, ".weight_g_idx"));
    return packing;
}

std::vector<StoredTensor> tensors(const WeightPacking& packing, const std::string& weight,
                                  std::span<const std::int64_t> shape) {
    const std::int64_t out = shape[0];
    const std::int64_t in = shape[1];
    const std::int64_t perWord = 32 / bitsOf(packing);
    const std::int64_t groups = (in + groupOf(packing, in) - 1) / groupOf(packing, in);
    if (in % perWord != 0) {
        failPacking(weight,
                    fmt::format("packed words need an input axis that is a multiple of {}, and it is {}", perWord, in));
    }
    if (packing.rowGroup == kWholeRow) {
        failPacking(weight, "one scale for a whole tensor of integers is not supported; one for each row is");
    }
    std::vector<StoredTensor> stored{{WeightField::Data,
                                      mark(weight),
                                      DType::I32,
                                      {out, in / perWord},
                                      DType::U8,
                                      kernels::Shape{out, in * bitsOf(packing) / 8}},
                                     {WeightField::Scales,
                                      partName(weight, ".weight_scale"),
                                      DType::BF16,
                                      {out, groups},
                                      DType::None,
                                      kernels::Shape{out, groups}}};
    if (packing.zeros) {
        stored.push_back({WeightField::Zeros,
                          partName(weight, ".weight_zero_point"),
                          DType::I32,
                          {(out + perWord - 1) / perWord, groups},
                          DType::U8,
                          kernels::Shape{out, groups},
                          true});
    }
    if (packing.ordered) {
        stored.push_back(
            {WeightField::Order, partName(weight, ".weight_g_idx"), DType::I32, {in}, DType::I32, kernels::Shape{in}});
    }
    return stored;
}

/// Only zeros differ in files.
ZeroLayout zeroLayout(const WeightPacking& packing, const StoredTensor& tensor) {
    ZeroLayout layout{tensor.memoryShape[0], tensor.memoryShape[1], bitsOf(packing)};
    layout.outputsFirst = true;
    return layout;
}

void toRows(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> stored,
            std::span<std::uint8_t> memory) {
    zerosFromWords(zeroLayout(packing, tensor), stored, memory);
}

void fromRows(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> memory,
              std::span<std::uint8_t> stored) {
    wordsFromZeros(zeroLayout(packing, tensor), memory, stored);
}

std::vector<std::string> sideNames(const WeightPacking&, const std::string& weight) {
    return {partName(weight, ".weight_shape")};
}

std::vector<SideTensor> makeSide(const WeightPacking&, const std::string& weight, std::span<const std::int64_t> shape) {
    std::vector<std::uint8_t> bytes(2 * sizeof(std::int64_t));
    std::memcpy(bytes.data(), shape.data(), bytes.size());
    return {{partName(weight, ".weight_shape"), DType::I64, bytes}};
}

} // namespace

const SchemeRow& packQuantizedScheme() {
    static constexpr SchemeRow kRow{StorageScheme::PackQuantized,
                                    kMethod,
                                    parse,
                                    config,
                                    mark,
                                    inspect,
                                    tensors,
                                    toRows,
                                    sideNames,
                                    makeSide,
                                    fromRows};
    return kRow;
}

} // namespace vitrine::engine
