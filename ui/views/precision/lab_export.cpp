// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/lab_export.h"

#include <QBuffer>
#include <QFileDialog>
#include <QPainter>

#include "ui/models/planner/plan_words.h"
#include "ui/models/precision/precision_tables.h"
#include "ui/views/common/save_file.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/heat_map.h"
#include "ui/widgets/plots/vector_picture.h"

namespace vitrine::ui {

namespace {

Exported savedAs(const QString& path, const QByteArray& bytes, const QString& what) {
    if (path.isEmpty()) {
        return {};
    }
    const QString error = saveFile(path, bytes);
    return {error, error.isEmpty() ? QObject::tr("%1 is in %2").arg(what, path) : QString()};
}

} // namespace

Exported exportTable(QWidget* parent, const engine::PrecisionResult& result, const PrecisionMap& cells,
                     std::size_t format) {
    const QString path = QFileDialog::getSaveFileName(parent, QObject::tr("Export the errors of all weights"),
                                                      QStringLiteral("precision.csv"), QObject::tr("CSV (*.csv)"));
    return savedAs(path, asCommaSeparated(*mapTable(result, cells, format)).toUtf8(), QObject::tr("The table"));
}

Exported exportPicture(QWidget* parent, HeatMap& map, const QString& format) {
    const QString path =
        QFileDialog::getSaveFileName(parent, QObject::tr("Export the map"), QStringLiteral("precision.svg"),
                                     QObject::tr("SVG (*.svg);;PNG (*.png)"));
    QByteArray bytes;
    if (path.endsWith(QLatin1String(".png"), Qt::CaseInsensitive)) {
        QBuffer buffer(&bytes);
        buffer.open(QIODevice::WriteOnly);
        map.picture(map.size(), 2).save(&buffer, "PNG");
    } else {
        bytes = vectorPicture(map.size(), map.title(), format, [&map](QPainter& painter) {
            painter.fillRect(map.rect(), themeTokens().canvas);
            map.paintInto(painter, map.size());
        });
    }
    return savedAs(path, bytes, QObject::tr("The map"));
}

} // namespace vitrine::ui
