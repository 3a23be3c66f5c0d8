// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/common/save_file.h"

#include <QCoreApplication>
#include <QSaveFile>

namespace vitrine::ui {

QString saveFile(const QString& path, const QByteArray& bytes) {
    QSaveFile file(path);
    if (file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit()) {
        return {};
    }
    return QCoreApplication::translate("SaveFile", "%1: %2, choose another place").arg(path, file.errorString());
}

} // namespace vitrine::ui
