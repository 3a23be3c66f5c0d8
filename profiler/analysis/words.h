// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Numbers inside sentences.

#include <cstdint>
#include <string>

namespace vitrine::profiler {

/// "+12.66 GiB", "−1.2 MiB" (U+2212), "±0 B"
std::string signedBytes(std::int64_t bytes);

/// "57.2 %"
std::string percent(double share);

/// "Step 3" for "step 3"
std::string capitalised(std::string text);

} // namespace vitrine::profiler
