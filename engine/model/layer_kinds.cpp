// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/layer_kinds.h"

#include <cstdint>
#include <map>

namespace vitrine::engine {
namespace {

/// The numbers that the ops of a layer depend on, one after the other.
class KindKey {
public:
    explicit KindKey(const DecoderLayer& layer) {
        add(layer.config.window);
        add(layer.config.moe ? 1 : 0);
        for (const kernels::BoundProgram* program : {&layer.attentionScore, &layer.attentionMask}) {
            add(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(program->program)));
        }
        for (const kernels::NormWeights* norm :
             {&layer.attentionNorm, &layer.qNorm, &layer.kNorm, &layer.attentionPostNorm, &layer.mlpNorm,
              &layer.mlpPostNorm, &layer.latent.queryNorm, &layer.latent.keyNorm}) {
            add(norm->weight);
            add(static_cast<std::int64_t>(norm->form));
        }
        add(layer.sinks);
        add(layer.latent.up);
        add(layer.routerCorrection);
        for (const kernels::LinearView* linear :
             {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.router, &layer.gateUp, &layer.down,
              &layer.sharedGate, &layer.sharedUp, &layer.sharedDown, &layer.latent.queryDown, &layer.latent.keyDown}) {
            add(*linear);
        }
    }
    const std::vector<std::int64_t>& key() const { return key_; }

private:
    void add(std::int64_t number) { key_.push_back(number); }
    void add(const kernels::TensorView& tensor) {
        add(static_cast<std::int64_t>(tensor.dtype));
        add(tensor.empty() ? -1 : tensor.shape.rank());
        for (int i = 0; !tensor.empty() && i < tensor.shape.rank(); ++i) {
            add(tensor.shape[i]);
        }
    }
    void add(const kernels::AdapterView& adapter) {
        add(adapter.a);
        add(adapter.b);
        add(adapter.dropout.probability > 0 ? 1 : 0);
    }
    void add(const kernels::LinearView& linear) {
        const kernels::WeightView& weight = linear.weight;
        add(static_cast<std::int64_t>(weight.format));
        add(weight.group);
        add(weight.transposed ? 1 : 0);
        for (const kernels::TensorView* part : {&weight.data, &weight.scales, &weight.zeros, &weight.scaleScales}) {
            add(*part);
        }
        add(linear.bias);
        add(linear.adapter);
        add(linear.merged);
    }

    std::vector<std::int64_t> key_;
};

} // namespace

std::vector<int> layerKinds(std::span<const DecoderLayer> layers) {
    std::map<std::vector<std::int64_t>, int> kinds;
    std::vector<int> out;
    out.reserve(layers.size());
    for (const DecoderLayer& layer : layers) {
        out.push_back(kinds.try_emplace(KindKey(layer).key(), static_cast<int>(kinds.size())).first->second);
    }
    return out;
}

} // namespace vitrine::engine
