// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// `--render DIR`: a PNG of every view of a session, or with rows to train on, in both themes and at device ratios 1
// and 2.

#include <QSize>
#include <QStringList>

namespace vitrine::app {

/// Renders these views (empty: all) at the ratio of this process. Returns an exit code; prints the paths it wrote.
int renderSession(const QStringList& files, const QString& folder, const QSize& window, const QStringList& views);

/// Starts this program once for each ratio: a process has one ratio for its whole life.
int renderAllRatios(const QStringList& files, const QString& folder, const QString& window, const QStringList& views);

/// "1024x700"; an empty size when the text is none that a window can have.
QSize windowSize(const QString& text);

} // namespace vitrine::app
