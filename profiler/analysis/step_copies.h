// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The copies of a training step's offload: inputs of layers that go to the host in the forward pass and come back in
// the backward pass.

#include <cstddef>

#include "base/clock.h"

namespace vitrine::profiler {

class RunTimeline;
struct StepAnatomy;

/// Fills copies, copiesTimed and pinned of a step whose items are known. What the device's own records say is used
/// where there are any; else a copy stands where the memory for it was made (back) or its layer ends (to the host).
void addCopies(const RunTimeline& timeline, StepAnatomy& step);

/// The first allocation, by birth, that was born at `time` or later.
std::size_t firstBornFrom(const RunTimeline& timeline, base::TimeNs time);

} // namespace vitrine::profiler
