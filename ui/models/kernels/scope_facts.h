// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the inspector of the Kernels view says of a step, a layer or an op. Pure function; any thread.

#include <QString>
#include <cstdint>
#include <optional>

#include "ui/models/kernels/kernel_trace.h"

namespace vitrine::ui {

struct ScopeFacts {
    QString name;  ///< "layer 11", "ExpertMlp"
    QString place; ///< "step 3, layer 11"; empty: it lies in neither
    TimeRange time;
    std::uint64_t kernels = 0;          ///< that began while it lasted
    base::TimeNs kernelTime = 0;        ///< their sum
    std::uint64_t bytes = 0, flops = 0; ///< its own work; 0: not known
};

/// Nothing where the run has no such step, layer or op.
std::optional<ScopeFacts> scopeFacts(const profiler::RunTimeline& timeline, const KernelTrace& trace,
                                     std::uint64_t scope);

} // namespace vitrine::ui
