// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a painter draws, as SVG.

#include <QByteArray>
#include <QSize>
#include <QString>
#include <functional>

class QPainter;

namespace vitrine::ui {

/// An SVG document of `size` pixels at 96 dpi; `title` and `description` stand in it for readers that do not see it.
QByteArray vectorPicture(const QSize& size, const QString& title, const QString& description,
                         const std::function<void(QPainter&)>& paint);

} // namespace vitrine::ui
