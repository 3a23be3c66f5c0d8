// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/common/session_place.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>

namespace vitrine::ui {

QString fileForRuns(const SessionDocument& document, const QString& folder) {
    if (document.isOpen() && !document.readOnly()) {
        return document.path();
    }
    const QString place = folder.isEmpty() ? QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation) +
                                                 QStringLiteral("/Vitrine")
                                           : folder;
    QDir().mkpath(place);
    return place + QDateTime::currentDateTime().toString(QStringLiteral("'/session-'yyyyMMdd-HHmmss'.vitrine'"));
}

QString folderForTraining(const QString& sessionFile) {
    const QFileInfo session(sessionFile);
    const QString first = session.absoluteDir().filePath(session.completeBaseName() + QStringLiteral("-training"));
    QString folder = first;
    for (int number = 2; QFileInfo::exists(folder); ++number) {
        folder = QStringLiteral("%1-%2").arg(first).arg(number);
    }
    return folder;
}

} // namespace vitrine::ui
