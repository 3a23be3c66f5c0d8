// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <QList>
#include <QWidget>

namespace vitrine::ui {

/// Tab passes through these parts of one window in this order. Inside a part what a later part of the list contains
/// comes with that one; the rest keeps its order. Null and parts of other windows are left out.
void orderFocus(const QList<QWidget*>& parts);

} // namespace vitrine::ui
