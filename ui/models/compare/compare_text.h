// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between two runs, in words. A is the run one looks at, B the baseline. Pure functions; any thread.

#include <QString>

#include "sessions/session_file.h"

namespace vitrine::ui {

struct CompareText {
    QString sentence; ///< the largest difference
    QString cause;    ///< what was set differently, and speed
};
CompareText compareText(const sessions::RunInfo& a, const sessions::RunInfo& b);

} // namespace vitrine::ui
