// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapter.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "engine/training/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::TensorView;

namespace {

/// (rank, in) and (out, rank), or stacks of them.
std::pair<Shape, Shape> shapesOf(const kernels::WeightView& weight, std::int64_t rank) {
    if (weight.shape.rank() == 3) {
        return {Shape{weight.experts(), rank, weight.inFeatures()},
                Shape{weight.experts(), weight.outFeatures(), rank}};
    }
    return {Shape{rank, weight.inFeatures()}, Shape{weight.outFeatures(), rank}};
}

/// Uniform in +-bound.
std::vector<float> uniformValues(std::int64_t count, float bound, base::PhiloxKey key) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < out.size(); i += 4) {
        const auto bits = base::philox4x32(key, i / 4, 0);
        for (std::size_t j = i; j < std::min(i + 4, out.size()); ++j) {
            out[j] = bound * (2 * base::uniformOpen(bits[j - i]) - 1);
        }
    }
    return out;
}

} // namespace

float AdapterOptions::scale() const {
    const auto r = static_cast<double>(rank);
    return static_cast<float>(alpha / (rankStabilised ? std::sqrt(r) : r));
}

Adapter::Adapter(Model& model, const ParameterChoice& choice, const AdapterOptions& options, std::uint64_t seed)
    : model_(model), options_(options) {
    std::int64_t count = 0;
    std::vector<std::int64_t> offsets;
    for (const Parameter& parameter : model.parameters()) {
        if (!isLinear(parameter) || !choice.contains(parameter)) {
            continue;
        }
        AdapterPart part;
        part.parameter = parameter.name;
        std::tie(part.view.a.shape, part.view.b.shape) = shapesOf(parameter.view, options.rank);
        part.view.scale = options.scale();
        for (TensorView* view : {&part.view.a, &part.view.b}) {
            offsets.push_back(count);
            count += paddedCount(view->shape.count());
        }
        parts_.push_back(part);
    }
    if (parts_.empty()) {
        throw base::BadInput(
            fmt::format("train: \"{}\" names no linear of the model, so there is nothing to adapt", choice.text()));
    }
    const DType type = model.options().computeDType;
    kernels::Context& context = model.context();
    arena_ = context.memory().reserveArena(kernels::alignedBytes(kernels::bytesOf(type, count)), "adapter");
    values_ = kernels::Tensor(*arena_, MemoryCategory::Weights, "adapter", type, Shape{count});
    context.run(kernels::SetZero{values_.view()});
    auto offset = offsets.begin();
    for (AdapterPart& part : parts_) {
        for (TensorView* view : {&part.view.a, &part.view.b}) {
            view->dtype = type;
            view->data = values_.view().as<std::byte>() + kernels::bytesOf(type, *offset++);
        }
        model.setAdapter(part.parameter, part.view);
    }
    fill(seed);
}

Adapter::~Adapter() {
    for (const AdapterPart& part : parts_) {
        model_.setAdapter(part.parameter, {});
    }
}

void Adapter::fill(std::uint64_t seed) {
    if (!model_.context().can().computesValues) {
        return;
    }
    std::uint32_t stream = 0;
    for (const AdapterPart& part : parts_) {
        const TensorView& a = part.view.a;
        const auto in = static_cast<float>(a.shape[a.shape.rank() - 1]);
        const std::vector<float> values =
            uniformValues(a.shape.count(), 1 / std::sqrt(in), base::philoxKey(seed, stream++));
        uploadFloats(model_.context(), values, a);
    }
}

std::vector<TrainedTensor> Adapter::tensors() const {
    std::vector<TrainedTensor> out;
    for (const AdapterPart& part : parts_) {
        out.push_back({part.parameter + ".lora_A", part.view.a});
        out.push_back({part.parameter + ".lora_B", part.view.b});
    }
    return out;
}

} // namespace vitrine::engine
