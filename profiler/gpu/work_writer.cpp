// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/work_writer.h"

#include <algorithm>
#include <optional>

namespace vitrine::profiler {

namespace {

/// Records that wait for their step, at most: beyond, the oldest are written under the scope that they ran with.
constexpr std::size_t kMaxWaiting = std::size_t{1} << 20;

bool sameShape(const KernelShape& a, const KernelShape& b) {
    return a.grid == b.grid && a.block == b.block && a.sharedBytes == b.sharedBytes && a.registers == b.registers;
}

} // namespace

std::string_view laneName(WorkKind kind) {
    switch (kind) {
    case WorkKind::Kernel:
        return "Kernels";
    case WorkKind::Copy:
        return "Copies";
    case WorkKind::Memset:
        return "Memsets";
    case WorkKind::Sync:
        return "Sync";
    case WorkKind::Overhead:
        return "Profiler overhead";
    case WorkKind::Graph:
        break;
    }
    return "Graphs";
}

WorkWriter::WorkWriter(base::TraceSink& sink, base::TimeNs start) : sink_(sink), start_(start) {
    for (std::size_t kind = 0; kind < kWorkKinds; ++kind) {
        lanes_[kind] = sink.intern(laneName(static_cast<WorkKind>(kind)));
    }
}

const WorkWriter::Named& WorkWriter::named(const DeviceWork& work) {
    const std::string_view symbol = work.name;
    const auto known = names_.find(symbol);
    if (known != names_.end()) {
        return known->second;
    }
    Named name;
    const std::string text = work.kind == WorkKind::Kernel ? kernelName(work.name) : std::string(symbol);
    name.id = sink_.intern(text);
    if (work.kind == WorkKind::Kernel) {
        const std::lock_guard lock(mutex_);
        name.summary = summaries_.size();
        summaries_.push_back({text, 0, 0, work.shape, true});
    }
    return names_.emplace(std::string(symbol), name).first->second;
}

void WorkWriter::add(const DeviceWork& work) {
    const Named& name = named(work);
    Waiting waiting;
    waiting.span.begin = std::max<base::TimeNs>(0, work.begin - start_);
    waiting.span.end = std::max(waiting.span.begin, work.end - start_);
    waiting.span.lane = lanes_[static_cast<std::size_t>(work.kind)];
    waiting.span.name = name.id;
    waiting.span.bytes = work.bytes;
    waiting.span.stream = work.stream;
    waiting.correlation = work.correlation;
    waiting.node = work.node;
    waiting_.push_back(waiting);
    if (work.kind == WorkKind::Kernel) {
        const std::lock_guard lock(mutex_);
        KernelSummary& summary = summaries_[name.summary];
        ++summary.launches;
        summary.total += work.end - work.begin;
        summary.sameShape = summary.sameShape && sameShape(summary.shape, work.shape);
    }
}

void WorkWriter::write(const LaunchMap& launches, bool last) {
    std::ranges::stable_sort(waiting_, {}, [](const Waiting& waiting) { return waiting.span.begin; });
    std::vector<Waiting> later;
    for (Waiting& waiting : waiting_) {
        const std::optional<base::ScopeId> scope = launches.scopeOf(waiting.correlation, waiting.node);
        if (!scope && !last && later.size() < kMaxWaiting) {
            later.push_back(waiting);
            continue;
        }
        waiting.span.scope = scope.value_or(base::ScopeId{});
        sink_.record(waiting.span);
    }
    waiting_ = std::move(later);
}

std::vector<KernelSummary> WorkWriter::kernels() const {
    const std::lock_guard lock(mutex_);
    std::vector<KernelSummary> kernels = summaries_;
    std::ranges::stable_sort(kernels, std::greater{}, &KernelSummary::total);
    return kernels;
}

} // namespace vitrine::profiler
