// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files that views export.

#include <QByteArray>
#include <QString>

namespace vitrine::ui {

/// Writes a file as a whole or not at all. Returns why it was not written, one sentence that names the file; empty: it
/// was.
QString saveFile(const QString& path, const QByteArray& bytes);

} // namespace vitrine::ui
