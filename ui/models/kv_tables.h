// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The KV cache of a run in an inspector's tables: name and value a row. Pure functions; any thread.

#include "ui/models/kv_facts.h"

namespace vitrine::ui {

/// Full, sliding, measured, predicted, error, without window: at a number of tokens. Empty for empty facts.
FlatTreePtr kvValuesTable(const KvFacts& facts, std::int64_t tokens);

/// Which layers, bytes of a token, pages, window, dtype. Empty when the run does not say how its cache is laid out.
FlatTreePtr kvLayoutTable(const KvFacts& facts);

} // namespace vitrine::ui
