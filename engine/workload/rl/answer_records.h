// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "engine/rl/rollout/rollout_group.h"
#include "kernels/core/tracer.h"

namespace vitrine::engine {

/// Reports all answers of a step, those that are not trained on too, so that the session can show why. `places` are
/// those of the rows that are trained, see TrainedAnswers.
void recordAnswers(kernels::Tracer& tracer, std::int64_t step, std::span<const RolloutGroup> groups,
                   std::span<const std::pair<std::size_t, std::size_t>> places);

} // namespace vitrine::engine
