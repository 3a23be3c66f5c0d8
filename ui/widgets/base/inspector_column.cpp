// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/inspector_column.h"

#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

QVBoxLayout* inspectorColumn(QScrollArea* area) {
    area->setFrameShape(QFrame::NoFrame);
    area->setWidgetResizable(true);
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* panel = new Surface(Surface::Fill::Panel, Surface::None, area);
    auto* column = new QVBoxLayout(panel);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    area->setWidget(panel);
    return column;
}

} // namespace vitrine::ui
