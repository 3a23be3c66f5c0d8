// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// In which steps the device is traced. Tracing costs time (up to 11 % of a decode step, docs/performance.md), so it
// looks at a few steps out of many: the first `steps` of every `period` decode steps, and every step of another kind
// (prefill, load, logits). Light mode traces whole graphs there, full mode every kernel.

#include <cstdint>
#include <string_view>

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
        return stepName != "decode" || decoded_++ % period_ < steps_ ? atStart() : TraceDetail::Nothing;
    }

private:
    bool full_;
    std::int64_t steps_, period_;
    std::int64_t decoded_ = 0;
};

} // namespace vitrine::profiler
