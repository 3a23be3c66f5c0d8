// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a GPU would need for a mask by the plan of the attention kernel, before anything is measured. Pure function; for
// a worker thread.

#include <QString>
#include <optional>
#include <string>

#include "ui/models/mask_lab/mask_map.h"
#include "ui/models/mask_lab/mask_source.h"

namespace vitrine::ui {

/// The device that is planned for where the machine has no GPU.
inline constexpr char kPlannedDevice[] = "h100-80gb";

struct MaskPlan {
    struct Direction {
        double masked = 0, full = 0; ///< milliseconds with the mask and without
    };
    QString device; ///< "NVIDIA H100 80GB"
    Direction forward, backward;
};

/// In bfloat16 with random tensors of these sizes. `profile` is the name of a shipped device profile. Nothing where it
/// cannot be read.
std::optional<MaskPlan> maskPlan(const MaskMap& map, const MaskSizes& sizes, const std::string& profile);

} // namespace vitrine::ui
