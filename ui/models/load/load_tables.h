// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two loads as tables and sentences. Pure functions; any thread.

#include "ui/models/load/load_after.h"
#include "ui/models/load/load_summary.h"

namespace vitrine::ui {

/// "3.04x" and the sentence below it.
struct LoadText {
    QString number, sentence, cost;
};
LoadText loadText(const LoadPair& pair, const AfterLoad& a, const AfterLoad& b);

/// Name, A, B, A to B: the inspector's tables. Null where there is no row.
FlatTreePtr loadTable(const LoadPair& pair);
FlatTreePtr loadMemoryTable(const LoadPair& pair);
FlatTreePtr afterLoadTable(const AfterLoad& a, const AfterLoad& b);
/// The twin of the pictures: part or stage, A, B, A to B.
FlatTreePtr loadTwin(const LoadPair& pair);

/// "▼ 1.53x": A against B; -1 in `better` when A is better, 0 equal, 1 worse. `lowerIsBetter` nothing: unknown
/// direction.
FlatCell ratioCell(std::optional<double> a, std::optional<double> b, std::optional<bool> lowerIsBetter,
                   double noise = 0.0005);

} // namespace vitrine::ui
