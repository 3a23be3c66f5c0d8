// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench load: reading a checkpoint into place beside what its two halves can do alone, both measured in the same run:
// parallel reads into the loader's (on CUDA pinned) buffers, and copies of such buffers to the device.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/model/weight_mover.h"
#include "engine/quant/format_options.h"
#include "engine/workload/bench/bench.h"
#include "engine/workload/experiment/results.h"
#include "kernels/context/upload_port.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLoadTimes = 3; ///< at least
constexpr std::uint64_t kTargetBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kCopiedBytes = std::uint64_t{8} << 30;

struct FilePiece {
    const Checkpoint::Location* location = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

class LoadBench {
public:
    LoadBench(const Run& run, const ModelSource& source, kernels::Context& context)
        : run_(run), source_(source), context_(context), times_(std::max(kLoadTimes, run.repeats())),
          shape_(pipelineShape(source.checkpoint->totalBytes())) {
        for (const auto& [name, location] : source.checkpoint->tensors()) {
            for (std::uint64_t done = 0; done < location.entry->bytes; done += shape_.pieceBytes) {
                pieces_.push_back({&location, done, std::min(shape_.pieceBytes, location.entry->bytes - done)});
            }
        }
    }

    /// Bytes per second of the loader's threads reading every tensor into buffers of the kind that it uses.
    double readRate() {
        base::ThreadPool pool(shape_.workers);
        const kernels::Buffer buffers(context_.memory().host(),
                                      shape_.bufferBytes * static_cast<std::uint64_t>(pool.threads()),
                                      {base::MemoryCategory::Workspace, "bench.buffers", kernels::DType::U8, {}});
        return rate(source_.checkpoint->totalBytes(), [&] {
            pool.parallelFor(
                static_cast<std::int64_t>(pieces_.size()), 1, [&](std::int64_t begin, std::int64_t end, int worker) {
                    auto* buffer = static_cast<std::byte*>(buffers.data()) +
                                   shape_.bufferBytes * static_cast<std::uint64_t>(worker);
                    for (std::int64_t i = begin; i < end; ++i) {
                        context_.throwIfStopped();
                        const FilePiece& piece = pieces_[static_cast<std::size_t>(i)];
                        piece.location->file->read(*piece.location->entry, piece.offset, buffer, piece.bytes);
                    }
                });
        });
    }

    /// Bytes per second of copies from pinned buffers to the device, sent as the loader does.
    double copyRate() {
        base::ThreadPool pool(shape_.workers);
        const auto upload = kernels::makeUploadPort(context_, pool.threads(), shape_.bufferBytes);
        const std::uint64_t piece = shape_.pieceBytes;
        const std::uint64_t places = std::max<std::uint64_t>(1, kTargetBytes / piece);
        const std::unique_ptr<kernels::Arena> arena = context_.memory().reserveArena(places * piece, "bench.target");
        const kernels::Buffer target(*arena, places * piece,
                                     {base::MemoryCategory::Workspace, "bench.target", kernels::DType::U8, {}});
        const std::uint64_t count = std::max<std::uint64_t>(1, kCopiedBytes / piece);
        return rate(count * piece, [&] {
            pool.parallelFor(
                static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end, int worker) {
                    for (std::int64_t i = begin; i < end; ++i) {
                        const auto number = static_cast<std::uint64_t>(i);
                        const void* from = upload->buffer(worker);
                        upload->send(worker, from, static_cast<std::byte*>(target.data()) + number % places * piece,
                                     piece, number);
                    }
                });
            upload->finish();
            upload->takeCopied();
        });
    }

    LoadReport loadOnce() {
        const LoadOptions options{run_.spec.text("weights") == "dequantized", false, run_.seed(),
                                  formatNamed(run_.spec.text("weights"))};
        return WeightStore(context_, source_, options, run_.sinks.progress).report();
    }

    double loadRate() {
        std::vector<double> seconds;
        LoadReport report;
        for (std::int64_t i = 0; i < times_; ++i) {
            report = loadOnce();
            seconds.push_back(report.seconds);
        }
        return static_cast<double>(report.bytesRead) / median(seconds);
    }

private:
    /// Once unmeasured (the first pass fills the page cache), then the median.
    template <class Work> double rate(std::uint64_t bytes, const Work& work) {
        std::vector<double> seconds;
        for (std::int64_t i = 0; i <= times_; ++i) {
            const base::TimeNs begin = context_.clock().now();
            work();
            if (i > 0) {
                seconds.push_back(static_cast<double>(context_.clock().now() - begin) * 1e-9);
            }
        }
        return static_cast<double>(bytes) / median(seconds);
    }

    const Run& run_;
    const ModelSource& source_;
    kernels::Context& context_;
    std::int64_t times_;
    PipelineShape shape_;
    std::vector<FilePiece> pieces_;
};

Json rateRow(const char* name, double bytesPerSecond, double ceiling = 0) {
    return benchRow(name, bytesPerSecond * 1e-9, "GB/s", ceiling * 1e-9);
}

} // namespace

void benchLoad(const Run& run) {
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    addContextMetrics(run, *context);
    if (source.synthetic() || !context->can().computesValues) {
        throw base::BadInput(
            "model: bench load measures files; write some with `vitrine synthesize --output DIR` and name "
            "that folder, on the CPU or a GPU");
    }
    LoadBench bench(run, source, *context);
    Json rows = Json::array();
    const double read = bench.readRate();
    rows.push_back(rateRow(context->can().runsAhead ? "parallel reads into pinned memory" : "parallel reads", read));
    // Before other pinned memory lies ready: this is what a run that loads once waits for.
    const LoadReport first = bench.loadOnce();
    double ceiling = read;
    if (context->can().runsAhead) {
        const double copy = bench.copyRate();
        rows.push_back(rateRow("copies from pinned memory to the device", copy));
        ceiling = std::min(read, copy);
    }
    rows.push_back(rateRow("load, the first", static_cast<double>(first.bytesRead) / first.seconds, ceiling));
    rows.push_back(rateRow("load", bench.loadRate(), ceiling));
    run.metrics[result::kBytesRead.key] = first.bytesRead;
    run.metrics[result::kResidentBytes.key] = first.residentBytes;
    run.metrics[result::kRows.key] = std::move(rows);
    addMemoryMetrics(run.metrics, *context);
}

} // namespace vitrine::engine
