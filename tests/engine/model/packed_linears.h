// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Random models whose linears are packed as bitsandbytes does it (NF4), and dense ones of the values that they unpack
// to. The packing rule is written here once more, by searching the nearest of all values.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "kernels/core/floats.h"
#include "kernels/formats/nf4_format.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine::test {

struct StoredBytes {
    kernels::DType dtype = kernels::DType::F32;
    std::vector<std::int64_t> shape;
    std::vector<std::uint8_t> bytes;
};
using StoredTensors = std::map<std::string, StoredBytes>;

/// `data`: numbers that follow each other in memory.
template <class Numbers>
StoredBytes storedAs(kernels::DType dtype, std::vector<std::int64_t> shape, const Numbers& data) {
    const auto bytes = std::as_bytes(std::span(data));
    StoredBytes out{dtype, std::move(shape), std::vector<std::uint8_t>(bytes.size())};
    std::memcpy(out.bytes.data(), bytes.data(), bytes.size());
    return out;
}

/// Writes a model with the config of `source` into a new folder, and returns its name.
inline std::string writeStored(const ModelSource& source, const StoredTensors& tensors,
                               const nlohmann::json& quantization, const std::string& folder) {
    std::filesystem::create_directories(folder);
    std::vector<TensorSpec> specs;
    for (const auto& [name, tensor] : tensors) {
        specs.push_back({name, tensor.dtype, tensor.shape});
    }
    const auto writer = SafetensorsWriter::create(folder + "/model.safetensors", specs);
    for (const auto& [name, tensor] : tensors) {
        writer->write(tensor.bytes.data(), tensor.bytes.size());
    }
    writer->finish();
    nlohmann::json config = nlohmann::json::parse(source.configText);
    if (!quantization.is_null()) {
        config["quantization_config"] = quantization;
    }
    std::ofstream(folder + "/config.json") << config.dump();
    return folder;
}

inline std::uint8_t nearestOf(std::span<const float> values, float value) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        best = std::abs(values[i] - value) < std::abs(values[best] - value) ? i : best;
    }
    return static_cast<std::uint8_t>(best);
}

/// Adds the tensors of the packed matrix (out, in); `values` become what they unpack to.
inline void addPackedLinear(StoredTensors& tensors, const std::string& name, std::int64_t out, std::int64_t in,
                            bool packedScales, std::vector<float>& values) {
    std::vector<float> scales;
    for (std::size_t i = 0; i < values.size(); i += 64) {
        float largest = 0;
        for (std::size_t j = i; j < i + 64; ++j) {
            largest = std::max(largest, std::abs(values[j]));
        }
        scales.push_back(largest);
    }
    std::vector<float> unpacked = scales;
    nlohmann::json state = {
        {"quant_type", "nf4"}, {"blocksize", 64}, {"dtype", "float32"}, {"shape", std::vector{out, in}}};
    const auto groups = static_cast<std::int64_t>(scales.size());
    if (packedScales) {
        float mean = 0;
        for (const float scale : scales) {
            mean += scale / static_cast<float>(scales.size());
        }
        std::vector<std::uint8_t> codes;
        std::vector<float> codeScales;
        for (std::size_t i = 0; i < scales.size(); ++i) {
            if (i % 256 == 0) {
                codeScales.push_back(0);
                for (std::size_t j = i; j < std::min(i + 256, scales.size()); ++j) {
                    codeScales.back() = std::max(codeScales.back(), std::abs(scales[j] - mean));
                }
            }
            codes.push_back(nearestOf(kernels::nf4ScaleMap(), (scales[i] - mean) / codeScales.back()));
            unpacked[i] = kernels::nf4ScaleMap()[codes[i]] * codeScales.back() + mean;
        }
        state.update({{"nested_blocksize", 256}, {"nested_dtype", "float32"}, {"nested_offset", mean}});
        const auto count = static_cast<std::int64_t>(codeScales.size());
        tensors[name + ".absmax"] = storedAs(kernels::DType::U8, {groups}, codes);
        tensors[name + ".nested_absmax"] = storedAs(kernels::DType::F32, {count}, codeScales);
        tensors[name + ".nested_quant_map"] = storedAs(kernels::DType::F32, {256}, kernels::nf4ScaleMap());
    } else {
        tensors[name + ".absmax"] = storedAs(kernels::DType::F32, {groups}, scales);
    }
    std::vector<std::uint8_t> data(values.size() / 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint8_t code = nearestOf(kernels::kNf4Values, values[i] / scales[i / 64]);
        data[i / 2] = static_cast<std::uint8_t>(data[i / 2] | (i % 2 == 0 ? code << 4 : code));
        values[i] = kernels::kNf4Values[code] * unpacked[i / 64];
    }
    const std::string text = state.dump();
    tensors[name] = storedAs(kernels::DType::U8, {static_cast<std::int64_t>(data.size()), 1}, data);
    tensors[name + ".quant_map"] = storedAs(kernels::DType::F32, {16}, kernels::kNf4Values);
    tensors[name + ".quant_state.bitsandbytes__nf4"] =
        storedAs(kernels::DType::U8, {static_cast<std::int64_t>(text.size())}, text);
}

/// Both forms of a synthetic model's shape with fresh random values.
class PackedTwins {
public:
    /// The type in which the dense twin stores what the packed linears unpack to.
    explicit PackedTwins(const std::string& family, bool packedScales = true,
                         kernels::DType denseType = kernels::DType::F32)
        : packedScales_(packedScales),
          source_(openModel("synthetic:tiny-" + family, {{"intermediate_size", "192"}, {"num_hidden_layers", "2"}})) {
        const unsigned seed = std::random_device()();
        testing::Test::RecordProperty("seed", std::to_string(seed));
        std::mt19937 random(seed);
        for (const TensorSpec& spec : expectedTensors(source_.config)) {
            const bool norm = spec.part == ModelPart::Norm;
            const double deviation = norm ? 0.05 : 1 / std::sqrt(static_cast<double>(spec.shape.back()));
            std::normal_distribution<float> normal(norm ? 1.0F : 0.0F, static_cast<float>(deviation));
            std::vector<float> values(static_cast<std::size_t>(kernels::Shape(spec.shape).count()));
            for (float& value : values) {
                value = normal(random);
            }
            before[spec.name] = storedAs(kernels::DType::F32, spec.shape, values);
            const bool linear = spec.part == ModelPart::Attention || spec.part == ModelPart::DenseMlp;
            if (!linear || spec.shape.size() != 2) {
                packed[spec.name] = dense[spec.name] = before[spec.name];
                continue;
            }
            addPackedLinear(packed, spec.name, spec.shape[0], spec.shape[1], packedScales, values);
            StoredBytes& twin = dense[spec.name] = {denseType, spec.shape, {}};
            const auto count = static_cast<std::int64_t>(values.size());
            twin.bytes.resize(kernels::bytesOf(denseType, count));
            kernels::storeFloats(denseType, values.data(), count, twin.bytes.data(), 0);
        }
    }

    std::string writePacked() {
        quantization["bnb_4bit_use_double_quant"] = packedScales_;
        return write(packed, quantization);
    }
    std::string writeDense() { return write(dense, nullptr); }
    std::string writeBefore() { return write(before, nullptr); }

    StoredTensors packed, dense;
    StoredTensors before; ///< the values that were packed
    nlohmann::json quantization = {
        {"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}};

private:
    std::string write(const StoredTensors& tensors, const nlohmann::json& quantized) {
        return writeStored(source_, tensors, quantized, folder_.file(fmt::format("model-{}", ++models_)));
    }

    bool packedScales_;
    ModelSource source_;
    TempFolder folder_;
    int models_ = 0;
};

} // namespace vitrine::engine::test
