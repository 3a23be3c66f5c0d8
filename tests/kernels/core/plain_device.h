// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A device with round rates, of which nothing was measured.

#include "kernels/core/device_traits.h"

namespace vitrine::kernels::test {

inline DeviceTraits plainDevice() {
    DeviceTraits traits;
    traits.id = "plain";
    traits.memoryBandwidth = 1e12;
    traits.flopsF32 = traits.flopsBf16 = traits.flopsF16 = 1e14;
    return traits;
}

} // namespace vitrine::kernels::test
