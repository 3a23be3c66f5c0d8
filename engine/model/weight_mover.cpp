// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/weight_mover.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <thread>

#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {
namespace {

constexpr std::uint64_t kReadPiece = std::uint64_t{8} << 20;
constexpr std::uint64_t kReadBatch = std::uint64_t{256} << 20;

/// Disk and bus are charged as they would be busy, at the same time; a tensor is copied when it has been read.
class PricedMover final : public WeightMover {
public:
    PricedMover(kernels::Context& context, MovedCallback moved)
        : context_(context), moved_(std::move(moved)), begin_(context.clock().now()) {}

    void move(const WeightMove& move) override {
        context_.throwIfStopped();
        const kernels::DeviceTraits& traits = context_.traits();
        const auto duration = [](std::uint64_t bytes, double rate) {
            return rate > 0 ? static_cast<double>(bytes) / rate : 0;
        };
        const auto at = [&](double seconds) { return begin_ + static_cast<base::TimeNs>(std::llround(seconds * 1e9)); };
        const double before = static_cast<double>(context_.clock().now() - begin_) * 1e-9;
        const double readBegin = diskSeconds_;
        diskSeconds_ += duration(move.bytes, traits.diskBandwidth);
        const double copyBegin = std::max(before, diskSeconds_);
        const double copyEnd = copyBegin + duration(move.bytes, traits.hostToDeviceBandwidth);
        context_.joinStreams();
        context_.passCopyTime(copyEnd - before);
        const std::string& name = move.source->spec.name;
        context_.tracer().span("Read", name, at(readBegin), at(diskSeconds_), move.bytes);
        context_.tracer().span("Copy", name, at(copyBegin), context_.clock().now(), move.bytes);
        moved_(*move.source, move.bytes);
    }
    void wait(std::uint64_t) override { context_.joinStreams(); }
    void reuse() override { context_.joinStreams(); }
    void finish() override { context_.joinStreams(); }

private:
    kernels::Context& context_;
    MovedCallback moved_;
    base::TimeNs begin_;
    double diskSeconds_ = 0; ///< when the disk has read everything asked so far
};

/// Threads of the context's pool read straight into place, a batch of pieces at a time.
class HostMover final : public WeightMover {
public:
    HostMover(kernels::Context& context, MovedCallback moved) : context_(context), moved_(std::move(moved)) {}

    void move(const WeightMove& move) override {
        for (std::uint64_t done = 0; done < move.bytes; done += kReadPiece) {
            queue_.push_back(
                {move.source, move.offset + done, std::min(kReadPiece, move.bytes - done), move.out + done});
        }
        queuedBytes_ += move.bytes;
        if (queuedBytes_ >= kReadBatch) {
            finish();
        }
    }
    void wait(std::uint64_t) override { finish(); }
    void reuse() override {} // ops have run when they return
    void finish() override {
        if (queue_.empty()) {
            return;
        }
        context_.throwIfStopped();
        const base::TimeNs start = context_.clock().now();
        context_.hostPool().parallelFor(static_cast<std::int64_t>(queue_.size()), 1,
                                        [&](std::int64_t begin, std::int64_t end, int) {
                                            for (std::int64_t i = begin; i < end; ++i) {
                                                context_.throwIfStopped();
                                                read(queue_[static_cast<std::size_t>(i)]);
                                            }
                                        });
        context_.tracer().span("Read", queue_.front().source->spec.name, start, context_.clock().now(), queuedBytes_);
        moved_(*queue_.back().source, queuedBytes_);
        queue_.clear();
        queuedBytes_ = 0;
    }

private:
    static void read(const WeightMove& piece) {
        const Checkpoint::Location& location = *piece.source->location;
        location.file->read(*location.entry, piece.offset, piece.out, piece.bytes);
        checkMovedBytes(piece, piece.out);
    }

    kernels::Context& context_;
    MovedCallback moved_;
    std::vector<WeightMove> queue_;
    std::uint64_t queuedBytes_ = 0;
};

} // namespace

void checkMovedBytes(const WeightMove& move, const void* data) {
    const TensorSpec& spec = move.source->spec;
    const auto name = [&] { return fmt::format("{}: {}", move.source->location->file->path(), spec.name); };
    const std::span<const std::uint8_t> bytes(static_cast<const std::uint8_t*>(data), move.bytes);
    checkStoredBytes(spec.packing, spec.stored.field, spec.dtype, bytes, name, move.offset);
    if (spec.packed()) {
        checkStoredOrder(spec.packing, spec.stored.field, spec.weightShape[spec.weightShape.rank() - 1], bytes, name,
                         move.offset);
    }
}

PipelineShape pipelineShape(std::uint64_t total) {
    constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
    constexpr std::uint64_t kMostWorkers = 16;
    // Small models are not worth many megabytes of pinned memory.
    const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::uint64_t workers = std::clamp<std::uint64_t>(total / kPiece, 1, std::min(cores, kMostWorkers));
    constexpr std::uint64_t kUnit = SafetensorsFile::kDirectAlignment;
    const std::uint64_t piece = (std::min(kPiece, std::max<std::uint64_t>(total, 1)) + kUnit - 1) / kUnit * kUnit;
    return {static_cast<int>(workers), piece + 2 * kUnit, piece};
}

std::unique_ptr<WeightMover> makeWeightMover(kernels::Context& context, std::uint64_t total, MovedCallback moved) {
    if (context.can().virtualTime) {
        return std::make_unique<PricedMover>(context, std::move(moved));
    }
    if (context.can().runsOnHost) {
        return std::make_unique<HostMover>(context, std::move(moved));
    }
    const PipelineShape shape = pipelineShape(total);
    return makePipelineMover(context, kernels::makeUploadPort(context, shape.workers, shape.bufferBytes),
                             std::move(moved));
}

} // namespace vitrine::engine
