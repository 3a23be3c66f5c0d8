// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <QScrollArea>
#include <QVBoxLayout>

namespace vitrine::ui {

/// Makes a scroll area an inspector: no frame, and a panel in it that scrolls up and down only. Returns the panel's
/// column, which is empty; its parent widget is the panel.
QVBoxLayout* inspectorColumn(QScrollArea* area);

} // namespace vitrine::ui
