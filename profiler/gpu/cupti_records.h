// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// CUPTI's activity records as DeviceWork. Only files that are compiled with CUPTI's headers may include this one.

#include <cupti.h>
#include <optional>

#include "profiler/gpu/device_work.h"

namespace vitrine::profiler {

/// None for kinds that were not asked for and for records without times (the device's buffer was full): `lostTimes`
/// says which. The name points into the record or is a constant.
std::optional<DeviceWork> workOf(const CUpti_Activity& record, bool& lostTimes);

} // namespace vitrine::profiler
