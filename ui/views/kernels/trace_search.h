// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Search by name in the trace of the Kernels view: what was found, in the order of time, and the one that was gone to
// last.

#include <QString>
#include <utility>
#include <vector>

#include "ui/models/kernels/kernel_trace.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

class TraceSearch final {
public:
    void clear();
    /// Finds the spans whose name holds `text` (any case) and marks them in `stack`. `direction` is 0 while one types,
    /// 1 and -1 go to the next and the previous one: `time` goes there and selects its scope. Returns what the search
    /// field says: "3 of 12".
    QString find(const QString& text, int direction, const profiler::RunTimeline& timeline, const KernelTrace& trace,
                 LaneStack& stack, TimeCursor& time);

private:
    void collect(const profiler::RunTimeline& timeline, const KernelTrace& trace);

    QString text_;
    std::vector<std::pair<base::TimeNs, std::uint64_t>> found_; ///< begin and scope
    std::size_t at_ = 0;
};

} // namespace vitrine::ui
