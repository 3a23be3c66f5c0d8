// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Icons of resources/icons, tinted when they are painted: they follow the theme without being made again.

#include <QIcon>
#include <QPixmap>
#include <QString>
#include <optional>

namespace vitrine::ui {

/// text2; text1 when checked or under the pointer; disabled when off. `color`: a fixed colour instead.
QIcon icon(const QString& name, std::optional<QColor> color = {});

/// One tinted picture of `side` logical pixels for a device ratio.
QPixmap iconPixmap(const QString& name, int side, const QColor& color, double dpr);

} // namespace vitrine::ui
