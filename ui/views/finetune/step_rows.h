// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The parts of a recorded training step as rows of a strip. Places count from the begin of the step.

#include <vector>

#include "profiler/analysis/step_anatomy.h"
#include "ui/widgets/timeline/part_strip.h"

namespace vitrine::ui {

TimeRange rangeInStep(const profiler::StepAnatomy& step, base::TimeNs begin, base::TimeNs end);

PartRow stepPhaseRow(const profiler::StepAnatomy& step);
/// Layers and chunks. The forward pass has its numbers once, the backward pass on each layer.
PartRow stepLayerRow(const profiler::StepAnatomy& step);
/// Chunks, forward layers, and the parts of backward layers.
PartRow stepPartRow(const profiler::StepAnatomy& step);

/// Where each phase but the first begins.
std::vector<base::TimeNs> phaseBorders(const profiler::StepAnatomy& step);

} // namespace vitrine::ui
