// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::TensorView;

namespace {

/// (rank, in) and (out, rank), or stacks of them; (vocab, rank) and (hidden, rank) of an embedding.
std::pair<Shape, Shape> shapesOf(const Parameter& parameter, std::int64_t rank) {
    const kernels::WeightView& weight = parameter.view;
    if (parameter.role == ParameterRole::Embedding) {
        return {Shape{weight.shape[0], rank}, Shape{weight.shape[1], rank}};
    }
    if (weight.shape.rank() == 3) {
        return {Shape{weight.experts(), rank, weight.inFeatures()},
                Shape{weight.experts(), weight.outFeatures(), rank}};
    }
    return {Shape{rank, weight.inFeatures()}, Shape{weight.outFeatures(), rank}};
}

/// Normal with deviation 1 (Box and Muller 1958).
std::vector<float> normalValues(std::int64_t count, base::PhiloxKey key) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < out.size(); i += 2) {
        const auto bits = base::philox4x32(key, i / 2, 0);
        const float radius = std::sqrt(-2 * std::log(base::uniformOpen(bits[0])));
        const float angle = 2 * std::numbers::pi_v<float> * base::uniformOpen(bits[1]);
        out[i] = radius * std::cos(angle);
        if (i + 1 < out.size()) {
            out[i + 1] = radius * std::sin(angle);
        }
    }
    return out;
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

std::vector<AdapterTarget> adapterTargets(std::span<const Parameter> parameters, const ParameterChoice& choice,
                                          const AdapterConfig& config) {
    std::vector<AdapterTarget> out;
    for (const Parameter& parameter : parameters) {
        if (isAdaptable(parameter) && choice.contains(parameter)) {
            out.push_back({parameter.name, config.rank, static_cast<float>(config.scaling(config.rank, config.alpha)),
                           parameter.role == ParameterRole::Embedding});
        }
    }
    if (out.empty()) {
        throw base::BadInput(
            fmt::format("train: \"{}\" names no linear of the model, so there is nothing to adapt", choice.text()));
    }
    return out;
}

Adapter::Adapter(Model& model, const std::vector<AdapterTarget>& targets) : model_(model), targets_(targets) {
    std::int64_t count = 0;
    std::vector<std::int64_t> offsets;
    for (const AdapterTarget& target : targets) {
        const auto parameter =
            std::find_if(model.parameters().begin(), model.parameters().end(),
                         [&](const Parameter& each) { return each.name == target.parameter && isAdaptable(each); });
        if (parameter == model.parameters().end()) {
            throw base::Internal(fmt::format("Adapter: {} is no linear of the model", target.parameter));
        }
        AdapterPart part;
        part.parameter = target.parameter;
        std::tie(part.view.a.shape, part.view.b.shape) = shapesOf(*parameter, target.rank);
        part.embedding = parameter->role == ParameterRole::Embedding;
        part.view.scale = target.scale;
        for (const TensorView* view : {&part.view.a, &part.view.b}) {
            offsets.push_back(count);
            count += paddedCount(view->shape.count());
        }
        parts_.push_back(part);
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
    }
    attach(true);
}

Adapter::~Adapter() {
    attach(false);
}

void Adapter::attach(bool attached) const {
    for (const AdapterPart& part : parts_) {
        if (attached && !part.merged.empty()) {
            model_.setMerged(part.parameter, part.merged, part.view);
        } else {
            model_.setAdapter(part.parameter, attached ? part.view : kernels::AdapterView{});
        }
    }
}

void Adapter::initialise(std::uint64_t seed) {
    if (!model_.context().can().computesValues) {
        return;
    }
    std::uint32_t stream = 0;
    for (const AdapterPart& part : parts_) {
        if (part.embedding) {
            const TensorView& b = part.view.b;
            uploadFloats(model_.context(), normalValues(b.shape.count(), base::philoxKey(seed, stream++)), b);
            continue;
        }
        const TensorView& a = part.view.a;
        const auto in = static_cast<float>(a.shape[a.shape.rank() - 1]);
        const std::vector<float> values =
            uniformValues(a.shape.count(), 1 / std::sqrt(in), base::philoxKey(seed, stream++));
        uploadFloats(model_.context(), values, a);
    }
}

void Adapter::read(const AdapterFile& file) {
    std::vector<float> a;
    std::vector<float> b;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        file.read(targets_[i], a, b);
        if (parts_[i].embedding) {
            a = transposedMatrix(a, parts_[i].view.a.shape[1], parts_[i].view.a.shape[0]);
        }
        uploadFloats(model_.context(), a, parts_[i].view.a);
        uploadFloats(model_.context(), b, parts_[i].view.b);
    }
}

std::vector<AdapterPartValues> Adapter::values(const std::function<TensorView(const TensorView&)>& of) const {
    std::vector<AdapterPartValues> out;
    for (const AdapterPart& part : parts_) {
        AdapterPartValues values{part.parameter, part.view.a.shape, part.view.b.shape,
                                 downloadFloats(model_.context(), of(part.view.a)),
                                 downloadFloats(model_.context(), of(part.view.b))};
        if (part.embedding) {
            const Shape& held = part.view.a.shape;
            values.a = transposedMatrix(values.a, held[0], held[1]);
            values.aShape = Shape{held[1], held[0]};
            values.embedding = true;
        }
        out.push_back(std::move(values));
    }
    return out;
}

std::vector<AdapterPartValues> Adapter::values() const {
    return values([](const TensorView& view) { return view; });
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
