// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/merged_weights.h"

#include <array>

#include "base/error.h"
#include "engine/quant/format_options.h"
#include "kernels/context/context.h"
#include "kernels/ops/linear/weights.h"

namespace vitrine::engine {

namespace {

/// The tensors of a format that can be merged.
constexpr std::array kMergedFields = {kernels::WeightField::Data, kernels::WeightField::Scales};

} // namespace

MergedWeights::MergedWeights(Model& model, Adapter& adapter) : model_(model), adapter_(adapter) {
    for (std::size_t i = 0; i < adapter.parts().size(); ++i) {
        const kernels::LinearView* linear = model.decoder().linear(adapter.parts()[i].parameter);
        if (linear != nullptr && canMergePacked(linear->weight.format)) {
            copies_.push_back({i, linear->weight, linear->weight});
        }
    }
    if (copies_.empty()) {
        throw base::BadInput("merge_aware: the adapter is beside no weight that can be packed again; name experts in "
                             "train, and load them with weights quantized");
    }
    allocate();
    attach(true);
}

MergedWeights::~MergedWeights() {
    attach(false);
}

void MergedWeights::allocate() {
    std::uint64_t bytes = 0;
    for (Copy& copy : copies_) {
        for (const kernels::WeightField field : kMergedFields) {
            bytes += kernels::alignedBytes(copy.weight.field(field).bytes());
        }
    }
    arena_ = model_.context().memory().reserveArena(bytes, "merged weights");
    for (Copy& copy : copies_) {
        for (const kernels::WeightField field : kMergedFields) {
            kernels::TensorView& view = copy.merged.field(field);
            tensors_.emplace_back(*arena_, base::MemoryCategory::Weights, adapter_.parts()[copy.part].parameter,
                                  view.dtype, view.shape);
            view = tensors_.back().view();
        }
    }
}

void MergedWeights::refresh() {
    kernels::Context& context = model_.context();
    const kernels::TraceScope scope(context.tracer(), base::ScopeKind::Layer, "merge");
    for (const Copy& copy : copies_) {
        context.throwIfStopped();
        context.run(kernels::MergePacked{copy.weight, adapter_.parts()[copy.part].view, copy.merged});
    }
}

void MergedWeights::attach(bool attached) {
    for (const Copy& copy : copies_) {
        adapter_.setMerged(copy.part, attached ? copy.merged : kernels::WeightView{});
    }
    adapter_.attach(true);
}

} // namespace vitrine::engine
