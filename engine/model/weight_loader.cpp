// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/weight_loader.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/synthesize.h"
#include "engine/model/weight_packing.h"
#include "engine/parallel/shard_plan.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/formats/weight_formats.h"

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

kernels::Shape rowsOf(const kernels::Shape& shape, std::int64_t rows) {
    std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
    dims[0] = rows;
    return kernels::Shape(dims);
}

/// What a synthetic tensor is filled as: as it lies in memory.
TensorView filledView(const TensorSpec& spec, void* data) {
    return spec.packed() ? viewAt(data, spec.stored.memoryType, spec.stored.memoryShape)
                         : viewAt(data, spec.dtype, kernels::Shape(spec.shape));
}

/// Every expert of a stack has its own.
std::uint64_t seedOf(std::uint64_t seed, std::int64_t expert) {
    return seed + 0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(expert);
}

void fillOne(kernels::Context& context, const RandomRule& rule, std::uint32_t index, std::uint64_t seed,
             std::int64_t expert, const TensorView& out) {
    kernels::FillRandom op;
    op.out = out;
    op.seed = seedOf(seed, expert);
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

/// The part of one matrix, or of a tensor of fewer dimensions: `dims` and `slice` without experts.
void fillMatrixPart(kernels::Context& context, kernels::FillRandom fill, std::span<const std::int64_t> dims,
                    std::span<const DimSlice> slice, const TensorView& out) {
    std::size_t cut = 0; // the dimension that is not whole; the first one where all are
    std::int64_t inner = 1;
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        cut = slice[dim].size() != dims[dim] ? dim : cut;
    }
    for (std::size_t dim = cut + 1; dim < dims.size(); ++dim) {
        inner *= dims[dim];
    }
    const DimSlice& part = slice[cut];
    const std::int64_t blockElements = dims[cut] / part.blocks * inner;
    fill.part.run = part.count * inner;
    fill.part.stride = dims[cut] * inner;
    const std::int64_t each = out.shape.count() / part.blocks;
    if (part.blocks > 1 && each != fill.part.run) {
        throw base::Internal("a part of a random tensor has blocks in its rows");
    }
    for (std::int64_t block = 0; block < part.blocks; ++block) {
        fill.part.first = block * blockElements + part.begin * inner;
        fill.out = out;
        fill.out.data = static_cast<std::byte*>(out.data) + kernels::bytesOf(out.dtype, block * each);
        fill.out.shape = kernels::Shape{each};
        context.run(fill);
    }
}

/// Experts [begin, end) of the part that a rank has of a tensor; of others the whole part.
void fillPart(kernels::Context& context, const RankTensor& tensor, const ModelConfig& config, std::uint32_t index,
              std::uint64_t seed, std::int64_t begin, const TensorView& out) {
    const RandomRule rule = randomRule(config, tensor.wholeSpec());
    const std::span<const std::int64_t> dims = tensor.cut->memory.shape;
    const std::span<const DimSlice> slice = tensor.cut->memory.slice;
    const bool stack = dims.size() >= 3; // as fillSynthetic has it
    kernels::FillRandom fill;
    fill.stream = index;
    fill.center = rule.center;
    fill.deviation = rule.deviation;
    for (std::int64_t i = 0; i < (stack ? out.shape[0] : 1); ++i) {
        fill.seed = seedOf(seed, stack ? slice.front().begin + begin + i : 0);
        fillMatrixPart(context, fill, stack ? dims.subspan(1) : dims, stack ? slice.subspan(1) : slice,
                       stack ? kernels::sliceRows(out, i, i + 1) : out);
    }
}

} // namespace

WeightLoader::WeightLoader(kernels::Context& context, const ModelSource& source, const LoadOptions& options,
                           const WeightLayout& layout, void* staging, base::ProgressSink* progress)
    : context_(context), source_(source), options_(options), total_(layout.sourceBytes), staging_(staging),
      halfBytes_(layout.stagingBytes / 2), progress_(progress), begin_(context.clock().now()) {
    if (!source.synthetic() || !context.can().computesValues) {
        mover_ = makeWeightMover(context, total_, [this](const WeightSource& moved, std::uint64_t bytes) {
            bytesRead_ += bytes;
            report(moved.spec.name, bytes);
        });
    }
}

void WeightLoader::load(const WeightPiece& piece, const TensorView& out) {
    if (piece.expand) {
        expand(piece, out);
    } else if (piece.pack) {
        pack(piece, out);
    } else if (piece.widen) {
        widen(piece, out);
    } else {
        loadWhole(piece, out.data);
    }
}

void WeightLoader::loadWhole(const WeightPiece& piece, void* data) {
    for (const WeightSource& source : piece.sources) {
        void* out = advanced(data, source.offset);
        if (source.converts() && context_.can().computesValues) {
            convertStored(source, out);
        } else if (mover_ != nullptr) {
            move(source, 0, source.bytes, out);
        } else {
            fill(source, filledView(source.spec, out));
        }
    }
}

/// The half that the conversion before the last one has left.
void* WeightLoader::nextHalf() {
    if (chunks_ >= 2 && mover_ != nullptr) {
        mover_->reuse();
    }
    return advanced(staging_, (chunks_++ % 2) * halfBytes_);
}

void WeightLoader::convertLater(const std::string& name, const Convert& op) {
    Conversion next{name, op, moves_};
    if (waiting_) {
        convert(*waiting_);
    }
    waiting_ = std::move(next);
}

/// Bytes of a file that are others in memory: read as a whole, made on the host and sent to the device.
void WeightLoader::convertStored(const WeightSource& source, void* out) {
    context_.throwIfStopped();
    const Checkpoint::Location& location = *source.location;
    const base::TimeNs start = context_.clock().now();
    std::vector<std::uint8_t> stored(location.entry->bytes);
    readParallel(pool(), location, 0, std::as_writable_bytes(std::span(stored)));
    checkMovedBytes({&source, 0, stored.size(), nullptr}, stored.data());
    std::vector<std::uint8_t> memory(source.bytes);
    toMemory(source.spec.packing, source.spec.stored, stored, memory);
    context_.upload(memory.data(), out, memory.size());
    bytesRead_ += stored.size();
    context_.tracer().span("Convert", source.spec.name, start, context_.clock().now(), stored.size());
    report(source.spec.name, source.bytes);
}

void WeightLoader::expand(const WeightPiece& piece, const TensorView& out) {
    for (std::size_t first = 0; first < piece.sources.size();) {
        const std::span<const WeightSource> weight = sourcesOfWeight(piece, first);
        first += weight.size();
        const TensorSpec& spec = weight.front().spec;
        const std::int64_t matrices = matricesOf(weight);
        const std::int64_t step = stagedMatrices(weight);
        for (std::int64_t begin = 0; begin < matrices; begin += step) {
            const std::int64_t end = std::min(begin + step, matrices);
            kernels::Dequantize op;
            op.weight = stageAll(weight, begin, end, nextHalf());
            if (spec.weightShape.rank() == 3) {
                op.out = kernels::sliceRows(out, begin, end);
            } else {
                const std::uint64_t skipped = kernels::bytesOf(out.dtype, weight.front().row * spec.weightShape[1]);
                op.out = viewAt(advanced(out.data, skipped), out.dtype, spec.weightShape);
            }
            convertLater(piece.name, op);
        }
    }
}

base::ThreadPool& WeightLoader::pool() {
    if (context_.can().runsOnHost) {
        return context_.hostPool();
    }
    if (ownPool_ == nullptr) {
        ownPool_ = std::make_unique<base::ThreadPool>();
    }
    return *ownPool_;
}

void WeightLoader::pack(const WeightPiece& piece, const TensorView& out) {
    if (piece.field == kernels::WeightField::Data) {
        packed_ = packSource(piece);
    }
    if (context_.can().computesValues) {
        context_.upload(packed_.field(piece.field).data(), out.data, out.bytes());
    }
}

PackedValues WeightLoader::packSource(const WeightPiece& piece) {
    const WeightSource& source = piece.sources.front();
    if (!context_.can().computesValues) {
        move(source, 0, source.bytes, static_cast<std::byte*>(staging_));
        return {};
    }
    ReadDense read;
    if (mover_ == nullptr) {
        void* half = nextHalf();
        --chunks_; // the values have left it when this returns
        fill(source, viewAt(half, source.spec.dtype, kernels::Shape(source.spec.shape)));
        read = [this, half](std::uint64_t offset, std::span<std::byte> bytes) {
            context_.download(advanced(half, offset), bytes.data(), bytes.size());
        };
    } else {
        read = [this, &source](std::uint64_t offset, std::span<std::byte> bytes) {
            readParallel(pool(), *source.location, offset, bytes);
            bytesRead_ += bytes.size();
            report(source.spec.name, bytes.size());
        };
    }
    const base::TimeNs start = context_.clock().now();
    PackedValues packed = packDense(piece.packing.format, source, pool(), context_, read);
    context_.tracer().span("Pack", source.spec.name, start, context_.clock().now(), source.bytes);
    return packed;
}

void WeightLoader::widen(const WeightPiece& piece, const TensorView& out) {
    for (const WeightSource& source : piece.sources) {
        const DType narrow = source.spec.dtype;
        const std::uint64_t width = kernels::bytesOf(narrow, 1);
        const auto count = static_cast<std::int64_t>(source.bytes / width);
        const std::int64_t step = mover_ == nullptr ? count : static_cast<std::int64_t>(halfBytes_ / width);
        for (std::int64_t begin = 0; begin < count; begin += step) {
            const std::int64_t end = std::min(begin + step, count);
            void* half = nextHalf();
            if (mover_ == nullptr) {
                fill(source, viewAt(half, narrow, kernels::Shape(source.spec.shape)));
            } else {
                move(source, static_cast<std::uint64_t>(begin) * width, static_cast<std::uint64_t>(end - begin) * width,
                     half);
            }
            const auto first = static_cast<std::int64_t>(source.offset / width) + begin;
            const kernels::Shape shape{end - begin};
            convertLater(piece.name, kernels::Cast{viewAt(half, narrow, shape),
                                                   viewAt(advanced(out.data, kernels::bytesOf(out.dtype, first)),
                                                          out.dtype, shape)});
        }
    }
}

void WeightLoader::finish() {
    if (waiting_) {
        convert(*waiting_);
        waiting_.reset();
    }
    if (mover_ != nullptr) {
        mover_->finish();
    }
    context_.synchronize();
    reportSpans();
}

void WeightLoader::move(const WeightSource& source, std::uint64_t offset, std::uint64_t bytes, void* out) {
    mover_->move({&source, offset, bytes, static_cast<std::byte*>(out)});
    ++moves_;
}

/// The tensors of a packed weight, one after the other.
kernels::WeightView WeightLoader::stageAll(std::span<const WeightSource> weight, std::int64_t begin, std::int64_t end,
                                           void* half) {
    const auto matrices = static_cast<std::uint64_t>(matricesOf(weight));
    const auto staged = static_cast<std::uint64_t>(stagedMatrices(weight));
    const TensorSpec& spec = weight.front().spec;
    kernels::WeightView packed;
    for (const WeightSource& source : weight) {
        packed.field(source.spec.stored.field) = stage(source, begin, end, half);
        half = advanced(half, kernels::alignedBytes(source.bytes / matrices * staged));
    }
    const kernels::Shape& whole = spec.weightShape;
    const bool stack = whole.rank() == 3;
    describePacked(spec.packing, stack ? kernels::Shape{end - begin, whole[1], whole[2]} : whole,
                   whole[whole.rank() - 2], packed);
    return packed;
}

TensorView WeightLoader::stage(const WeightSource& source, std::int64_t begin, std::int64_t end, void* out) {
    const StoredTensor& stored = source.spec.stored;
    if (source.spec.weightShape.rank() < 3) {
        const TensorView whole = viewAt(out, stored.memoryType, stored.memoryShape);
        if (source.converts() && context_.can().computesValues) {
            convertStored(source, out);
        } else if (mover_ != nullptr) {
            move(source, 0, source.bytes, out);
        } else {
            fill(source, whole);
        }
        return whole;
    }
    const auto perExpert = source.bytes / static_cast<std::uint64_t>(stored.memoryShape[0]);
    const TensorView view = viewAt(out, stored.memoryType, rowsOf(stored.memoryShape, end - begin));
    if (mover_ != nullptr) {
        move(source, static_cast<std::uint64_t>(begin) * perExpert, static_cast<std::uint64_t>(end - begin) * perExpert,
             out);
    } else {
        fillExperts(source, begin, end, view);
    }
    return view;
}

void WeightLoader::convert(const Conversion& conversion) {
    if (mover_ != nullptr) {
        mover_->wait(conversion.moves);
    }
    Span span{conversion.name, context_.mark(), {}, 0};
    if (spans_.empty()) {
        span.begin.wait();
        firstSpan_ = context_.clock().now();
    }
    std::visit(
        [&](const auto& op) {
            span.bytes = op.out.bytes();
            context_.run(op);
        },
        conversion.op);
    context_.joinStreams();
    span.end = context_.mark();
    spans_.push_back(std::move(span));
    if (!context_.can().runsAhead) {
        reportSpans();
    }
}

/// Where the context runs ahead this waits for it.
void WeightLoader::reportSpans() {
    const auto at = [&](const kernels::Mark& mark) {
        return firstSpan_ + static_cast<base::TimeNs>(std::llround(mark.secondsSince(spans_.front().begin) * 1e9));
    };
    for (const Span& span : spans_) {
        context_.tracer().span("Expand", span.name, at(span.begin), at(span.end), span.bytes);
    }
    spans_.clear();
}

void WeightLoader::fill(const WeightSource& source, const TensorView& out) {
    context_.throwIfStopped();
    const base::TimeNs start = context_.clock().now();
    if (source.part != nullptr) {
        fillPart(context_, *source.part, source_.config, source.index, options_.seed, 0, out);
    } else {
        fillSynthetic(context_, source.spec, source_.config, source.index, options_.seed, out);
    }
    context_.tracer().span("Fill", source.spec.name, start, context_.clock().now(), source.bytes);
    report(source.spec.name, source.bytes);
}

void WeightLoader::report(const std::string& name, std::uint64_t bytes) {
    done_ += bytes;
    if (progress_ != nullptr) {
        progress_->progress(source_.synthetic() ? "Making " + name : "Reading " + name, done_, total_);
    }
}

void WeightLoader::fillExperts(const WeightSource& source, std::int64_t begin, std::int64_t end,
                               const TensorView& out) {
    context_.throwIfStopped();
    const base::TimeNs start = context_.clock().now();
    if (source.part != nullptr) {
        fillPart(context_, *source.part, source_.config, source.index, options_.seed, begin, out);
    } else {
        fillStack(context_, source.spec, source_.config, source.index, options_.seed, begin, out);
    }
    context_.tracer().span("Fill", source.spec.name, start, context_.clock().now(), out.bytes());
    report(source.spec.name, source.bytes / static_cast<std::uint64_t>(matricesOf({&source, 1})) *
                                 static_cast<std::uint64_t>(end - begin));
}

void prefetchFills(kernels::Context& context, const ModelSource& source, const WeightLayout& layout,
                   const LoadOptions& options) {
    kernels::Prefetch prefetch(context);
    for (const WeightPiece& piece : layout.pieces) {
        for (const WeightSource& from : piece.sources) {
            const RandomRule rule = randomRule(source.config, from.spec);
            kernels::FillRandom op;
            op.out = filledView(from.spec, nullptr);
            op.out.shape = kernels::Shape{1};
            op.seed = options.seed;
            op.center = rule.center;
            op.deviation = rule.deviation;
            prefetch.add(op);
        }
    }
}

void fillSynthetic(kernels::Context& context, const TensorSpec& spec, const ModelConfig& config, std::uint32_t index,
                   std::uint64_t seed, const TensorView& out) {
    if (out.shape.rank() >= 3) {
        // One expert at a time, so that loading in pieces gives the same values.
        fillStack(context, spec, config, index, seed, 0, out);
    } else {
        fillOne(context, randomRule(config, spec), index, seed, 0, out);
    }
}

} // namespace vitrine::engine
