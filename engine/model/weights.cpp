// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/weights.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <thread>

#include "base/error.h"
#include "engine/checkpoint/synthesize.h"
#include "engine/model/weight_plan.h"
#include "engine/quant/mxfp4.h"
#include "kernels/ops/weights.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::TensorView;

constexpr std::uint64_t kReadPiece = std::uint64_t{8} << 20;
constexpr std::uint64_t kReadBatch = std::uint64_t{256} << 20;
constexpr int kUploadThreads = 16;

/// Bytes of one source that go to one address.
struct ReadTask {
    const WeightSource* source = nullptr;
    std::uint64_t offset = 0; ///< inside the tensor
    std::uint64_t bytes = 0;
    std::byte* out = nullptr;
};

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

/// Moves weights into place on one context and keeps account of bytes, times and progress.
class Loader {
public:
    Loader(kernels::Context& context, const ModelSource& source, const LoadOptions& options, std::uint64_t total,
           base::ProgressSink* progress)
        : context_(context), source_(source), options_(options), total_(total), progress_(progress),
          begin_(context.clock().now()) {}

    /// Whole sources into place.
    void load(const WeightPiece& piece, void* data) {
        for (const WeightSource& source : piece.sources) {
            if (source.location == nullptr && !context_.isMeta()) {
                fill(source,
                     viewAt(advanced(data, source.offset), source.spec.dtype, kernels::Shape(source.spec.shape)));
            } else {
                enqueue(source, 0, source.bytes, advanced(data, source.offset));
            }
        }
        if (queuedBytes_ >= kReadBatch) {
            flush();
        }
    }

    /// Packed experts through `staging` into the expanded tensor.
    void expand(const WeightPiece& piece, const TensorView& out, void* staging) {
        flush();
        const WeightSource& blocks = piece.sources[0];
        const WeightSource& scales = piece.sources[1];
        const std::int64_t experts = piece.shape[0];
        const std::int64_t step = stagedExperts(piece);
        const auto blockBytes = blocks.bytes / static_cast<std::uint64_t>(experts);
        const auto scaleBytes = scales.bytes / static_cast<std::uint64_t>(experts);
        void* stagedScales = advanced(staging, kernels::alignedBytes(blockBytes * static_cast<std::uint64_t>(step)));
        for (std::int64_t begin = 0; begin < experts; begin += step) {
            const std::int64_t end = std::min(begin + step, experts);
            stage(blocks, begin, end, blockBytes, staging);
            stage(scales, begin, end, scaleBytes, stagedScales);
            flush();
            if (kernels::MetaContext* meta = context_.meta()) {
                meta->joinStreams();
            }
            const base::TimeNs start = context_.clock().now();
            kernels::DequantizeMxfp4 op;
            op.weight.blocks = viewAt(staging, DType::U8, rowsOf(blocks.spec.shape, end - begin));
            op.weight.scales = viewAt(stagedScales, DType::U8, rowsOf(scales.spec.shape, end - begin));
            op.out = kernels::sliceRows(out, begin, end);
            context_.run(op);
            if (kernels::MetaContext* meta = context_.meta()) {
                meta->joinStreams();
            }
            waitForDevice(); // the staging buffer is written again
            context_.tracer().span("Expand", piece.name, start, context_.clock().now(), op.out.bytes());
        }
    }

    /// Everything is in place, on the device too.
    void finish() {
        flush();
        waitForDevice();
    }

    /// Waits for what is queued.
    void flush() {
        if (queue_.empty()) {
            return;
        }
        context_.throwIfStopped();
        if (context_.isMeta()) {
            chargeQueue();
        } else {
            readQueue();
        }
        bytesRead_ += queuedBytes_;
        report(queue_.back().source->spec.name, queuedBytes_);
        queue_.clear();
        queuedBytes_ = 0;
    }

    std::uint64_t bytesRead() const { return bytesRead_; }
    double seconds() const { return static_cast<double>(context_.clock().now() - begin_) * 1e-9; }

private:
    void waitForDevice() {
        if (kernels::CudaContext* gpu = context_.cuda()) {
            gpu->synchronize();
        }
    }

    void enqueue(const WeightSource& source, std::uint64_t offset, std::uint64_t bytes, void* out) {
        const std::uint64_t piece = context_.isMeta() ? std::max<std::uint64_t>(bytes, 1) : kReadPiece;
        for (std::uint64_t done = 0; done < bytes; done += piece) {
            queue_.push_back(
                {&source, offset + done, std::min(piece, bytes - done), static_cast<std::byte*>(advanced(out, done))});
        }
        queuedBytes_ += bytes;
    }

    void stage(const WeightSource& source, std::int64_t begin, std::int64_t end, std::uint64_t perExpert, void* out) {
        if (source.location != nullptr || context_.isMeta()) {
            enqueue(source, static_cast<std::uint64_t>(begin) * perExpert,
                    static_cast<std::uint64_t>(end - begin) * perExpert, out);
            return;
        }
        fillExperts(source, begin, end, viewAt(out, source.spec.dtype, rowsOf(source.spec.shape, end - begin)));
    }

    void readQueue() {
        const base::TimeNs start = context_.clock().now();
        if (context_.cuda() != nullptr && upload_ == nullptr) {
            startUpload();
        }
        base::ThreadPool& pool = readers_ == nullptr ? context_.cpu()->pool() : *readers_;
        pool.parallelFor(static_cast<std::int64_t>(queue_.size()), 1,
                         [&](std::int64_t begin, std::int64_t end, int worker) {
                             for (std::int64_t i = begin; i < end; ++i) {
                                 context_.throwIfStopped();
                                 read(queue_[static_cast<std::size_t>(i)], worker);
                             }
                         });
        if (upload_ != nullptr) {
            upload_->finish();
        }
        context_.tracer().span("Read", queue_.front().source->spec.name, start, context_.clock().now(), queuedBytes_);
    }

    void read(const ReadTask& task, int worker) {
        const Checkpoint::Location& location = *task.source->location;
        void* out = upload_ == nullptr ? task.out : upload_->buffer(worker);
        location.file->read(*location.entry, task.offset, out, task.bytes);
        checkScales(task, out);
        if (upload_ != nullptr) {
            upload_->send(worker, task.out, task.bytes);
        }
    }

    /// Reading threads for a GPU: the file system's cache gives more to several.
    void startUpload() {
        const int threads =
            std::min(kUploadThreads, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
        readers_ = std::make_unique<base::ThreadPool>(threads);
        upload_ = std::make_unique<kernels::CudaUpload>(*context_.cuda(), context_.memory().host(), readers_->threads(),
                                                        kReadPiece);
    }

    /// One scale that is no number would poison every token.
    static void checkScales(const ReadTask& task, const void* data) {
        const TensorSpec& spec = task.source->spec;
        if (spec.dtype == DType::U8 && spec.name.ends_with("_scales")) {
            checkMxfp4Scales({static_cast<const std::uint8_t*>(data), task.bytes},
                             fmt::format("{}: {}", task.source->location->file->path(), spec.name), task.offset);
        }
    }

    /// Disk and bus work at the same time; a tensor is copied when it has been read.
    void chargeQueue() {
        const kernels::DeviceTraits& traits = context_.traits();
        const auto duration = [](std::uint64_t bytes, double rate) {
            return rate > 0 ? static_cast<double>(bytes) / rate : 0;
        };
        for (const ReadTask& task : queue_) {
            const base::TimeNs before = context_.clock().now();
            const double readBegin = diskSeconds_;
            diskSeconds_ += duration(task.bytes, traits.diskBandwidth);
            const double copyBegin = std::max(static_cast<double>(before - begin_) * 1e-9, diskSeconds_);
            const double copyEnd = copyBegin + duration(task.bytes, traits.hostToDeviceBandwidth);
            context_.meta()->joinStreams();
            context_.meta()->addCopy(copyEnd - static_cast<double>(before - begin_) * 1e-9);
            const auto at = [&](double seconds) {
                return begin_ + static_cast<base::TimeNs>(std::llround(seconds * 1e9));
            };
            const std::string& name = task.source->spec.name;
            context_.tracer().span("Read", name, at(readBegin), at(diskSeconds_), task.bytes);
            context_.tracer().span("Copy", name, at(copyBegin), context_.clock().now(), task.bytes);
        }
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
    base::ProgressSink* progress_;
    base::TimeNs begin_;
    std::vector<ReadTask> queue_;
    std::uint64_t queuedBytes_ = 0;
    std::uint64_t bytesRead_ = 0;
    std::uint64_t done_ = 0;
    std::unique_ptr<base::ThreadPool> readers_;   ///< with `upload_`
    std::unique_ptr<kernels::CudaUpload> upload_; ///< on CUDA: files go through pinned memory
    double diskSeconds_ = 0;                      ///< when the disk has read everything asked so far
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

WeightStore::WeightStore(kernels::Context& context, const ModelSource& source, const LoadOptions& options,
                         base::ProgressSink* progress) {
    const WeightPlan plan = planWeights(source, options.dequantize);
    arena_ = context.memory().reserveArena(plan.arenaBytes, "weights");
    Loader loader(context, source, options, plan.sourceBytes, progress);
    std::optional<kernels::Tensor> staging;
    if (plan.stagingBytes > 0) {
        staging.emplace(context.memory().general(), base::MemoryCategory::Workspace, "load.staging", DType::U8,
                        kernels::Shape{static_cast<std::int64_t>(plan.stagingBytes)});
    }
    owned_.reserve(plan.pieces.size());
    std::int32_t layer = -1;
    std::optional<kernels::TraceScope> scope;
    for (const WeightPiece& piece : plan.pieces) {
        if (piece.layer != layer) {
            scope.reset();
            layer = piece.layer;
        }
        if (layer >= 0 && !scope) {
            scope.emplace(context.tracer(), base::ScopeKind::Layer, "layer", layer);
        }
        const kernels::Tensor& tensor =
            owned_.emplace_back(*arena_, base::MemoryCategory::Weights, piece.name, piece.dtype, piece.shape);
        tensors_.emplace(piece.name, tensor.view());
        if (piece.expand) {
            loader.expand(piece, tensor.view(), staging->view().data);
        } else {
            loader.load(piece, tensor.view().data);
        }
    }
    scope.reset();
    loader.finish();
    report_.seconds = loader.seconds();
    report_.bytesRead = source.synthetic() && !context.isMeta() ? 0 : loader.bytesRead();
    report_.residentBytes = plan.residentBytes;
}

WeightStore::~WeightStore() = default;

const TensorView& WeightStore::get(std::string_view name) const {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) {
        throw base::Internal(fmt::format("the model has no tensor {}", name));
    }
    return it->second;
}

TensorView WeightStore::find(std::string_view name) const {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? TensorView{} : it->second;
}

} // namespace vitrine::engine
