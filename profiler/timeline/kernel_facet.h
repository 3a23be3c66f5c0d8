// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Work on lanes outside the scope tree: kernels and copies of a GPU, stages of loading. Those of replayed steps are
// expanded. Immutable; any thread may ask.

#include <span>
#include <utility>

#include "base/trace.h"
#include "profiler/record/segmented_vector.h"

namespace vitrine::profiler {

class KernelFacet {
public:
    explicit KernelFacet(SharedView<base::SpanEvent> spans) : spans_(std::move(spans)) {}

    /// By begin. Names by the timeline's text(lane.value), text(name.value).
    std::span<const base::SpanEvent> spans() const { return {spans_.begin(), spans_.size()}; }

private:
    SharedView<base::SpanEvent> spans_;
};

} // namespace vitrine::profiler
