// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/session_keeping.h"

#include <QFileInfo>
#include <QObject>

namespace vitrine::ui {

QString keepingText(const SessionKeeping& keeping) {
    switch (keeping.state) {
    case SessionKeeping::State::Saved:
        return QObject::tr("Saved");
    case SessionKeeping::State::Saving:
        return QObject::tr("Saving");
    case SessionKeeping::State::ReadOnly:
        return QObject::tr("Read only");
    case SessionKeeping::State::Deleted:
        return QObject::tr("Not saved: the file was deleted");
    case SessionKeeping::State::Replaced:
        return QObject::tr("Not saved: the file was replaced");
    case SessionKeeping::State::Waiting:
        return QObject::tr("Not saved: the file cannot be written");
    }
    return {};
}

QString keepingSentence(const SessionKeeping& keeping, const QString& path) {
    const QString name = QFileInfo(path).fileName();
    switch (keeping.state) {
    case SessionKeeping::State::Deleted:
        return QObject::tr("%1 was deleted or moved: what you see is not saved. Save a copy to keep it.").arg(name);
    case SessionKeeping::State::Replaced:
        return QObject::tr("Another file has replaced %1: what you see is not saved. Save a copy to keep it.")
            .arg(name);
    case SessionKeeping::State::Waiting:
        return QObject::tr("Your notes and tags are not saved. Save a copy to keep them. %1").arg(keeping.reason);
    default:
        return {};
    }
}

} // namespace vitrine::ui
