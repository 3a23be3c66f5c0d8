// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Models whose linears are integers or FP8, with random codes and scales, in the layout of each writer; and the dense
// models with the values that these unpack to.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/quant/integer_codes.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/core/floats.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/engine/model/packed_linears.h"

namespace vitrine::engine::test {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;

/// A weight with random codes, as kernels read it.
struct RandomPacked {
    std::vector<std::uint8_t> codes, zeros;
    std::vector<float> scales;
    std::vector<std::int32_t> order;
    std::vector<float> values;
};

inline RandomPacked randomPacked(std::mt19937& random, const WeightPacking& packing, std::int64_t out,
                                 std::int64_t in) {
    const int bits = packing.format == WeightFormat::Int4 ? 4 : 8;
    const std::int64_t group = groupOf(packing, in), rowGroup = rowGroupOf(packing, out);
    const std::int64_t groups = (in + group - 1) / group, rows = (out + rowGroup - 1) / rowGroup;
    RandomPacked weight;
    weight.codes.resize(static_cast<std::size_t>(out * in * bits / 8));
    for (std::uint8_t& code : weight.codes) {
        code = static_cast<std::uint8_t>(packing.format == WeightFormat::Fp8 ? random() % 0x60 | (random() & 0x80U)
                                                                             : random());
    }
    const double deviation = packing.format == WeightFormat::Fp8 ? 3 : bits == 4 ? 4.6 : 74;
    std::uniform_real_distribution<float> uniform(0.5F, 1.5F);
    for (std::int64_t i = 0; i < rows * groups; ++i) {
        const double scale = uniform(random) / std::sqrt(static_cast<double>(in)) / deviation;
        weight.scales.push_back(kernels::bf16ToFloat(kernels::floatToBf16(static_cast<float>(scale))));
        weight.zeros.push_back(
            static_cast<std::uint8_t>(packing.zeros ? (1 << (bits - 1)) - 3 + random() % 6 : 1U << (bits - 1)));
    }
    for (std::int64_t i = 0; i < in; ++i) {
        weight.order.push_back(static_cast<std::int32_t>(i / group));
    }
    if (packing.ordered) {
        std::shuffle(weight.order.begin(), weight.order.end(), random);
    }
    for (std::int64_t o = 0; o < out; ++o) {
        for (std::int64_t i = 0; i < in; ++i) {
            const auto at = static_cast<std::size_t>(o / rowGroup * groups + weight.order[static_cast<std::size_t>(i)]);
            const std::uint8_t byte = weight.codes[static_cast<std::size_t>((o * in + i) * bits / 8)];
            const int code = bits == 8 ? byte : i % 2 == 0 ? byte & 15 : byte >> 4;
            const float value = packing.format == WeightFormat::Fp8 ? kernels::e4m3ToFloat(byte)
                                                                    : static_cast<float>(code - weight.zeros[at]);
            weight.values.push_back(value * weight.scales[at]);
        }
    }
    return weight;
}

inline std::vector<std::uint8_t> bytesOfFloats(const std::vector<float>& values, DType dtype) {
    std::vector<std::uint8_t> out(kernels::bytesOf(dtype, static_cast<std::int64_t>(values.size())));
    kernels::storeFloats(dtype, values.data(), static_cast<std::int64_t>(values.size()), out.data(), 0);
    return out;
}

/// The bytes of a tensor in the file.
inline std::vector<std::uint8_t> inFile(const WeightPacking& packing, const StoredTensor& tensor,
                                        const RandomPacked& weight, std::int64_t out, std::int64_t in) {
    const int bits = packing.format == WeightFormat::Int4 ? 4 : 8;
    const std::int64_t groups = std::max<std::int64_t>(1, tensor.memoryShape[1]);
    std::vector<std::uint8_t> bytes(kernels::bytesOf(tensor.dtype, kernels::Shape(tensor.shape).count()));
    std::vector<std::uint8_t> scales = bytesOfFloats(weight.scales, DType::BF16);
    ZeroLayout zeros{out, groups, bits};
    switch (tensor.field) {
    case WeightField::Order:
        std::memcpy(bytes.data(), weight.order.data(), bytes.size());
        return bytes;
    case WeightField::Zeros:
        zeros.outputsFirst = packing.scheme == StorageScheme::PackQuantized;
        zeros.order = packing.scheme == StorageScheme::Awq ? kAwqOrder : nullptr;
        zeros.added = packing.zerosMinusOne ? 1 : 0;
        wordsFromZeros(zeros, weight.zeros, bytes);
        return bytes;
    case WeightField::Scales:
        if (!tensor.converts) {
            return scales;
        }
        transposeElements(out, groups, 2, scales, bytes);
        return bytes;
    default:
        if (packing.scheme == StorageScheme::Gptq) {
            inputWordsFromRows({out, in, bits}, weight.codes, bytes);
            return bytes;
        }
        if (packing.scheme == StorageScheme::Awq) {
            outputWordsFromRows({out, in, bits}, weight.codes, bytes);
            return bytes;
        }
        return weight.codes;
    }
}

class IntegerTwins {
public:
    using Overrides = std::map<std::string, std::string>;

    IntegerTwins(const std::string& family, const json& quantization,
                 const Overrides& overrides = {{"num_hidden_layers", "2"}})
        : source_(openModel("synthetic:tiny-" + family, overrides)), quantization_(quantization) {
        const unsigned seed = std::random_device()();
        testing::Test::RecordProperty("seed", std::to_string(seed));
        std::mt19937 random(seed);
        const Quantization rules = parseQuantization(quantization, "config.json");
        for (const TensorSpec& spec : expectedTensors(source_.config)) {
            const bool norm = spec.part == ModelPart::Norm;
            const double deviation = norm ? 0.05 : 1 / std::sqrt(static_cast<double>(spec.shape.back()));
            std::normal_distribution<float> normal(norm ? 1.0F : 0.0F, static_cast<float>(deviation));
            std::vector<float> values(static_cast<std::size_t>(kernels::Shape(spec.shape).count()));
            for (float& value : values) {
                value = normal(random);
            }
            const bool linear = spec.name.ends_with("_proj.weight");
            if (!linear || !rules.packs(spec.name)) {
                packed_[spec.name] = dense_[spec.name] = rounded_[spec.name] = storedAs(DType::F32, spec.shape, values);
                continue;
            }
            WeightPacking packing = rules.packing;
            const std::int64_t out = spec.shape[0], in = spec.shape[1];
            const RandomPacked weight = randomPacked(random, packing, out, in);
            for (const StoredTensor& tensor : storedTensors(packing, spec.name, spec.shape)) {
                packed_[tensor.name] = {tensor.dtype, tensor.shape, inFile(packing, tensor, weight, out, in)};
            }
            for (const SideTensor& side : makeSideTensors(packing, spec.name, spec.shape)) {
                const auto count = static_cast<std::int64_t>(side.bytes.size() / kernels::bytesOf(side.dtype, 1));
                packed_[side.name] = {side.dtype, {count}, side.bytes};
            }
            dense_[spec.name] = storedAs(DType::F32, spec.shape, weight.values);
            rounded_[spec.name] = {DType::BF16, spec.shape, bytesOfFloats(weight.values, DType::BF16)};
            if (spec.name.ends_with(".kv_b_proj.weight")) {
                dense_[spec.name] = rounded_[spec.name]; // expanded at load in any case
            }
        }
    }

    std::string writePacked() { return write(packed_, quantization_); }
    /// The same tensors beside another quantization_config.
    std::string writePackedAs(const json& quantization) { return write(packed_, quantization); }
    std::string writeDense() { return write(dense_, nullptr); }
    /// The packed weights' values as BF16.
    std::string writeRounded() { return write(rounded_, nullptr); }

private:
    std::string write(const StoredTensors& tensors, const json& quantization) {
        return writeStored(source_, tensors, quantization, folder_.file(fmt::format("model-{}", ++written_)));
    }

    ModelSource source_;
    json quantization_;
    StoredTensors packed_, dense_, rounded_;
    int written_ = 0;
    TempFolder folder_;
};

inline json ofCompressedTensors(const json& weights, const char* format = "pack-quantized") {
    return {{"quant_method", "compressed-tensors"},
            {"format", format},
            {"ignore", {"lm_head"}},
            {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

inline const std::vector<json>& quantizations() {
    static const std::vector<json> kAll = {
        ofCompressedTensors({{"num_bits", 4}, {"symmetric", true}, {"strategy", "group"}, {"group_size", 32}}),
        ofCompressedTensors({{"num_bits", 4}, {"symmetric", false}, {"strategy", "group"}, {"group_size", 16}}),
        ofCompressedTensors({{"num_bits", 8}, {"symmetric", false}, {"strategy", "channel"}}),
        ofCompressedTensors({{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}}, "float-quantized"),
        json{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}},
        json{{"quant_method", "gptq"}, {"bits", 8}, {"group_size", -1}, {"checkpoint_format", "gptq_v2"}},
        json{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 16}},
        json{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}},
    };
    return kAll;
}

} // namespace vitrine::engine::test
