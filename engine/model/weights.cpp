// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/weights.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/synthesize.h"
#include "engine/model/weight_layout.h"
#include "engine/model/weight_mover.h"
#include "kernels/cuda/kept_state.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/memory/handover.h"
#include "kernels/ops/linear/weights.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::TensorView;

TensorView viewAt(void* data, DType dtype, const kernels::Shape& shape) {
    TensorView view;
    view.data = data;
    view.dtype = dtype;
    view.shape = shape;
    return view;
}

void* advanced(void* data, std::uint64_t bytes) {
    return static_cast<std::byte*>(data) + bytes;
}

kernels::Shape rowsOf(const std::vector<std::int64_t>& shape, std::int64_t rows) {
    std::vector<std::int64_t> dims = shape;
    dims[0] = rows;
    return kernels::Shape(dims);
}

/// Brings weights into place on one context and keeps account of bytes, times and progress.
class Loader {
public:
    /// `staging` (of `stagingBytes`, may be 0) is what expanded pieces pass through.
    Loader(kernels::Context& context, const ModelSource& source, const LoadOptions& options, std::uint64_t total,
           void* staging, std::uint64_t stagingBytes, base::ProgressSink* progress)
        : context_(context), source_(source), options_(options), total_(total), staging_(staging),
          halfBytes_(stagingBytes / 2), progress_(progress), begin_(context.clock().now()) {
        if (!source.synthetic() || !context.can().computesValues) {
            mover_ = makeWeightMover(context, total, [this](const WeightSource& moved, std::uint64_t bytes) {
                bytesRead_ += bytes;
                report(moved.spec.name, bytes);
            });
        }
    }

    /// Whole sources into place.
    void load(const WeightPiece& piece, void* data) {
        for (const WeightSource& source : piece.sources) {
            void* out = advanced(data, source.offset);
            if (mover_ != nullptr) {
                move(source, 0, source.bytes, out);
            } else {
                fill(source, viewAt(out, source.spec.dtype, kernels::Shape(source.spec.shape)));
            }
        }
    }

    /// Packed experts through staging into the expanded tensor: while one half is expanded, the other is filled.
    void expand(const WeightPiece& piece, const TensorView& out) {
        const std::int64_t experts = piece.shape[0];
        const std::int64_t step = stagedExperts(piece);
        for (std::int64_t begin = 0; begin < experts; begin += step) {
            const std::int64_t end = std::min(begin + step, experts);
            void* half = advanced(staging_, (chunks_ % 2) * halfBytes_);
            if (chunks_ >= 2 && mover_ != nullptr) {
                mover_->reuse();
            }
            ++chunks_;
            Expansion next;
            next.name = piece.name;
            next.op.weight = stageAll(piece, begin, end, half);
            next.op.out = kernels::sliceRows(out, begin, end);
            next.moves = moves_;
            if (waiting_) {
                run(*waiting_);
            }
            waiting_ = std::move(next);
        }
    }

    /// Everything is in place, on the device too.
    void finish() {
        if (waiting_) {
            run(*waiting_);
            waiting_.reset();
        }
        if (mover_ != nullptr) {
            mover_->finish();
        }
        context_.synchronize();
        reportSpans();
    }

    std::uint64_t bytesRead() const { return bytesRead_; }
    double seconds() const { return static_cast<double>(context_.clock().now() - begin_) * 1e-9; }

private:
    /// Experts that are on their way into one half of staging.
    struct Expansion {
        std::string name;
        kernels::Dequantize op;
        std::uint64_t moves = 0; ///< that must be in place
    };
    /// An expansion that was given to the context.
    struct Span {
        std::string name;
        kernels::Mark begin, end;
        std::uint64_t bytes = 0;
    };

    void move(const WeightSource& source, std::uint64_t offset, std::uint64_t bytes, void* out) {
        mover_->move({&source, offset, bytes, static_cast<std::byte*>(out)});
        ++moves_;
    }

    /// The tensors of a packed weight, one after the other.
    kernels::WeightView stageAll(const WeightPiece& piece, std::int64_t begin, std::int64_t end, void* half) {
        const auto experts = static_cast<std::uint64_t>(piece.shape[0]);
        const auto staged = static_cast<std::uint64_t>(stagedExperts(piece));
        kernels::WeightView packed;
        packed.format = piece.sources[0].spec.format;
        for (const WeightSource& source : piece.sources) {
            packed.field(source.spec.field) = stage(source, begin, end, half);
            half = advanced(half, kernels::alignedBytes(source.bytes / experts * staged));
        }
        return kernels::withShape(packed);
    }

    TensorView stage(const WeightSource& source, std::int64_t begin, std::int64_t end, void* out) {
        const auto perExpert = source.bytes / static_cast<std::uint64_t>(source.spec.shape[0]);
        const TensorView view = viewAt(out, source.spec.dtype, rowsOf(source.spec.shape, end - begin));
        if (mover_ != nullptr) {
            move(source, static_cast<std::uint64_t>(begin) * perExpert,
                 static_cast<std::uint64_t>(end - begin) * perExpert, out);
        } else {
            fillExperts(source, begin, end, view);
        }
        return view;
    }

    void run(const Expansion& expansion) {
        if (mover_ != nullptr) {
            mover_->wait(expansion.moves);
        }
        Span span{expansion.name, context_.mark(), {}, expansion.op.out.bytes()};
        if (spans_.empty()) {
            span.begin.wait();
            firstSpan_ = context_.clock().now();
        }
        context_.run(expansion.op);
        context_.joinStreams();
        span.end = context_.mark();
        spans_.push_back(std::move(span));
        if (!context_.can().runsAhead) {
            reportSpans();
        }
    }

    /// Where the context runs ahead this waits for it.
    void reportSpans() {
        const auto at = [&](const kernels::Mark& mark) {
            return firstSpan_ + static_cast<base::TimeNs>(std::llround(mark.secondsSince(spans_.front().begin) * 1e9));
        };
        for (const Span& span : spans_) {
            context_.tracer().span("Expand", span.name, at(span.begin), at(span.end), span.bytes);
        }
        spans_.clear();
    }

    void fill(const WeightSource& source, const TensorView& out) {
        context_.throwIfStopped();
        const base::TimeNs start = context_.clock().now();
        fillSynthetic(context_, source.spec, source_.config, source.index, options_.seed, out);
        context_.tracer().span("Fill", source.spec.name, start, context_.clock().now(), source.bytes);
        report(source.spec.name, source.bytes);
    }

    void fillExperts(const WeightSource& source, std::int64_t begin, std::int64_t end, const TensorView& out);

    void report(const std::string& name, std::uint64_t bytes) {
        done_ += bytes;
        if (progress_ != nullptr) {
            progress_->progress(source_.synthetic() ? "Making " + name : "Reading " + name, done_, total_);
        }
    }

    kernels::Context& context_;
    const ModelSource& source_;
    const LoadOptions& options_;
    std::uint64_t total_;
    void* staging_;
    std::uint64_t halfBytes_;
    base::ProgressSink* progress_;
    base::TimeNs begin_;
    std::uint64_t moves_ = 0;
    std::uint64_t chunks_ = 0; ///< that went through staging
    std::optional<Expansion> waiting_;
    std::vector<Span> spans_;    ///< that were not reported
    base::TimeNs firstSpan_ = 0; ///< when the first of them began
    std::uint64_t bytesRead_ = 0;
    std::uint64_t done_ = 0;
    std::unique_ptr<WeightMover> mover_; ///< null: a synthetic model is filled in place
};

void fillOne(kernels::Context& context, const RandomRule& rule, std::uint32_t index, std::uint64_t seed,
             std::int64_t expert, const TensorView& out) {
    kernels::FillRandom op;
    op.out = out;
    op.seed = seed + 0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(expert);
    op.stream = index;
    op.center = rule.center;
    op.deviation = rule.deviation;
    context.run(op);
}

void fillStack(kernels::Context& context, const TensorSpec& spec, const ModelConfig& config, std::uint32_t index,
               std::uint64_t seed, std::int64_t firstExpert, const TensorView& out) {
    for (std::int64_t i = 0; i < out.shape[0]; ++i) {
        fillOne(context, randomRule(config, spec), index, seed, firstExpert + i, kernels::sliceRows(out, i, i + 1));
    }
}

void Loader::fillExperts(const WeightSource& source, std::int64_t begin, std::int64_t end, const TensorView& out) {
    context_.throwIfStopped();
    const base::TimeNs start = context_.clock().now();
    fillStack(context_, source.spec, source_.config, source.index, options_.seed, begin, out);
    context_.tracer().span("Fill", source.spec.name, start, context_.clock().now(), out.bytes());
    report(source.spec.name,
           source.bytes / static_cast<std::uint64_t>(source.spec.shape[0]) * static_cast<std::uint64_t>(end - begin));
}

/// The kernels that fill synthetic tensors are compiled side by side; there is one for each kind of values.
void prefetchFills(kernels::Context& context, const ModelSource& source, const WeightLayout& layout,
                   const LoadOptions& options) {
    kernels::Prefetch prefetch(context);
    for (const WeightPiece& piece : layout.pieces) {
        for (const WeightSource& from : piece.sources) {
            const RandomRule rule = randomRule(source.config, from.spec);
            kernels::FillRandom op;
            op.out = viewAt(nullptr, from.spec.dtype, kernels::Shape{1});
            op.seed = options.seed;
            op.center = rule.center;
            op.deviation = rule.deviation;
            prefetch.add(op);
        }
    }
}

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

} // namespace

void fillSynthetic(kernels::Context& context, const TensorSpec& spec, const ModelConfig& config, std::uint32_t index,
                   std::uint64_t seed, const TensorView& out) {
    if (spec.shape.size() >= 3) {
        // One expert at a time, so that loading in pieces gives the same values.
        fillStack(context, spec, config, index, seed, 0, out);
    } else {
        fillOne(context, randomRule(config, spec), index, seed, 0, out);
    }
}

bool WeightStore::wouldKeep(kernels::Context& context, const ModelSource& source, const LoadOptions& options) {
    return context.kept() != nullptr && context.kept()->hasWeights(weightsKey(
                                            context, source, layOutWeights(source, options.dequantize), options.seed));
}

WeightStore::WeightStore(kernels::Context& context, const ModelSource& source, const LoadOptions& options,
                         base::ProgressSink* progress)
    : context_(context) {
    const WeightLayout layout = layOutWeights(source, options.dequantize);
    report_.residentBytes = layout.residentBytes;
    owned_.reserve(layout.pieces.size());
    kernels::KeptState* const kept = context.kept();
    const std::string key = kept != nullptr ? weightsKey(context, source, layout, options.seed) : std::string();
    if (kept != nullptr && kept->hasWeights(key)) {
        adopt(layout, kept->weights());
    } else {
        if (kept != nullptr) {
            kept->releaseWeights();
        }
        load(layout, source, options, progress);
    }
    key_ = key;
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
    const kernels::Tensor& tensor =
        owned_.emplace_back(*arena_, base::MemoryCategory::Weights, piece.name, piece.dtype, piece.shape);
    tensors_.emplace(piece.name, tensor.view());
    if (piece.format != kernels::WeightFormat::Dense) {
        kernels::WeightView& weight = packed_[piece.weight];
        weight.field(piece.field) = tensor.view();
        weight.format = piece.format;
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
    Loader loader(context, source, options, layout.sourceBytes, staging.view().data, layout.stagingBytes, progress);
    {
        LayerScope scope(context.tracer());
        for (const WeightPiece& piece : layout.pieces) {
            scope.enter(piece.layer);
            const kernels::Tensor& tensor = add(piece);
            if (piece.expand) {
                loader.expand(piece, tensor.view());
            } else {
                loader.load(piece, tensor.view().data);
            }
        }
    }
    loader.finish();
    report_.seconds = loader.seconds();
    report_.bytesRead = source.synthetic() && context.can().computesValues ? 0 : loader.bytesRead();
}

kernels::WeightView WeightStore::weight(std::string_view name) const {
    const auto it = packed_.find(name);
    return it == packed_.end() ? kernels::denseWeight(get(name)) : kernels::withShape(it->second);
}

const TensorView& WeightStore::get(std::string_view name) const {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) {
        throw base::Internal(fmt::format("the model has no tensor {}", name));
    }
    return it->second;
}

} // namespace vitrine::engine
