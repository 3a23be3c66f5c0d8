// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/lab_weights.h"

#include <charconv>
#include <fmt/format.h>
#include <string_view>

#include "base/error.h"
#include "engine/workload/convert/weight_reader.h"

namespace vitrine::engine {
namespace {

/// The number behind `word` in a name: 12 for ".layers." in "model.layers.12.mlp"; -1 where there is none.
std::int64_t numberAfter(std::string_view name, std::string_view word) {
    const std::size_t at = name.find(word);
    std::int64_t number = -1;
    if (at != std::string_view::npos) {
        const std::string_view digits = name.substr(at + word.size());
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    }
    return number;
}

/// "down" of "model.layers.12.mlp.experts.3.down_proj.weight".
std::string roleOf(const PackableWeight& weight) {
    if (weight.part == ModelPart::Router) {
        return "router";
    }
    std::string_view name = moduleOf(weight.name);
    const bool shared = name.find("shared_expert") != std::string_view::npos;
    name = name.substr(name.rfind('.') + 1);
    const std::size_t ending = name.find("_proj");
    std::string role(name.substr(0, ending));
    if (ending != std::string_view::npos) {
        role += name.substr(ending + std::string_view("_proj").size());
    }
    return shared ? "shared " + role : role;
}

} // namespace

std::vector<LabMatrix> labMatrices(const ModelConfig& config) {
    std::vector<LabMatrix> all;
    for (const PackableWeight& weight : packableWeights(config)) {
        const MatrixSize size = matrixOf(weight);
        const bool stack = weight.shape.size() == 3;
        for (std::int64_t i = 0; i < matricesOf(weight); ++i) {
            LabMatrix matrix{weight, i, {}, weight.part == ModelPart::Router};
            matrix.lab.name = weight.name;
            matrix.lab.layer = static_cast<std::int32_t>(numberAfter(weight.name, "layers."));
            matrix.lab.role = roleOf(weight);
            matrix.lab.expert = stack ? i : numberAfter(weight.name, ".experts.");
            matrix.lab.out = size.out;
            matrix.lab.in = size.in;
            all.push_back(std::move(matrix));
        }
    }
    return all;
}

bool canRound(const PrecisionFormat& format, const MatrixSize& size) {
    if (!format.quantization) {
        return false;
    }
    try {
        checkPackable(format.quantization->packing, "weight", size);
    } catch (const base::BadInput&) {
        return false;
    } catch (const base::Unsupported&) {
        return false;
    }
    return true;
}

std::uint64_t packedBytes(const PrecisionFormat& format, const MatrixSize& size) {
    const WeightPacking& packing = format.quantization->packing;
    PackedValues tensors;
    tensors.scaleType = scaleTypeOf(packing, kernels::DType::BF16);
    return viewOf(packing, size, tensors).bytes();
}

RoundedMatrix::RoundedMatrix(const PrecisionFormat& format, const std::string& name, const MatrixSize& size,
                             kernels::DType dtype, std::span<const float> values, base::ThreadPool& pool) {
    WeightPacking packing = format.quantization->packing;
    try {
        packed_ = packMatrix(packing, size, format.quantization->symmetric, dtype, values, pool);
    } catch (const base::BadInput& error) {
        throw base::BadInput(fmt::format("{}: {}", name, error.message()));
    }
    view_ = viewOf(packing, size, packed_);
}

std::vector<float> RoundedMatrix::expanded(base::ThreadPool& pool) const {
    std::vector<float> values(static_cast<std::size_t>(view_.outFeatures() * view_.inFeatures()));
    expandMatrix(view_, values, pool);
    return values;
}

} // namespace vitrine::engine
