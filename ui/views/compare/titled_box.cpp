// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/compare/titled_box.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace vitrine::ui {

QWidget* titledBox(TextLabel* title, QWidget* content, QWidget* parent, int edges) {
    auto* box = new Surface(Surface::Fill::Canvas, edges, parent);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 1, (edges & Surface::Right) != 0 ? 1 : 0, 0);
    column->setSpacing(0);
    auto* head = new Surface(Surface::Fill::Panel, Surface::Bottom, box);
    head->setFixedHeight(24);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(12, 0, 12, 0);
    row->addWidget(title, 1);
    column->addWidget(head);
    content->setParent(box);
    column->addWidget(content, 1);
    return box;
}

} // namespace vitrine::ui
