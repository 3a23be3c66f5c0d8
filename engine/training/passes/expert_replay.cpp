// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/expert_replay.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/model/step.h"
#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/sum_rows.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::TensorView;

namespace {

/// Of each layer among those with experts, or -1.
std::vector<std::int64_t> placesOfExpertLayers(const Model& model) {
    std::vector<std::int64_t> out;
    std::int64_t next = 0;
    for (const DecoderLayer& layer : model.layers()) {
        out.push_back(layer.config.moe ? next++ : -1);
    }
    return out;
}

void checkForm(const GivenExperts& experts, const ModelConfig& config, std::int64_t layers) {
    if (layers == 0) {
        throw base::BadInput("experts: they are given for a model without experts; leave them out");
    }
    if (experts.layers != layers || experts.k != config.expertsPerToken) {
        throw base::BadInput(fmt::format("experts: {} experts of a token are given in each of {} layers, and the model "
                                         "has {} in each of {}; give those of a sampler of this model",
                                         experts.k, experts.layers, config.expertsPerToken, layers));
    }
}

/// Where a row of ids stands, for errors.
struct RowPlace {
    std::int64_t token, layer;

    [[noreturn]] void fail(const std::string& what) const {
        throw base::BadInput(fmt::format("experts: token {}, layer {}: {}", token, layer, what));
    }
};

/// Checks a row of k ids and writes them; whether they are given.
bool takeRow(std::span<const std::uint16_t> from, std::int64_t experts, const RowPlace& place, std::int32_t* to) {
    if (from.front() == GivenExperts::kNone) {
        std::fill_n(to, from.size(), -1);
        return false;
    }
    for (std::size_t j = 0; j < from.size(); ++j) {
        if (from[j] >= experts) {
            place.fail(fmt::format("id {} is none of the model's {} experts", from[j], experts));
        }
        if (std::ranges::count(from.first(j), from[j]) > 0) {
            place.fail(fmt::format("expert {} stands there twice", from[j]));
        }
        to[j] = from[j];
    }
    return true;
}

/// The ids layer by layer; `given` counts those that are given.
std::vector<std::int32_t> idsByLayer(const GivenExperts& experts, std::int64_t tokens, std::int64_t ofModel,
                                     std::int64_t& given) {
    const auto k = static_cast<std::size_t>(experts.k);
    if (experts.ids.size() != static_cast<std::size_t>(tokens) * experts.width()) {
        throw base::BadInput(fmt::format("experts: there are {} ids, and {} tokens need {} each; give a record for "
                                         "every token",
                                         experts.ids.size(), tokens, experts.width()));
    }
    std::vector<std::int32_t> out(experts.ids.size());
    for (std::int64_t token = 0; token < tokens; ++token) {
        const std::span<const std::uint16_t> record = experts.record(token);
        for (std::int64_t layer = 0; layer < experts.layers; ++layer) {
            const std::span<const std::uint16_t> row = record.subspan(static_cast<std::size_t>(layer) * k, k);
            std::int32_t* to = out.data() + (layer * tokens + token) * experts.k;
            given += takeRow(row, ofModel, {token, layer}, to) ? experts.k : 0;
        }
    }
    return out;
}

} // namespace

ExpertRows::ExpertRows(const OpRunner& runner, const Model& model, const TrainingBatch& batch) {
    const GivenExperts& experts = batch.experts;
    if (experts.empty()) {
        return;
    }
    places_ = placesOfExpertLayers(model);
    checkForm(experts, model.config(), std::ranges::count_if(places_, [](std::int64_t place) { return place >= 0; }));
    const std::int64_t tokens = batch.count();
    std::vector<std::int32_t> ids;
    if (inputValues(runner.context()) == InputValues::Filled) {
        ids = idsByLayer(experts, tokens, model.config().experts, count_);
    }
    ids_ =
        runner.make(MemoryCategory::Activations, "batch.experts", DType::I32, Shape{experts.layers, tokens, experts.k});
    runner.context().upload(ids.data(), ids_.view().data, ids_.view().bytes());
}

TensorView ExpertRows::of(std::size_t layer) const {
    if (places_.empty() || places_[layer] < 0) {
        return {};
    }
    const Shape& all = ids_.view().shape;
    const TensorView rows = kernels::reshaped(ids_.view(), Shape{all[0] * all[1], all[2]});
    return kernels::sliceRows(rows, places_[layer] * all[1], (places_[layer] + 1) * all[1]);
}

void ExpertDisagreement::begin() {
    given_ = 0;
    if (!sums_.empty()) {
        model_.context().run(kernels::SetZero{sums_.view()});
    }
}

void ExpertDisagreement::beginPass(const ExpertRows& rows) {
    if (sums_.empty()) {
        kernels::Context& context = model_.context();
        sums_ = kernels::Tensor(context.memory().general(), MemoryCategory::Other, "experts.differing.sum", DType::F32,
                                Shape{static_cast<std::int64_t>(model_.layers().size())});
        context.run(kernels::SetZero{sums_.view()});
    }
    given_ += rows.count();
}

void ExpertDisagreement::add(const OpRunner& runner, std::size_t layer, const TensorView& differing) {
    const auto place = static_cast<std::int64_t>(layer);
    runner.run(kernels::SumRows{differing, kernels::sliceRows(sums_.view(), place, place + 1), true, {}});
}

double ExpertDisagreement::share() const {
    if (given_ == 0) {
        return 0;
    }
    const std::vector<float> sums = downloadFloats(model_.context(), sums_.view());
    return std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(given_);
}

} // namespace vitrine::engine
