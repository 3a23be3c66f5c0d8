// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The context menu of every lane: the cursor, the step under the pointer, and commands that go with them.

#include <initializer_list>

#include "ui/widgets/base/view.h"

class QPoint;

namespace vitrine::ui {

/// `commands` are ids of the ActionList that the view adds; null: no timeline yet.
void openTimelineMenu(QWidget* parent, const ViewServices& context, const TimelinePtr& timeline, const QPoint& position,
                      base::TimeNs at, std::initializer_list<const char*> commands);

} // namespace vitrine::ui
