// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/outlook_view.h"

namespace vitrine::ui {

OutlookView::OutlookView(const QString& id, const QString& title, const QString& words, const ViewServices& context,
                         QWidget* parent)
    : View(id, title, context, parent) {
    showEmpty(words, tr("Open the run list"), [this] { emit openView(QStringLiteral("sessions")); });
}

} // namespace vitrine::ui
