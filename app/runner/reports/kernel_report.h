// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What `vitrine kernels` prints: variants of kernel packs, which of them a GPU would run, and the cache of compiled
// ones.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace vitrine::app {

struct KernelQuestion {
    std::string arch; ///< "sm_90a"; empty: of the device present, else sm_90a
    std::vector<std::string> packs;
    std::vector<std::pair<std::string, std::string>> overrides; ///< family or op -> variant
};

/// {"arch", "device" (null: none present), "packs": [{name, description, place, variants}], "rows": [{family, variant,
/// pack, priority, archs, when, runs, abi, ...}]}. `chosen` of `examples`: for
/// how many of the family's example calls the variant would be taken. Throws BadInput for an arch or pack that is none.
nlohmann::json kernelReport(const KernelQuestion& question);

/// {"folder", "bytes", "damaged", "rows": [{key, label, bytes, intact}]}, the most recently used first.
nlohmann::json cubinCacheReport();
/// {"folder", "removed"}
nlohmann::json clearCubinCache();

} // namespace vitrine::app
