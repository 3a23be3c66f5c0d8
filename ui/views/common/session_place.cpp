// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/common/session_place.h"

#include <QDateTime>
#include <QDir>
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

} // namespace vitrine::ui
