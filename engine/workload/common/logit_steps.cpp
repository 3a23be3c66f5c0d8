// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/logit_steps.h"

#include <algorithm>

#include "engine/model/model.h"

namespace vitrine::engine {

std::int64_t logitStepTokens(const kernels::DeviceTraits& traits, std::int64_t asked, const ModelConfig& config) {
    constexpr std::int64_t kLogitsBytes = std::int64_t{256} << 20;
    const auto rowBytes = config.vocab * static_cast<std::int64_t>(sizeof(float));
    return std::min(std::max<std::int64_t>(kLogitsBytes / rowBytes, 1), prefillChunk(traits, asked));
}

} // namespace vitrine::engine
