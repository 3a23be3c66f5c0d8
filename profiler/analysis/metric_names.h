// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How metrics are called and ordered where people read them; the names in files stay as they are. Pure functions.

#include <string>
#include <string_view>

namespace vitrine::profiler {

/// "decode rate" for "decode_tokens_per_second", "peak: kv_cache" for "peak_by_category.kv_cache"; otherwise the
/// name with blanks.
std::string metricTitle(std::string_view metric);

/// Place in a list: what answers a question first has the smallest number; unknown metrics come after the known ones.
int metricRank(std::string_view metric);

} // namespace vitrine::profiler
