// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/convert/calibration.h"

#include <cstring>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/checkpoint/single_expert.h"
#include "engine/model/embed_tokens.h"
#include "engine/model/layer_forward.h"
#include "engine/quant/compensated_rounding.h"
#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/ops/rowwise/gated_activation.h"

namespace vitrine::engine {
namespace {

using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

/// A matrix (rows, in), whatever its last dimensions are.
TensorView asRows(const TensorView& tensor) {
    return kernels::reshaped(tensor, Shape{tensor.shape[0], tensor.shape.count() / tensor.shape[0]});
}

/// What the linear is given, as Calibration names it; empty: it is none of a layer.
std::string inputsOf(const std::string& weight) {
    const auto is = [&](const char* projection) { return weight.ends_with(std::string(projection) + "_proj.weight"); };
    std::string inputs;
    if (is("q") || is("k") || is("v")) {
        inputs = "q";
    } else if (is("o")) {
        inputs = "o";
    } else if (is("gate") || is("up")) {
        inputs = "gate";
    } else if (is("down")) {
        inputs = "down";
    }
    const SingleExpert single(weight);
    return single.expert < 0 ? inputs : fmt::format("{}.{}", inputs, single.expert);
}

} // namespace

Calibration::Calibration(Model& model, const std::vector<std::vector<std::int32_t>>& documents)
    : model_(model), runner_(model.context(), model.context().memory().general(), model.options().computeDType) {
    for (const std::vector<std::int32_t>& document : documents) {
        TrainingBatch batch;
        batch.addDocument(document);
        const BatchInputs& inputs = *batches_.emplace_back(std::make_unique<BatchInputs>(runner_, model_, batch));
        const Tensor& x =
            hidden_.emplace_back(runner_.activation("hidden", Shape{inputs.ids().shape[0], model_.config().hidden}));
        embedTokens(runner_, model_.decoder(), inputs.ids(), x.view());
    }
}

const std::vector<float>* Calibration::factorOf(std::int32_t layer, const std::string& name) {
    if (layer < layer_) {
        throw base::Internal("calibration: layers are asked for in their order");
    }
    while (layer_ < layer) {
        runLayer(layer_ + 1);
    }
    const std::string inputs = inputsOf(name);
    const auto found = rows_.find(inputs);
    if (layer < 0 || found == rows_.end() || found->second.values.empty()) {
        return nullptr;
    }
    if (factorInputs_ != inputs) {
        base::ThreadPool& pool = model_.context().hostPool();
        const Rows& rows = found->second;
        factor_ = inverseFactor(productOfInputs(rows.values, rows.in, pool), rows.in, pool);
        factorInputs_ = inputs;
    }
    return &factor_;
}

void Calibration::runLayer(std::int32_t layer) {
    rows_.clear();
    factorInputs_.clear();
    const DecoderLayer& decoder = model_.layers()[static_cast<std::size_t>(layer)];
    const kernels::TraceScope scope(model_.context().tracer(), base::ScopeKind::Layer, "calibrate layer", layer);
    for (std::size_t i = 0; i < batches_.size(); ++i) {
        model_.context().throwIfStopped();
        addAttention(decoder, batches_[i]->tokens(), hidden_[i]);
        addMlp(decoder, hidden_[i]);
    }
    layer_ = layer;
}

void Calibration::addAttention(const DecoderLayer& layer, const LayerTokens& tokens, Tensor& x) {
    const Tensor input = runner_.activation("input", x.view().shape);
    model_.context().copy(x.view().data, input.view().data, x.view().bytes());
    AttentionActivations kept;
    attentionForward(runner_, {model_.config(), layer, tokens, nullptr}, input.view(), x.view(), &kept);
    add("q", kept.normed.empty() ? input.view() : kept.normed.view());
    add("o", asRows(kept.out.view()));
}

void Calibration::addMlp(const DecoderLayer& layer, Tensor& x) {
    const Tensor input = runner_.activation("input", x.view().shape);
    model_.context().copy(x.view().data, input.view().data, x.view().bytes());
    MlpActivations kept;
    mlpForward(runner_, model_.config(), layer, input.view(), x.view(), &kept);
    if (!layer.config.moe) {
        add("gate", kept.normed.empty() ? input.view() : kept.normed.view());
        add("down", activated(kept.gateUp.view(), kernels::GateLayout::Halves).view());
        return;
    }
    const Tensor down = activated(kept.gateUp.view(), model_.config().gateLayout);
    const TensorView starts = kept.starts.view();
    std::vector<std::int32_t> first(static_cast<std::size_t>(starts.shape[0]));
    model_.context().download(starts.data, first.data(), starts.bytes());
    for (std::size_t expert = 0; expert + 1 < first.size(); ++expert) {
        if (first[expert] < first[expert + 1]) {
            add(fmt::format("gate.{}", expert), kernels::sliceRows(kept.rows.view(), first[expert], first[expert + 1]));
            add(fmt::format("down.{}", expert), kernels::sliceRows(down.view(), first[expert], first[expert + 1]));
        }
    }
}

void Calibration::add(const std::string& inputs, const TensorView& rows) {
    Rows& to = rows_[inputs];
    to.in = rows.shape[1];
    const std::vector<float> values = downloadFloats(model_.context(), rows);
    to.values.insert(to.values.end(), values.begin(), values.end());
}

Tensor Calibration::activated(const TensorView& gateUp, kernels::GateLayout layout) const {
    Tensor out = runner_.activation("activated", Shape{gateUp.shape[0], gateUp.shape[1] / 2});
    kernels::GatedActivation op;
    op.gateUp = gateUp;
    op.out = out.view();
    op.activation = model_.config().activation;
    op.layout = layout;
    op.alpha = static_cast<float>(model_.config().swigluAlpha);
    op.limit = static_cast<float>(model_.config().swigluLimit);
    runner_.run(op);
    return out;
}

} // namespace vitrine::engine
