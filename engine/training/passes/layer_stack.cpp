// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/layer_stack.h"

#include <utility>

#include "kernels/context/row_parts.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::Tensor;
using kernels::TensorView;

LayerPass LayerStack::pass(const DecoderLayer& layer) const {
    const bool flat = inputs_.sharesPrompts();
    return {model_.config(), layer, inputs_.tokens(), nullptr, flat ? &masks_.of(layer, inputs_.places()) : nullptr};
}

bool LayerStack::repeatsMlp() const {
    const std::int64_t tile = techniques_.mlpTile;
    return techniques_.checkpointing != Checkpointing::None || (tile > 0 && tile < inputs_.tokens().tokens());
}

DecoderLayer LayerStack::layerFrom(std::size_t index, std::int64_t firstRow) const {
    return extras_.dropout.applied(model_.layers()[index], static_cast<std::int64_t>(index), firstRow);
}

RouterReplay LayerStack::replay(std::size_t index, std::int64_t begin, std::int64_t end) const {
    const TensorView given = inputs_.experts().of(index);
    return {given.empty() ? given : kernels::sliceRows(given, begin, end), {}};
}

void LayerStack::mlpPart(std::size_t index, std::int64_t begin, const TensorView& x, const TensorView& out,
                         MlpActivations* keep, const RouterObserver* told) const {
    RouterReplay replayed = replay(index, begin, begin + x.shape[0]);
    Tensor differing;
    if (!replayed.given.empty()) {
        differing = runner_.make(MemoryCategory::Activations, "experts.differing", kernels::DType::F32,
                                 kernels::Shape{x.shape[0], 1});
        replayed.differing = differing.view();
    }
    mlpForward(runner_, model_.config(), layerFrom(index, begin), x, out, keep, told, replayed);
    if (!differing.empty()) {
        extras_.disagreement->add(runner_, index, differing.view());
    }
}

void LayerStack::mlp(std::size_t index, const TensorView& x, const TensorView& out, MlpActivations* keep) const {
    RouterObserver observer;
    if (extras_.balance != nullptr) {
        observer = extras_.balance->observer(runner_);
    }
    const RouterObserver* told = extras_.balance != nullptr ? &observer : nullptr;
    if (keep != nullptr) {
        mlpPart(index, 0, x, out, keep, told);
        return;
    }
    kernels::forRowParts(runner_.context(), x.shape[0], techniques_.mlpTile, [&](std::int64_t begin, std::int64_t end) {
        mlpPart(index, begin, kernels::sliceRows(x, begin, end), kernels::sliceRows(out, begin, end), nullptr, told);
    });
}

Tensor LayerStack::forward(Tensor x, bool keep) {
    const bool whole = keep && techniques_.checkpointing == Checkpointing::None;
    const bool offload = techniques_.checkpointing == Checkpointing::Offload;
    kept_.clear();
    kept_.resize(model_.layers().size());
    for (std::size_t i = 0; i < model_.layers().size(); ++i) {
        runner_.context().throwIfStopped();
        const kernels::TraceScope scope(runner_.context().tracer(), base::ScopeKind::Layer, "forward layer",
                                        static_cast<std::int32_t>(i));
        const DecoderLayer layer = layerFrom(i, 0);
        if (!keep) {
            attentionForward(runner_, pass(layer), x.view(), x.view(), nullptr);
            mlp(i, x.view(), x.view(), nullptr);
            continue;
        }
        Tensor middle = runner_.activation("hidden", x.view().shape);
        attentionForward(runner_, pass(layer), x.view(), middle.view(), whole ? &kept_[i].attention : nullptr);
        store_.put(i, std::move(x), offload);
        if (!whole) {
            mlp(i, middle.view(), middle.view(), nullptr);
            x = std::move(middle);
            continue;
        }
        x = runner_.activation("hidden", middle.view().shape);
        mlp(i, middle.view(), x.view(), repeatsMlp() ? nullptr : &kept_[i].mlp);
        kept_[i].middle = std::move(middle);
    }
    return x;
}

void LayerStack::backward(const GradientMap& gradients, const TensorView& gradient) {
    for (std::size_t i = model_.layers().size(); i-- > 0;) {
        runner_.context().throwIfStopped();
        layerBackward(i, gradients, gradient);
        kept_[i] = {};
    }
    store_.clear();
}

void LayerStack::layerBackward(std::size_t index, const GradientMap& gradients, const TensorView& gradient) {
    const DecoderLayer layer = layerFrom(index, 0);
    kernels::Tracer& tracer = runner_.context().tracer();
    const auto number = static_cast<std::int32_t>(index);
    const Tensor input = store_.take(runner_, index);
    if (index > 0) {
        store_.prefetch(runner_, index - 1);
    }
    Kept& kept = kept_[index];
    if (kept.middle.empty()) {
        const kernels::TraceScope scope(tracer, base::ScopeKind::Layer, "recompute", number);
        kept.middle = runner_.activation("hidden", input.view().shape);
        attentionForward(runner_, pass(layer), input.view(), kept.middle.view(), &kept.attention);
    }
    const kernels::TraceScope scope(tracer, base::ScopeKind::Layer, "backward layer", number);
    const ModelConfig& config = model_.config();
    const TensorView balance = extras_.balance != nullptr ? extras_.balance->gradProbabilities() : TensorView{};
    if (repeatsMlp()) {
        kernels::forRowParts(runner_.context(), gradient.shape[0], techniques_.mlpTile,
                             [&](std::int64_t begin, std::int64_t end) {
                                 const TensorView x = kernels::sliceRows(kept.middle.view(), begin, end);
                                 const TensorView rows = kernels::sliceRows(gradient, begin, end);
                                 MlpActivations again;
                                 const DecoderLayer tile = layerFrom(index, begin);
                                 mlpForward(runner_, config, tile, x, {}, &again, nullptr, replay(index, begin, end));
                                 mlpBackward(runner_, config, tile, gradients, x, again, rows, rows, balance);
                             });
    } else {
        mlpBackward(runner_, config, layer, gradients, kept.middle.view(), kept.mlp, gradient, gradient, balance);
    }
    kept.middle.reset();
    attentionBackward(runner_, pass(layer), masks_.of(layer, inputs_.places()), gradients, input.view(), kept.attention,
                      gradient, gradient);
}

} // namespace vitrine::engine
