// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where runs that a view starts are kept.

#include <QString>

#include "ui/models/session/session_document.h"

namespace vitrine::ui {

/// The open session, or a new file in `folder` (made; empty: the user's documents) where none can be written.
QString fileForRuns(const SessionDocument& document, const QString& folder);

/// A folder beside the session that does not exist yet, for what a training saves.
QString folderForTraining(const QString& sessionFile);

} // namespace vitrine::ui
