// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Turns a device's records into spans of a run: names interned, times on the run's axis, scopes looked up. Records
// whose step has not ended wait. One thread at a time but for kernels().

#include <array>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/trace.h"
#include "profiler/gpu/device_work.h"
#include "profiler/gpu/gpu_profiler.h"

namespace vitrine::profiler {

class WorkWriter {
public:
    WorkWriter(base::TraceSink& sink, base::TimeNs start);

    /// Takes one record; it is written by the next write().
    void add(const DeviceWork& work);
    /// Writes what was added, by begin. `last`: also what still waits for its step.
    void write(const LaunchMap& launches, bool last);

    std::vector<KernelSummary> kernels() const;

private:
    struct Named {
        base::StringId id;
        std::size_t summary = 0; ///< of kernels
    };
    struct Waiting {
        base::SpanEvent span;
        std::uint32_t correlation = 0;
        std::uint64_t node = 0;
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };

    const Named& named(const DeviceWork& work);

    base::TraceSink& sink_;
    base::TimeNs start_;
    std::array<base::StringId, kWorkKinds> lanes_{};
    std::unordered_map<std::string, Named, TextHash, std::equal_to<>> names_;
    std::vector<Waiting> waiting_;
    mutable std::mutex mutex_; // summaries
    std::vector<KernelSummary> summaries_;
};

} // namespace vitrine::profiler
