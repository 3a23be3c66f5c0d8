// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What follows a load: how fast each kind of weights answers and how close the answers are, as the load run measured it
// with its own prompt or as other runs of the same model say. Pure functions; any thread.

#include <QString>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

struct AfterLoad {
    bool priced = false;                                      ///< on a virtual clock: nothing was measured
    std::optional<double> decode, decode16, prefill, context; ///< tokens/s, with batch 16, tokens/s, tokens
    std::vector<std::int64_t> ids;                            ///< of a greedy run
    std::string prompt;                                       ///< to see whether two runs had the same one
    std::int64_t promptTokens = 0;
};
/// What done runs of the same model with these weights say; later runs replace earlier ones.
AfterLoad afterLoad(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& load, const QString& weights);

/// Of one variant of the run's metrics; nothing when the load had no prompt.
std::optional<AfterLoad> measuredAfterLoad(const sessions::RunInfo& run, std::size_t variant);

/// Tokens of two greedy runs with the same prompt that are equal; null without such runs.
FlatTreePtr agreementTable(const AfterLoad& a, const AfterLoad& b);
/// Equal tokens and the largest difference of logits against their spread; null when the run did not compare.
FlatTreePtr measuredAgreement(const sessions::RunInfo& run);
/// Says that no answers were compared, and how to do that.
FlatTreePtr unknownAgreement();

} // namespace vitrine::ui
