// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Linears that bitsandbytes packed to NF4 (engine/quant/nf4_checkpoint.h has the tensors of one).

#include <array>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quoted_text.h"
#include "engine/quant/nf4_checkpoint.h"
#include "engine/quant/scheme_row.h"
#include "kernels/formats/nf4_format.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using nlohmann::json;

constexpr std::string_view kStateSuffix = ".quant_state.bitsandbytes__nf4";
constexpr std::string_view kElementMap = ".quant_map";
constexpr std::string_view kScaleMap = ".nested_quant_map";

constexpr std::size_t kStateBytes = 320; ///< of a state that is written; the end is white space

template <class Numbers> std::vector<std::uint8_t> bytesOfNumbers(const Numbers& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    std::vector<std::uint8_t> out(bytes.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

std::string stateName(const std::string& weight) {
    return weight + std::string(kStateSuffix);
}

std::vector<float> floatsOf(const SideTensor& tensor) {
    if (tensor.dtype != DType::F32) {
        throw base::BadInput(
            fmt::format("{}: has dtype {}, but must be F32", tensor.name, kernels::safetensorsName(tensor.dtype)));
    }
    std::vector<float> out(tensor.bytes.size() / sizeof(float));
    if (!out.empty()) { // an empty tensor has no address
        std::memcpy(out.data(), tensor.bytes.data(), out.size() * sizeof(float));
    }
    return out;
}

/// The types that the packed bytes may be stored under. The bytes are the same.
constexpr std::array kStorageTypes{
    std::pair{std::string_view("uint8"), DType::U8}, std::pair{std::string_view("bfloat16"), DType::BF16},
    std::pair{std::string_view("float16"), DType::F16}, std::pair{std::string_view("float32"), DType::F32}};

DType storageType(const QuantizationFields& fields) {
    const std::string name = fields.text("bnb_4bit_quant_storage", "uint8");
    const std::string_view plain = std::string_view(name).substr(name.starts_with("torch.") ? 6 : 0);
    for (const auto& [known, type] : kStorageTypes) {
        if (plain == known) {
            return type;
        }
    }
    fields.unsupported(
        "bnb_4bit_quant_storage",
        fmt::format("{} is not supported; uint8, bfloat16, float16 and float32 are", base::quotedText(name)));
}

Quantization parseBitsAndBytes(const QuantizationFields& fields) {
    if (!fields.flag("load_in_4bit", fields.flag("_load_in_4bit", false))) {
        fields.unsupported("load_in_4bit", "bitsandbytes models in 8 bits are not supported");
    }
    if (fields.flag("load_in_8bit", fields.flag("_load_in_8bit", false))) {
        fields.bad("load_in_8bit", "stands together with load_in_4bit; one of them must be false");
    }
    // What bitsandbytes takes for a missing field is fp4.
    fields.requireText("bnb_4bit_quant_type", "fp4", "nf4");
    // Rules of 8 bits, and the type of products.
    fields.harmless({"bnb_4bit_compute_dtype", "llm_int8_threshold", "llm_int8_has_fp16_weight",
                     "llm_int8_enable_fp32_cpu_offload"});
    Quantization out;
    out.packing = linearPacking();
    out.packing.storageType = storageType(fields);
    out.packing.packedScales = fields.flag("bnb_4bit_use_double_quant", false);
    out.ignored = fields.texts("llm_int8_skip_modules");
    out.ignored.emplace_back("lm_head");
    return out;
}

json bitsAndBytesConfig(const Quantization& quantization) {
    json out = {{"quant_method", "bitsandbytes"},
                {"load_in_4bit", true},
                {"load_in_8bit", false},
                {"bnb_4bit_quant_type", "nf4"},
                {"bnb_4bit_quant_storage", "uint8"},
                {"bnb_4bit_compute_dtype", "bfloat16"},
                {"bnb_4bit_use_double_quant", quantization.packing.packedScales}};
    if (!quantization.ignored.empty()) {
        out["llm_int8_skip_modules"] = quantization.ignored; // the name is one of 8 bits, the rule one of 4 bits too
    }
    return out;
}

std::optional<WeightPacking> inspectNf4(const WeightPacking& declared, const std::string& weight,
                                        std::span<const std::int64_t> shape, const TensorLookup& files) {
    const SideTensor text = files.read(stateName(weight));
    const Nf4State state =
        parseNf4State(std::string_view(reinterpret_cast<const char*>(text.bytes.data()), text.bytes.size()), text.name);
    if (!files.has(weight)) {
        throw base::BadInput(fmt::format("{}: describes {}, which is missing", text.name, weight));
    }
    if (state.out != shape[0] || state.in != shape[1]) {
        throw base::BadInput(fmt::format("{}: shape: is ({}, {}), but config.json needs ({}, {})", text.name, state.out,
                                         state.in, shape[0], shape[1]));
    }
    if (state.packedScales != declared.packedScales) {
        throw base::BadInput(
            fmt::format("{}: nested_blocksize: does not fit bnb_4bit_use_double_quant of config.json", text.name));
    }
    const SideTensor map = files.read(weight + std::string(kElementMap));
    checkNf4Map(floatsOf(map), map.name);
    if (declared.packedScales) {
        const SideTensor scaleMap = files.read(weight + std::string(kScaleMap));
        checkNf4ScaleMap(floatsOf(scaleMap), scaleMap.name);
    }
    WeightPacking packing = declared;
    packing.scaleOffset = state.scaleOffset;
    // The file decides, whatever the config says. A type that is not known stays the declared one and is refused later.
    const DType found = files.dtype(weight);
    for (const auto& [name, type] : kStorageTypes) {
        packing.storageType = type == found ? type : packing.storageType;
    }
    return packing;
}

std::vector<StoredTensor> nf4Tensors(const WeightPacking& packing, const std::string& weight,
                                     std::span<const std::int64_t> shape) {
    if (shape.size() != 2 || shape[1] % kernels::kNf4Group != 0) {
        failPacking(weight, fmt::format("NF4 needs a matrix whose input axis is a multiple of {}, and it is {}",
                                        kernels::kNf4Group, shape.back()));
    }
    const std::int64_t size = static_cast<std::int64_t>(kernels::bytesOf(packing.storageType, 1));
    if (shape[0] * shape[1] / 2 % size != 0) {
        failPacking(weight, "its packed bytes are no whole elements of bnb_4bit_quant_storage");
    }
    return nf4StoredTensors(weight, {shape[0], shape[1], packing.packedScales, 0, packing.storageType});
}

std::vector<std::string> nf4SideNames(const WeightPacking& packing, const std::string& weight) {
    std::vector<std::string> out{stateName(weight), weight + std::string(kElementMap)};
    if (packing.packedScales) {
        out.push_back(weight + std::string(kScaleMap));
    }
    return out;
}

std::vector<SideTensor> nf4MakeSide(const WeightPacking& packing, const std::string& weight,
                                    std::span<const std::int64_t> shape) {
    json state = {{"quant_type", "nf4"},
                  {"blocksize", kernels::kNf4Group},
                  {"dtype", "bfloat16"},
                  {"shape", {shape[0], shape[1]}}};
    if (packing.packedScales) {
        state["nested_blocksize"] = kernels::kNf4ScaleGroup;
        state["nested_dtype"] = "float32";
        state["nested_offset"] = packing.scaleOffset;
    }
    std::string text = state.dump();
    text.resize(kStateBytes, ' ');
    std::vector<SideTensor> out;
    for (const std::string& name : nf4SideNames(packing, weight)) {
        if (name.ends_with(kScaleMap)) {
            out.push_back({name, DType::F32, bytesOfNumbers(kernels::nf4ScaleMap())});
        } else if (name.ends_with(kElementMap)) {
            out.push_back({name, DType::F32, bytesOfNumbers(kernels::kNf4Values)});
        } else {
            out.push_back({name, DType::U8, bytesOfNumbers(text)});
        }
    }
    return out;
}

} // namespace

const SchemeRow& bitsAndBytesScheme() {
    static constexpr SchemeRow kRow{StorageScheme::BitsAndBytes,
                                    "bitsandbytes",
                                    parseBitsAndBytes,
                                    bitsAndBytesConfig,
                                    stateName,
                                    inspectNf4,
                                    nf4Tensors,
                                    nullptr,
                                    nf4SideNames,
                                    nf4MakeSide};
    return kRow;
}

} // namespace vitrine::engine
