// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The file in which the window keeps what was chosen in it: geometry, docks, theme, shortcuts and recent sessions.

#include <QSettings>
#include <QString>
#include <memory>

namespace vitrine::ui {

/// The settings that `file` holds; null where the file has no name and nothing is kept.
inline std::unique_ptr<QSettings> keptSettings(const QString& file) {
    return file.isEmpty() ? nullptr : std::make_unique<QSettings>(file, QSettings::IniFormat);
}

} // namespace vitrine::ui
