// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The low strips of the KV cache's curve: whose tokens they are, what pages hold beyond tokens, and how many pages are
// taken over time. Empty data where the run does not say what a strip would show.

#include <optional>

#include "ui/models/kv_cache/kv_limits.h"
#include "ui/models/kv_cache/kv_summary.h"
#include "ui/widgets/plots/step_strip.h"

namespace vitrine::ui {

/// Prompt and answer over the tokens `begin` to `end` of an axis.
StepStripData kvTurnBand(const KvSummary& facts, double begin, double end);
/// The room in pages and rings that no token uses yet, from the number of tokens, up to `tokens` of an axis that ends
/// at `end`. Of one sequence in pages.
StepStripData kvRoundingStrip(const KvSummary& facts, double tokens, double end);
/// "now 19 tokens, 468 KiB, 0.09 % of the cache"
QString kvRoundingText(const KvSummary& facts);
/// Pages of full layers over time, with prompt and answer above, and the pages that free memory is good for.
StepStripData kvPressureStrip(const KvSummary& facts, const std::optional<KvRoom>& room);
/// "320 of 1,103 pages, 29.0 %"
QString kvPressureText(const KvSummary& facts, const std::optional<KvRoom>& room);

} // namespace vitrine::ui
