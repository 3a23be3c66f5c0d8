// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/weights.h"

#include <fmt/format.h>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/model/weight_layout.h"
#include "engine/model/weight_loader.h"
#include "kernels/cuda/kept_state.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/memory/handover.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::TensorView;

/// One scope for the pieces of a layer that come one after the other.
class LayerScope {
public:
    explicit LayerScope(kernels::Tracer& tracer) : tracer_(tracer) {}
    void enter(std::int32_t layer) {
        if (layer != layer_) {
            scope_.reset();
            layer_ = layer;
            if (layer >= 0) {
                scope_ = std::make_unique<kernels::TraceScope>(tracer_, base::ScopeKind::Layer, "layer", layer);
            }
        }
    }

private:
    kernels::Tracer& tracer_;
    std::int32_t layer_ = -1;
    std::unique_ptr<kernels::TraceScope> scope_;
};

/// Everything that the bytes of the arena depend on.
std::string weightsKey(kernels::Context& context, const ModelSource& source, const WeightLayout& layout,
                       std::uint64_t seed) {
    return fmt::format("{} {} {}", kernels::backendName(context.backend()), context.traits().name,
                       contentDigest(layout, source, seed));
}

/// What is added to the scales of weights that were packed at load is known to this store alone, so they are not kept.
bool keepsWeights(kernels::Context& context, const LoadOptions& options) {
    return context.kept() != nullptr && options.pack == kernels::WeightFormat::Dense;
}

} // namespace

bool WeightStore::wouldKeep(kernels::Context& context, const ModelSource& source, const LoadOptions& options) {
    return keepsWeights(context, options) &&
           context.kept()->hasWeights(weightsKey(context, source, layOutWeights(source, options), options.seed));
}

WeightStore::WeightStore(kernels::Context& context, const ModelSource& source, const LoadOptions& options,
                         base::ProgressSink* progress)
    : context_(context) {
    const WeightLayout layout = layOutWeights(source, options);
    report_.residentBytes = layout.residentBytes;
    owned_.reserve(layout.pieces.size());
    kernels::KeptState* const kept = context.kept();
    const bool keeps = keepsWeights(context, options);
    const std::string key = keeps ? weightsKey(context, source, layout, options.seed) : std::string();
    if (keeps && kept->hasWeights(key)) {
        adopt(layout, kept->weights());
    } else {
        if (kept != nullptr) {
            kept->releaseWeights();
        }
        load(layout, source, options, progress);
    }
    key_ = key;
}

void WeightStore::markChanged() {
    key_.clear();
}

WeightStore::~WeightStore() {
    if (key_.empty()) {
        return;
    }
    try {
        context_.synchronize();
        owned_.clear();
        context_.kept()->giveWeights(std::move(key_), context_.memory().detachArena(std::move(arena_)));
    } catch (const base::Error& error) {
        // What a faulted device holds is worth nothing.
        base::logDebug(fmt::format("weights are not kept: {}", error.message()));
    }
}

void WeightStore::adopt(const WeightLayout& layout, kernels::KeptReservation& block) {
    const base::TimeNs begin = context_.clock().now();
    arena_ = context_.memory().adoptArena(block, "weights");
    LayerScope scope(context_.tracer());
    for (const WeightPiece& piece : layout.pieces) {
        scope.enter(piece.layer);
        add(piece);
    }
    report_.kept = true;
    report_.seconds = static_cast<double>(context_.clock().now() - begin) * 1e-9;
}

/// The same pieces in the same order lie at the same places, whoever filled the arena.
const kernels::Tensor& WeightStore::add(const WeightPiece& piece) {
    kernels::WeightView* const weight = piece.weight.empty() ? nullptr : &packed_[piece.weight];
    std::string format;
    if (weight != nullptr) {
        describePacked(piece.packing, piece.weightShape, piece.weightRows, *weight);
        format = kernels::weightFormatWords(*weight, piece.weightRows);
    }
    const kernels::Tensor& tensor =
        owned_.emplace_back(*arena_, base::MemoryCategory::Weights, piece.name, piece.dtype, piece.shape, format);
    tensors_.emplace(piece.name, tensor.view());
    if (weight != nullptr) {
        weight->field(piece.field) = tensor.view();
    }
    return tensor;
}

void WeightStore::load(const WeightLayout& layout, const ModelSource& source, const LoadOptions& options,
                       base::ProgressSink* progress) {
    kernels::Context& context = context_;
    arena_ = context.memory().reserveArena(layout.arenaBytes, "weights");
    kernels::Tensor staging;
    if (layout.stagingBytes > 0) {
        staging = kernels::Tensor(context.memory().general(), base::MemoryCategory::Workspace, "load.staging",
                                  DType::U8, kernels::Shape{static_cast<std::int64_t>(layout.stagingBytes)});
    }
    if (context.can().compilesKernels && source.synthetic()) {
        prefetchFills(context, source, layout, options);
    }
    // After the staging buffer: what is on its way there ends before the buffer goes.
    WeightLoader loader(context, source, options, layout, staging.view().data, progress);
    {
        LayerScope scope(context.tracer());
        for (const WeightPiece& piece : layout.pieces) {
            scope.enter(piece.layer);
            loader.load(piece, add(piece).view());
            if (piece.pack) {
                packed_[piece.weight].scaleOffset = loader.scaleOffset();
            }
        }
    }
    loader.finish();
    report_.seconds = loader.seconds();
    report_.bytesRead = source.synthetic() && context.can().computesValues ? 0 : loader.bytesRead();
}

kernels::WeightView WeightStore::weight(std::string_view name) const {
    const auto it = packed_.find(name);
    return it == packed_.end() ? kernels::denseWeight(get(name)) : it->second;
}

const TensorView& WeightStore::get(std::string_view name) const {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) {
        throw base::Internal(fmt::format("the model has no tensor {}", name));
    }
    return it->second;
}

} // namespace vitrine::engine
