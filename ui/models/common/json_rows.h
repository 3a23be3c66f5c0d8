// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// JSON values of a run as rows that people read: nested keys joined with dots, numbers with the unit that their name
// says.

#include <QString>
#include <string>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

struct JsonRow {
    QString key;   ///< "peak_by_category.weights"
    QString value; ///< "12.83 GiB"
    QString raw;   ///< "13775930368"
};

/// Leaves in order, at most `limit`; long lists become one row "192 values". A text that is no JSON gives no rows.
std::vector<JsonRow> jsonRows(const std::string& json, std::size_t limit = 400);

/// Groups Metrics, Experiment and Environment with a row for each leaf; values inside others below the name of those.
FlatTreePtr runDetailTree(const sessions::RunInfo& run);

} // namespace vitrine::ui
