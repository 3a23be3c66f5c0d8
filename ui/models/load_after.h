// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a load run measured with its own prompt: how fast each kind of weights answers, and how close the answers are.
// Pure functions; any thread.

#include "ui/models/load_facts.h"

namespace vitrine::ui {

/// Of one variant of the run's metrics; nothing when the load had no prompt.
std::optional<AfterLoad> measuredAfterLoad(const sessions::RunInfo& run, std::size_t variant);

/// Equal tokens and the largest difference of logits against their spread; null when the run did not compare.
FlatTreePtr measuredAgreement(const sessions::RunInfo& run);

} // namespace vitrine::ui
