// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/vector_picture.h"

#include <QBuffer>
#include <QPainter>
#include <QSvgGenerator>

namespace vitrine::ui {

QByteArray vectorPicture(const QSize& size, const QString& title, const QString& description,
                         const std::function<void(QPainter&)>& paint) {
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(size);
    generator.setViewBox(QRect(QPoint(), size));
    generator.setTitle(title);
    generator.setDescription(description);
    generator.setResolution(96);
    QPainter painter(&generator);
    paint(painter);
    painter.end();
    return buffer.data();
}

} // namespace vitrine::ui
