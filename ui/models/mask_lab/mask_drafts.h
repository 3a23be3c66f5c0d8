// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The programs of a Mask Lab between two starts of the program, kept in a settings file.

#include <QString>

namespace vitrine::ui {

class MaskLab;

/// Fills both sides with what was kept, or with examples where nothing was. An empty file name keeps nothing.
void restoreDrafts(MaskLab& lab, const QString& settingsFile);
void keepDrafts(const MaskLab& lab, const QString& settingsFile);

} // namespace vitrine::ui
