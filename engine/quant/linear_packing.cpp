// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/linear_packing.h"

#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "engine/quant/nf4_checkpoint.h"
#include "kernels/formats/nf4_format.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightFormat;
using nlohmann::json;

constexpr std::string_view kElementMap = ".quant_map";
constexpr std::string_view kScaleMap = ".nested_quant_map";

constexpr std::size_t kStateBytes = 320; ///< of a state that is written; the end is white space

template <class Numbers> std::vector<std::uint8_t> bytesOfNumbers(const Numbers& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    std::vector<std::uint8_t> out(bytes.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

std::string stateName(const LinearPacking& packing, const std::string& weight) {
    return weight + std::string(kernels::packedFormat(packing.format).markSuffix);
}

bool flagOf(const json& quantization, const char* field, const std::string& file) {
    const auto found = quantization.find(field);
    if (found == quantization.end() || found->is_null()) {
        return false;
    }
    if (!found->is_boolean()) {
        throw base::BadInput(fmt::format("{}: quantization_config.{}: must be true or false", file, field));
    }
    return found->get<bool>();
}

/// Throws Unsupported unless the field, or what it is when it is missing, has this text.
void requireText(const json& quantization, const char* field, const char* missing, std::string_view text,
                 const std::string& file) {
    if (quantization.value(field, json(missing)) != text) {
        throw base::Unsupported(fmt::format("{}: quantization_config.{}: only {} is supported", file, field, text));
    }
}

std::vector<float> floatsOf(const SideTensor& tensor) {
    if (tensor.dtype != DType::F32) {
        throw base::BadInput(
            fmt::format("{}: has dtype {}, but must be F32", tensor.name, kernels::safetensorsName(tensor.dtype)));
    }
    std::vector<float> out(tensor.bytes.size() / sizeof(float));
    std::memcpy(out.data(), tensor.bytes.data(), out.size() * sizeof(float));
    return out;
}

} // namespace

std::optional<LinearPacking> parseLinearPacking(const json& quantization, const std::string& file) {
    if (!quantization.is_object() || quantization.value("quant_method", json()) != "bitsandbytes") {
        return std::nullopt;
    }
    if (!flagOf(quantization, "load_in_4bit", file)) {
        throw base::Unsupported(
            fmt::format("{}: quantization_config.load_in_4bit: bitsandbytes models in 8 bits are not supported", file));
    }
    // What bitsandbytes takes for a missing field is fp4.
    requireText(quantization, "bnb_4bit_quant_type", "fp4", "nf4", file);
    requireText(quantization, "bnb_4bit_quant_storage", "uint8", "uint8", file);
    return LinearPacking{WeightFormat::Nf4, flagOf(quantization, "bnb_4bit_use_double_quant", file), {}};
}

json linearQuantization(const LinearPacking& packing) {
    return {{"quant_method", "bitsandbytes"},
            {"load_in_4bit", true},
            {"load_in_8bit", false},
            {"bnb_4bit_quant_type", "nf4"},
            {"bnb_4bit_quant_storage", "uint8"},
            {"bnb_4bit_compute_dtype", "bfloat16"},
            {"bnb_4bit_use_double_quant", packing.packedScales}};
}

std::optional<LinearPacking> packingOfLinears(WeightFormat format) {
    return format == WeightFormat::Nf4 ? std::optional(LinearPacking{format, true, {}}) : std::nullopt;
}

std::vector<SideTensor> makeSideTensors(const LinearPacking& packing, const std::string& weight,
                                        std::span<const std::int64_t> shape, float scaleOffset) {
    json state = {{"quant_type", "nf4"},
                  {"blocksize", kernels::kNf4Group},
                  {"dtype", "bfloat16"},
                  {"shape", {shape[0], shape[1]}}};
    if (packing.packedScales) {
        state["nested_blocksize"] = kernels::kNf4ScaleGroup;
        state["nested_dtype"] = "float32";
        state["nested_offset"] = scaleOffset;
    }
    std::string text = state.dump();
    text.resize(kStateBytes, ' ');
    std::vector<SideTensor> out;
    for (const std::string& name : sideTensorNames(packing, weight)) {
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

std::vector<std::string> sideTensorNames(const LinearPacking& packing, const std::string& weight) {
    std::vector<std::string> out{stateName(packing, weight), weight + std::string(kElementMap)};
    if (packing.packedScales) {
        out.push_back(weight + std::string(kScaleMap));
    }
    return out;
}

float readScaleOffset(const LinearPacking& packing, const std::string& weight, std::span<const std::int64_t> shape,
                      const std::function<SideTensor(const std::string&)>& read) {
    const SideTensor text = read(stateName(packing, weight));
    const Nf4State state =
        parseNf4State(std::string_view(reinterpret_cast<const char*>(text.bytes.data()), text.bytes.size()), text.name);
    if (state.out != shape[0] || state.in != shape[1]) {
        throw base::BadInput(fmt::format("{}: shape: is ({}, {}), but config.json needs ({}, {})", text.name, state.out,
                                         state.in, shape[0], shape[1]));
    }
    if (state.packedScales != packing.packedScales) {
        throw base::BadInput(
            fmt::format("{}: nested_blocksize: does not fit bnb_4bit_use_double_quant of config.json", text.name));
    }
    const SideTensor map = read(weight + std::string(kElementMap));
    checkNf4Map(floatsOf(map), map.name);
    if (packing.packedScales) {
        const SideTensor scaleMap = read(weight + std::string(kScaleMap));
        checkNf4ScaleMap(floatsOf(scaleMap), scaleMap.name);
    }
    return state.scaleOffset;
}

} // namespace vitrine::engine
