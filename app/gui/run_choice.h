// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which runs a view shows first, where the program opens it itself: for pictures and for `--view`.

#include <QString>

#include "ui/models/session/session_document.h"

namespace vitrine::app {

/// Puts the runs in A and B that the view has most to show of, as a person would before looking.
void chooseRuns(ui::SessionDocument& document, const QString& view);

} // namespace vitrine::app
