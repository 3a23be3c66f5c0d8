// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// When a run of the lab scored a token of its text.

#include <cstddef>
#include <optional>

#include "ui/models/common/time_cursor.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// The step of the run in which the probabilities of a token under a format were computed. Nothing: token 0 has none,
/// or the run kept no events of its steps. Any thread.
std::optional<TimeRange> whenScored(const profiler::RunTimeline& timeline, std::size_t format, std::size_t token);

/// Whether the run says what the kernels of a GPU did.
bool recordsKernels(const profiler::RunTimeline& timeline);

} // namespace vitrine::ui
