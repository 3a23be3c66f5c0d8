// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// In which steps every kernel is traced. Tracing costs time, so full mode looks closely at a few steps out of many: the
// first `steps` of every `period` decode steps, and every step of another kind (prefill, load, logits).

#include <cstdint>
#include <string_view>
#include <utility>

#include "profiler/gpu/device_work.h"

namespace vitrine::profiler {

class TraceWindow {
public:
    /// `steps` at least 1; `period` at least `steps`.
    TraceWindow(bool full, std::int64_t steps, std::int64_t period)
        : full_(full), steps_(steps < 1 ? 1 : steps), period_(period < steps_ ? steps_ : period) {}

    /// Before the first step: loading, warming up.
    TraceDetail atStart() const { return full_ ? TraceDetail::Everything : TraceDetail::Graphs; }

    /// For the step that begins now.
    TraceDetail next(std::string_view stepName) {
        if (!full_) {
            return TraceDetail::Graphs;
        }
        if (stepName != "decode" || decoded_++ % period_ < steps_) {
            afterWindow_ = true;
            return TraceDetail::Everything;
        }
        // A graph sheds what was put into it for tracing its kernels only in a launch that nobody traces.
        return std::exchange(afterWindow_, false) ? TraceDetail::Nothing : TraceDetail::Graphs;
    }

private:
    bool full_;
    std::int64_t steps_, period_;
    std::int64_t decoded_ = 0;
    bool afterWindow_ = true;
};

} // namespace vitrine::profiler
