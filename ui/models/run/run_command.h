// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The command line that starts a run again. Pure function.

#include <QString>

#include "sessions/session_file.h"

namespace vitrine::ui {

/// "vitrine generate --model synthetic:gpt-oss-20b ..."; empty where the run has no experiment.
QString runCommandLine(const sessions::RunInfo& run);

} // namespace vitrine::ui
